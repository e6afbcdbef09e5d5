"""Former name of `sharnir.learn`."""

from sharnir.core.former_names import stand_for

stand_for(__name__, "sharnir.learn", "env machines task tasks walkers")
