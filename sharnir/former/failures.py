"""Former name of `sharnir.trainer.failures`."""

from sharnir.core.renamed import stand_for

stand_for(__name__, "sharnir.trainer.failures")
