"""Integration in time by methods of high order, with events."""
