// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_groups.hpp"

#include <algorithm>

#include "comm/mpi_check.hpp"

namespace carousel {
namespace {

/// The ranks of a group that this one is in, or none.
MPI_Comm communicator_of(MPI_Comm world, const std::vector<int>& ranks, int tag) {
  int own = 0;
  CAROUSEL_MPI(MPI_Comm_rank(world, &own));
  if (std::ranges::find(ranks, own) == ranks.end() || ranks.size() < 2) return MPI_COMM_NULL;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Comm result = MPI_COMM_NULL;
  CAROUSEL_MPI(MPI_Comm_group(world, &all));
  CAROUSEL_MPI(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some));
  CAROUSEL_MPI(MPI_Comm_create_group(world, some, tag, &result));
  CAROUSEL_MPI(MPI_Comm_set_errhandler(result, MPI_ERRORS_RETURN));
  CAROUSEL_MPI(MPI_Group_free(&some));
  CAROUSEL_MPI(MPI_Group_free(&all));
  return result;
}

}  // namespace

MpiGroups::MpiGroups(MPI_Comm world, const std::vector<std::vector<int>>& groups) {
  for (std::size_t g = 0; g < groups.size(); ++g)
    groups_.push_back({communicator_of(world, groups[g], static_cast<int>(g)), groups[g]});
}

MpiGroups::~MpiGroups() {
  for (Group& group : groups_) {
    if (group.ranks != MPI_COMM_NULL) MPI_Comm_free(&group.ranks);
  }
}

}  // namespace carousel
