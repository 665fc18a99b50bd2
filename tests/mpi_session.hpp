// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The MPI session of a test that runs on several ranks. mpi_main.cpp starts and ends it.

#include "comm/mpi_session.hpp"

namespace carousel::test {

[[nodiscard]] const MpiSession& session();

}  // namespace carousel::test
