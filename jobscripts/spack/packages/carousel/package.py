# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Carousel for Spack, from the repository that this file is part of:

    spack repo add CLONE/jobscripts/spack
    spack install carousel            # or carousel +cuda cuda_arch=90

Not run: no Spack was at hand; written after its packaging guide.
"""

import pathlib

from spack.package import *

try:  # Spack 1.0 and later keep the classes of build systems with the packages
    from spack_repo.builtin.build_systems.cmake import CMakePackage
    from spack_repo.builtin.build_systems.cuda import CudaPackage
except ImportError:
    pass


class Carousel(CMakePackage, CudaPackage):
    """Trains neural networks on clusters with Cyclic Data Parallelism."""

    homepage = "https://arxiv.org/abs/2403.08837"
    git = pathlib.Path(__file__).resolve().parents[4].as_uri()

    license("Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("kokkos@4.5: +serial cxxstd=20")
    depends_on("kokkos +openmp ~cuda", when="~cuda")
    depends_on("mpi")
    depends_on("hdf5@1.10: ~mpi")
    depends_on("fmt@9:")
    depends_on("cli11@2:")
    depends_on("nlohmann-json@3.11:")
    depends_on("tomlplusplus@3.3:")
    depends_on("libjpeg-turbo")
    depends_on("libpng")
    depends_on("libarchive")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(
            f"kokkos +cuda +wrapper ~openmp cuda_arch={arch}", when=f"+cuda cuda_arch={arch}"
        )
    depends_on("python", type="run")
    depends_on("py-h5py", type="run")
    depends_on("py-matplotlib", type="run")

    generator("ninja")

    conflicts("cuda_arch=none", when="+cuda", msg="give the GPU: cuda_arch=90 for Hopper")

    def cmake_args(self):
        """Kokkos says for which processor and GPU; tests need a checkout, not an installation."""
        return [
            self.define("Carousel_ENABLE_TESTS", False),
            self.define("Carousel_WARNINGS_AS_ERRORS", False),
            self.define_from_variant("Carousel_ENABLE_CUDA", "cuda"),
        ]
