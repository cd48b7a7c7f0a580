# Spack: spack repo add packaging/spack && spack install muster
from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:  # before Spack 1.0 it is part of spack.package
    pass


class Muster(CMakePackage):
    """Starts one rank per GPU out of a scheduler's allocation, and brings collectives for C++, C and Python's ctypes."""

    # Where the sources are kept: to be set, or given by `spack dev-build` in a clone.
    homepage = "https://example.org/muster"
    git = "https://example.org/muster.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("launcher_only", default=False, description="Build the program muster alone: no MPI, no HDF5")
    variant("hdf5", default=True, when="~launcher_only", description="Data sets and muster-stage")
    variant("cuda_kernels", default=False, when="~launcher_only", description="Kernels for NVIDIA GPUs, compiled by nvcc")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("pmix@4.2:")
    depends_on("hwloc@2.9:")
    depends_on("libsodium@1.0.14:")
    depends_on("fmt@9.1:")
    depends_on("spdlog@1.10:")
    depends_on("boost@1.74: +program_options")
    depends_on("nlohmann-json@3.11:")
    depends_on("tomlplusplus@3.3:")
    depends_on("kainjow-mustache@4.1:", type="build")

    with when("~launcher_only"):
        depends_on("mpi")
        depends_on("openmpi@4.1:")
    with when("+hdf5"):
        depends_on("hdf5@1.10: +mpi")
        depends_on("xxhash@0.8:")
        depends_on("zlib-api")
        depends_on("minizip")
        depends_on("libpng@1.6:")
        depends_on("jpeg")
        depends_on("libwebp +libwebpdemux")
        depends_on("libarchive")
    depends_on("cuda@11.8:", type="build", when="+cuda_kernels")

    conflicts("%gcc@:11", msg="muster is C++20; GCC 12 is the oldest that was tried")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("MUSTER_TESTS", False),
            self.define_from_variant("MUSTER_LAUNCHER_ONLY", "launcher_only"),
        ]
        if self.spec.satisfies("~launcher_only"):
            args += [
                self.define("MUSTER_WITH_MPI", "ON"),
                self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc),
                self.define("MPI_CXX_COMPILER", self.spec["mpi"].mpicxx),
                self.define("MUSTER_WITH_HDF5", "ON" if self.spec.satisfies("+hdf5") else "OFF"),
                self.define("MUSTER_WITH_CUDA", "ON" if self.spec.satisfies("+cuda_kernels") else "OFF"),
            ]
        return args
