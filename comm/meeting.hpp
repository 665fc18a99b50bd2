// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How ranks find each other by TCP when a run starts, whoever else comes to the same port. What
// they then tell each other is not known here.

#include <atomic>
#include <vector>

#include "comm/mpi_session.hpp"
#include "comm/socket.hpp"

namespace carousel {

/// Connects rank 0 with all others; fills `ranks` with the connections of rank 0 to all others, of
/// others to rank 0. Collective. Throws Error(peer_lost) where a rank does not come within
/// `seconds`; `ranks` then holds those that came. Meanwhile `missing` is the lowest rank that this
/// one still waits for, or -1.
void meet(const MpiSession& session, double seconds, std::vector<Socket>& ranks,
          std::atomic<int>& missing);

}  // namespace carousel
