"""Exercises for an operator: a scene with goals, faults, failures and a time limit, and a protocol at the end."""
