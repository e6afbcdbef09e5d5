"""Machines built from joints, contacts and ropes: parts of them, ready ones as data, and the inputs by which they are driven."""
