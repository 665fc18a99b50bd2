// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_session.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // of Open MPI
#endif

#include "comm/deadline.hpp"
#include "comm/mpi_check.hpp"
#include "comm/mpi_transport.hpp"

namespace carousel {
namespace {

/// What a failing rank tells the others; plain bytes.
struct Report {
  int code = 0;
  std::array<char, 1024> text = {};
};

}  // namespace

MpiSession::MpiSession(int* argc, char*** argv) {
  // A transport has a thread of its own; of all others only the main thread makes MPI calls.
  int provided = 0;
  CAROUSEL_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided));
  if (provided < MPI_THREAD_SERIALIZED)
    fail(ExitCode::usage, "this MPI library offers no MPI_THREAD_SERIALIZED");
  CAROUSEL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &world_));
  // MPI_Testsome belongs to no communicator; libraries take the handler of one of the other two.
  for (MPI_Comm comm : {world_, MPI_COMM_WORLD, MPI_COMM_SELF})
    CAROUSEL_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  CAROUSEL_MPI(MPI_Comm_rank(world_, &rank_));
  CAROUSEL_MPI(MPI_Comm_size(world_, &size_));
  learn_node();
}

bool MpiSession::takes_gpu_memory() {
#if defined(MPIX_GPU_SUPPORT_CUDA)
  int supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported != 0;
#elif defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

MPI_Comm MpiSession::node() const {
  MPI_Comm node = MPI_COMM_NULL;
  CAROUSEL_MPI(MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  return node;
}

void MpiSession::learn_node() {
  MPI_Comm node = this->node();
  CAROUSEL_MPI(MPI_Comm_size(node, &ranks_on_node_));
  CAROUSEL_MPI(MPI_Allreduce(&rank_, &ends_on_node_.first, 1, MPI_INT, MPI_MIN, node));
  CAROUSEL_MPI(MPI_Allreduce(&rank_, &ends_on_node_.second, 1, MPI_INT, MPI_MAX, node));
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_ZERO(&cores);
  CAROUSEL_MPI(MPI_Allreduce(MPI_IN_PLACE, &cores, sizeof(cores), MPI_BYTE, MPI_BOR, node));
  cores_on_node_ = CPU_COUNT(&cores);
  CAROUSEL_MPI(MPI_Comm_free(&node));
}

std::vector<int> MpiSession::nodes() const {
  std::vector<int> all(size_);
  CAROUSEL_MPI(MPI_Allgather(&ends_on_node_.first, 1, MPI_INT, all.data(), 1, MPI_INT, world_));
  return all;
}

MpiSession::NodeTexts MpiSession::texts_of_node(const std::string& text) const {
  NodeTexts all;
  MPI_Comm node = this->node();
  CAROUSEL_MPI(MPI_Comm_rank(node, &all.own));
  auto most = static_cast<int>(text.size());
  CAROUSEL_MPI(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, node));
  // Of one length, filled up with what no text has.
  const auto length = static_cast<std::size_t>(most) + 1;
  std::string mine = text;
  mine.resize(length);
  std::string told(length * static_cast<std::size_t>(ranks_on_node_), '\0');
  CAROUSEL_MPI(
      MPI_Allgather(mine.data(), most + 1, MPI_CHAR, told.data(), most + 1, MPI_CHAR, node));
  CAROUSEL_MPI(MPI_Comm_free(&node));
  for (std::size_t at = 0; at < told.size(); at += length) all.texts.emplace_back(told.data() + at);
  return all;
}

int MpiSession::ranks_on_node_with(const std::string& text) const {
  return static_cast<int>(std::ranges::count(texts_of_node(text).texts, text));
}

MpiSession::~MpiSession() {
  const Deadline limit(end_seconds_, [code = code_] { std::_Exit(static_cast<int>(code)); });
  MPI_Comm_free(&world_);
  MPI_Finalize();
}

void MpiSession::together(const std::function<void()>& action) const {
  Report report;
  try {
    action();
  } catch (const Error& error) {
    report.code = static_cast<int>(error.code());
    std::strncpy(report.text.data(), error.what(), report.text.size() - 1);
  } catch (const std::exception& error) {
    report.code = static_cast<int>(ExitCode::internal);
    std::strncpy(report.text.data(), error.what(), report.text.size() - 1);
  }
  const auto lowest = static_cast<int>(least(report.code == 0 ? size_ : rank_));
  if (lowest == size_) return;
  CAROUSEL_MPI(MPI_Bcast(&report, sizeof(report), MPI_BYTE, lowest, world_));
  const auto code = static_cast<ExitCode>(report.code);
  if (lowest == 0) throw AgreedError(code, report.text.data());
  throw AgreedError(code, fmt::format("rank {}: {}", lowest, report.text.data()));
}

std::int64_t MpiSession::least(std::int64_t value) const {
  CAROUSEL_MPI(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MIN, world_));
  return value;
}

void MpiSession::sum(std::span<std::uint64_t> values) const {
  // NOLINTNEXTLINE(mpi-type-mismatch): clang-tidy 14 does not know the type of fixed width
  CAROUSEL_MPI(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                             MPI_UINT64_T, MPI_SUM, world_));
}

void MpiSession::from_first(std::span<std::byte> bytes) const {
  CAROUSEL_MPI(MPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, world_));
}

std::unique_ptr<Transport> MpiSession::transport(MpiGroups groups, int requests,
                                                 Clock clock) const {
  return std::make_unique<MpiTransport>(world_, std::move(groups), requests, std::move(clock));
}

void MpiSession::abort(ExitCode code) const {
  MPI_Abort(world_, static_cast<int>(code));
  std::_Exit(static_cast<int>(code));  // some launchers let MPI_Abort return
}

}  // namespace carousel
