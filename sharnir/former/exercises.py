"""Former name of `sharnir.trainer.exercises`."""

from sharnir.core.renamed import stand_for

stand_for(__name__, "sharnir.trainer.exercises", "exercise protocol three")
