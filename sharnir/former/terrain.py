"""Former name of `sharnir.geometry.terrain`."""

from sharnir.core.renamed import stand_for

stand_for(__name__, "sharnir.geometry.terrain")
