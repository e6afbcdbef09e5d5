"""Ropes: inextensible, bending and twisting, tied to bodies (theory: ropes)."""
