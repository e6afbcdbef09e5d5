"""A running simulation: steps, snapshots, views of its parts, contacts, recording of values."""
