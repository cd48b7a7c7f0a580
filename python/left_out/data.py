"""Stands in for the package muster.data where the part data was left out: Python takes the package where both are there."""

raise ModuleNotFoundError(
    "no muster.data: this muster was built or installed without the part data; build muster with it: cmake -DMUSTER_PARTS=all (docs/install.md, Parts)",
    name="muster.data",
)
