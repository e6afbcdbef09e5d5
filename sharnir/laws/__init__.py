"""What acts on the free axes of a joint: limits, friction, springs, drives."""
