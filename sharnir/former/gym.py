"""Former name of `sharnir.learn`."""

from sharnir.core.renamed import stand_for

stand_for(__name__, "sharnir.learn", "env machines task tasks walkers")
