// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// In place of nccl_session.cpp in builds without NCCL.

#include "comm/nccl_session.hpp"
#include "core/base/check.hpp"

namespace carousel {

struct NcclSession::Communicators {};

NcclSession::NcclSession(const MpiSession& /*session*/, const ExecutionSpace& /*exec*/,
                         Spec /*spec*/) {
  fail(ExitCode::usage,
       "parallel.transport = \"nccl\": this program was built without NCCL; set it to \"mpi\", or "
       "build the preset cuda where NCCL is");
}

NcclSession::~NcclSession() = default;
void NcclSession::close() {}
std::unique_ptr<CommunicationQueue> NcclSession::queue(int /*requests*/, Clock /*clock*/) {
  return nullptr;
}
std::string NcclSession::failure() const {
  return {};
}

}  // namespace carousel
