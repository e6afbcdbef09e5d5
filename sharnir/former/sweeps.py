"""Former name of `sharnir.study`."""

from sharnir.core.renamed import stand_for

stand_for(__name__, "sharnir.study", "design executors fitting job plots result run store words worker")
