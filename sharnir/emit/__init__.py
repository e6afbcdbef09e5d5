"""Device code from plain Python mathematics.

Formulas are written once, as Python functions of scalars, vectors and matrices (`algebra`). Called with floats they compute;
called with `Expression`s they record a `Program`, which prints as C++ for a Warp kernel. Zeros, ones and other constants fold
while the formulas run, so that an axis-aligned joint costs nothing for its alignment.
"""
