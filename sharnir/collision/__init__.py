"""Shapes against shapes: broad phase, pair functions, kept manifolds, queries."""
