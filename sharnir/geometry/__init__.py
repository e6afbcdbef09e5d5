"""Shapes with their mass properties, and terrain."""
