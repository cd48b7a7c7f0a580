# The header of templates that muster's job scripts are written with; Spack's own packages have none of it.
from spack.package import *

try:
    from spack_repo.builtin.build_systems.generic import Package
except ImportError:  # before Spack 1.0 it is part of spack.package
    pass


class KainjowMustache(Package):
    """Mustache text templates for C++, one header."""

    homepage = "https://github.com/kainjow/Mustache"
    url = "https://github.com/kainjow/Mustache/archive/v4.1.tar.gz"

    license("BSL-1.0")

    version("4.1", sha256="acd66359feb4318b421f9574cfc5a511133a77d916d0b13c7caa3783c0bfe167")

    def install(self, spec, prefix):
        mkdirp(prefix.include.kainjow)
        install("mustache.hpp", prefix.include.kainjow)
