"""Leapfrog steps, closed at the level of positions or of velocities."""
