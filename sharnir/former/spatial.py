"""Former name of `sharnir.core.spatial`."""

from sharnir.core.renamed import stand_for

stand_for(__name__, "sharnir.core.spatial")
