"""What all else stands on: Warp types and code generation, rotations, linear algebra, messages."""
