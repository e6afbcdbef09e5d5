"""Former name of `sharnir.machine_models`."""

from sharnir.core.renamed import stand_for

stand_for(
    __name__,
    "sharnir.machine_models",
    "crane excavator forklift hydraulics krt100 mf4 tracks truck vehicles wheels",
    cast="sharnir.runtime.raycast_wheels",
    controls="sharnir.scene.inputs",
)
