"""Former name of `sharnir.trainer`."""

from sharnir.core.renamed import stand_for

stand_for(
    __name__,
    "sharnir.trainer",
    "channels loop mirror statistics streams",
    beside="sharnir.trainer.session",
    board="sharnir.trainer.shared_frames",
)
