# The readers of images of which muster-stage uses that of BMP files; Spack's own packages have none of it.
from spack.package import *

try:
    from spack_repo.builtin.build_systems.generic import Package
except ImportError:  # before Spack 1.0 it is part of spack.package
    pass


class Stb(Package):
    """Single-file libraries for C, among them a reader of images."""

    homepage = "https://github.com/nothings/stb"
    git = "https://github.com/nothings/stb.git"

    license("MIT OR Unlicense")

    version("master", branch="master")

    def install(self, spec, prefix):
        mkdirp(prefix.include.stb)
        install("*.h", prefix.include.stb)
