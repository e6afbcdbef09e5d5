"""Engines: what advances a model by one step."""
