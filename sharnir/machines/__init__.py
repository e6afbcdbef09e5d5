"""Machines built from joints, rows and ropes: wheels, tracks, vehicles."""
