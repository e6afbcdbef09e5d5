"""Maximal coordinates, sequential impulses."""
