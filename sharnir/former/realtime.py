"""Former name of `sharnir.trainer`."""

from sharnir.core.renamed import stand_for

stand_for(
    __name__,
    "sharnir.trainer",
    "channels loop statistics streams",
    beside="sharnir.trainer.session",
    board="sharnir.trainer.shared_frames",
    mirror="sharnir.runtime.mirror",
)
