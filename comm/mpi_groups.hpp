// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Communicators of the groups of ranks that a plan's collectives name.

#include <mpi.h>

#include <algorithm>
#include <vector>

namespace carousel {

class MpiGroups {
 public:
  /// The ranks of a group, numbered in its order.
  struct Group {
    MPI_Comm ranks = MPI_COMM_NULL;  // null where this rank has no part in it
    std::vector<int> members;        // ranks of the world
  };

  /// All ranks of `world` come here together, wait for each other and have nothing pending.
  MpiGroups(MPI_Comm world, const std::vector<std::vector<int>>& groups);
  MpiGroups(const MpiGroups&) = delete;
  MpiGroups& operator=(const MpiGroups&) = delete;
  MpiGroups(MpiGroups&& other) noexcept = default;
  MpiGroups& operator=(MpiGroups&&) = delete;
  /// Collective, too, unless they were given up.
  ~MpiGroups();

  [[nodiscard]] const Group& operator[](int group) const { return groups_[group]; }
  /// Members of the largest one.
  [[nodiscard]] std::size_t largest() const {
    std::size_t most = 0;
    for (const Group& group : groups_) most = std::max(most, group.members.size());
    return most;
  }
  /// Leaves them to the end of MPI, where peers may never come to free them.
  void give_up() { groups_.clear(); }

 private:
  std::vector<Group> groups_;
};

}  // namespace carousel
