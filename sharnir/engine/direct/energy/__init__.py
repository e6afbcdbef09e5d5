"""Steps that keep energy and momenta to rounding (theory: energy and momentum)."""
