"""Trees of links in joint coordinates, and what stands around them."""
