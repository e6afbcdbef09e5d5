"""Former name of `sharnir.core.spatial`."""

from sharnir.core.former_names import stand_for

stand_for(__name__, "sharnir.core.spatial")
