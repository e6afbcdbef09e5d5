"""Steps whose result is read in joint coordinates."""
