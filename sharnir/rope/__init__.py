"""Ropes: inextensible, bending and twisting, tied to bodies (theory, section 5)."""
