"""Exact steps in maximal coordinates: one elimination over the tree, loops around it."""
