"""Stands in for the package muster.tensorflow where the part keras was left out: Python takes the package where both are there."""

raise ModuleNotFoundError(
    "no muster.tensorflow: this muster was built or installed without the part keras; install the package python3-muster-keras, or build muster with it: cmake -DMUSTER_PARTS=all (docs/install.md, Parts)",
    name="muster.tensorflow",
)
