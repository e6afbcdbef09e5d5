"""Joint coordinates: trees by the method of separate bodies, integrated to any accuracy."""
