// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl_session.hpp"

#include <nccl.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/base/category.hpp"
#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "core/base/cuda.hpp"
#include "core/base/cuda_stream.hpp"
#include "core/engine/device_clock.hpp"
#include "core/engine/launch_timeline.hpp"

namespace carousel {
namespace {

/// What a device may hand over before it is launched, beside what it may have told of rounds that
/// are not exchanged yet; fewer than two steps of a large plan.
constexpr std::size_t queued_orders = 1024;

void nccl_must(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  // What a rank sees when another one is gone; all else is its own.
  const bool peer = result == ncclRemoteError || result == ncclSystemError;
  fail(peer ? ExitCode::peer_lost : ExitCode::internal, "{}: {}: {}", call,
       ncclGetErrorString(result), ncclGetLastError(nullptr));
}
#define CAROUSEL_NCCL(call) nccl_must(call, #call)

constexpr ncclDataType_t real_type = sizeof(real) == sizeof(double) ? ncclFloat64 : ncclFloat32;

/// Members of each node where there are several nodes with as many each, and more than one, side by
/// side; else 0.
int width_of_nodes(std::span<const int> members, std::span<const int> nodes) {
  if (nodes.empty()) return 0;
  const auto node = [&](std::size_t k) { return nodes[members[k]]; };
  std::size_t width = 1;
  while (width < members.size() && node(width) == node(0)) ++width;
  if (width == 1 || width == members.size() || members.size() % width != 0) return 0;
  std::vector<int> seen;
  for (std::size_t k = 0; k < members.size(); ++k) {
    if (node(k) != node(k / width * width)) return 0;
    if (k % width == 0) seen.push_back(node(k));
  }
  std::ranges::sort(seen);
  return std::ranges::adjacent_find(seen) == seen.end() ? static_cast<int>(width) : 0;
}

}  // namespace

struct NcclSession::Communicators {
  struct Group {
    ncclComm_t ranks = nullptr;  // null where this rank has no part in it
    std::vector<int> members;    // ranks of the world, in its order
    // Of several nodes with several members each, side by side; else null:
    ncclComm_t inside = nullptr;  // those of the own node
    ncclComm_t across = nullptr;  // one of each node, in the same place there
    int width = 0;                // members of a node
  };
  ncclComm_t world = nullptr;
  std::vector<Group> groups;

  /// Calls visit(ranks) for all communicators of groups that this rank has a part in.
  template <class Visit>
  void for_each_of_groups(const Visit& visit) const {
    for (const Group& group : groups) {
      for (const ncclComm_t ranks : {group.ranks, group.inside, group.across}) {
        if (ranks != nullptr) visit(ranks);
      }
    }
  }
};

/// Messages of a round are one group of calls, which NCCL works off together, and its collectives
/// follow one by one: the plan's rounds make that end (core/plan/rounds).
class NcclSession::Queue final : public CommunicationQueue {
 public:
  Queue(const ExecutionSpace& exec, const Communicators& all, int requests, Clock clock)
      : exec_(exec),
        all_(all),
        clock_(exec, std::move(clock)),
        tokens_("carousel::comm::tokens", token_bytes),
        orders_(queued_orders + static_cast<std::size_t>(requests)),
        groups_of_(requests, free),
        times_("carousel::comm::times", requests),
        timeline_(exec, static_cast<int>(queued_orders)) {
    told_.reserve(requests);
  }

  void begin_segment() override { clock_.calibrate(exec_); }

  /// What every request may have told must find room when its round is exchanged.
  [[nodiscard]] bool full() const override {
    return handed_over_ - launched_ + groups_of_.size() >= orders_.size();
  }

  Request post(const Message& message, const Event& after) override {
    return tell({.kind = Kind::post, .message = message, .after = after});
  }
  Request send(const Message& message, const Event& after) override {
    return tell({.kind = Kind::send, .message = message, .after = after});
  }
  Request join(const Collective& collective, const Event& after) override {
    return tell({.kind = Kind::collective,
                 .message = {.round = collective.round},
                 .collective = collective,
                 .after = after});
  }

  void exchange(std::int64_t round) override {
    // Messages of a pair meet in this order at both ends; collectives come last.
    std::ranges::sort(told_, {}, [](const Order& order) {
      return std::tuple(order.message.round, order.kind == Kind::collective, order.message.tag,
                        order.collective.group, order.number);
    });
    const auto end = std::ranges::find_if(
        told_, [&](const Order& order) { return order.message.round > round; });
    std::int64_t newest = -1;
    for (auto order = told_.begin(); order != end; ++order) {
      if (order == told_.begin() || order->message.round != newest) ++groups_;
      newest = order->message.round;
      order->group = groups_;
      groups_of_[order->request] = groups_;
      orders_[handed_over_++ % orders_.size()] = *order;
    }
    told_.erase(told_.begin(), end);
    launch_due();
  }

  [[nodiscard]] Event done(Request request) const override {
    CAROUSEL_CHECK(groups_of_[request] > told, "request {} waits before its round", request);
    return {&timeline_, groups_of_[request]};
  }
  [[nodiscard]] const OperationTimes* times(Request request) const override {
    return &times_(request);
  }
  void release(Request request) override { groups_of_[request] = free; }

  void begin_due() override { launch_due(); }
  void help() override { launch_due(); }
  [[nodiscard]] std::int64_t staging_bytes() const override { return token_bytes; }

 private:
  enum class Kind : std::uint8_t { post, send, collective };
  struct Order {
    Kind kind = Kind::post;
    Request request = 0;
    std::int64_t number = 0;  // order of hand-over
    std::int64_t group = 0;   // of its round
    Message message = {};
    Collective collective = {};
    Event after = {};
  };
  // In place of the number of a group:
  static constexpr std::int64_t free = -1;
  static constexpr std::int64_t told = 0;

  Request tell(Order order) {
    const auto found = std::ranges::find(groups_of_, free);
    CAROUSEL_CHECK(found != groups_of_.end(), "more than {} messages pending", groups_of_.size());
    *found = told;
    order.request = static_cast<Request>(found - groups_of_.begin());
    order.number = numbers_++;
    told_.push_back(order);
    return order.request;
  }

  [[nodiscard]] Order& at(std::size_t order) { return orders_[order % orders_.size()]; }

  /// Launches the groups whose messages are there, or will be where the stream waits for that.
  void launch_due() {
    while (launched_ < handed_over_ && timeline_.has_room()) {
      std::size_t end = launched_;
      for (; end < handed_over_ && at(end).group == at(launched_).group; ++end) {
        if (!at(end).after.launched()) return;
      }
      launch(launched_, end);
      launched_ = end;
    }
  }

  void launch(std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) at(k).after.hold(exec_);
    for (std::size_t k = begin; k < end; ++k) clock_.stamp(exec_, &times_(at(k).request).started);
    CAROUSEL_NCCL(ncclGroupStart());
    std::size_t next = begin;
    for (; next < end && at(next).kind != Kind::collective; ++next) start(at(next));
    CAROUSEL_NCCL(ncclGroupEnd());
    for (; next < end; ++next) start(at(next).collective);
    for (std::size_t k = begin; k < end; ++k) clock_.stamp(exec_, &times_(at(k).request).completed);
    const std::int64_t mark = timeline_.mark();
    CAROUSEL_CHECK(mark == at(begin).group, "group {} is launched as {}", at(begin).group, mark);
  }

  void start(const Order& order) {
    const Message& message = order.message;
    const bool sends = order.kind == Kind::send;
    // A token is a byte that nobody looks at.
    const bool token = message.bytes == 0;
    std::byte* const data = token ? tokens_.data() + (sends ? 0 : 1) : message.data;
    const std::size_t bytes = token ? 1 : message.bytes;
    if (sends)
      CAROUSEL_NCCL(ncclSend(data, bytes, ncclInt8, message.peer, all_.world, stream_of(exec_)));
    else
      CAROUSEL_NCCL(ncclRecv(data, bytes, ncclInt8, message.peer, all_.world, stream_of(exec_)));
  }

  void start(const Collective& collective) {
    const Communicators::Group& group = all_.groups[collective.group];
    const auto root =
        static_cast<int>(std::ranges::find(group.members, collective.root) - group.members.begin());
    real* const data = collective.data;
    const std::size_t count = collective.count;
    const cudaStream_t stream = stream_of(exec_);
    switch (collective.kind) {
      case Collective::Kind::all_reduce:
        CAROUSEL_NCCL(ncclAllReduce(data, data, count, real_type, ncclSum, group.ranks, stream));
        break;
      case Collective::Kind::reduce:
        CAROUSEL_NCCL(ncclReduce(data, data, count, real_type, ncclSum, root, group.ranks, stream));
        break;
      case Collective::Kind::broadcast:
        CAROUSEL_NCCL(ncclBroadcast(data, data, count, real_type, root, group.ranks, stream));
        break;
      case Collective::Kind::reduce_scatter:
      case Collective::Kind::all_gather:
        start_parts(collective, group);
        break;
    }
  }

  /// NCCL takes a ring of all devices, whose latencies grow with them. Of several nodes, parts are
  /// therefore summed inside, where each sum belongs to a device in the same place there, then
  /// between those of all nodes; and gathered the other way round.
  void start_parts(const Collective& collective, const Communicators::Group& group) {
    const bool sums = collective.kind == Collective::Kind::reduce_scatter;
    CAROUSEL_CHECK(!sums || collective.from != collective.data, "a sum would lie in its terms");
    const std::span<const int> parts = collective.parts;
    if (group.inside == nullptr) {
      start_parts(collective, parts, 0, collective.data, group.ranks);
      return;
    }
    int place = 0;
    CAROUSEL_NCCL(ncclCommUserRank(group.inside, &place));
    const auto inside = [&] {
      CAROUSEL_NCCL(ncclGroupStart());
      std::size_t at = 0;
      for (std::size_t k = 0; k < parts.size(); k += group.width) {
        const auto own = parts.subspan(k, group.width);
        const std::size_t before = total(own.first(place));
        start_parts(collective, own, at, sums ? collective.from + at + before : nullptr,
                    group.inside);
        at += total(own);
      }
      CAROUSEL_NCCL(ncclGroupEnd());
    };
    const auto across = [&] {
      CAROUSEL_NCCL(ncclGroupStart());
      for (int k = 0; k * group.width < std::ssize(parts); ++k) {
        const int part = k * group.width + place;
        start_part(collective, total(parts.first(part)), parts[part], k, collective.data,
                   group.across);
      }
      CAROUSEL_NCCL(ncclGroupEnd());
    };
    if (sums) inside();
    across();
    if (!sums) inside();
  }

  [[nodiscard]] static std::size_t total(std::span<const int> parts) {
    return std::accumulate(parts.begin(), parts.end(), std::size_t{0});
  }

  /// Parts of equal sizes are one collective of the library. Others, which it does not know, are a
  /// reduction to, or a broadcast by, each member, all of which it works off together. They begin
  /// with number `at`; a sum is left in `to`.
  void start_parts(const Collective& collective, std::span<const int> parts, std::size_t at,
                   real* to, ncclComm_t ranks) {
    const cudaStream_t stream = stream_of(exec_);
    auto* const bytes = reinterpret_cast<std::byte*>(collective.data) + at;
    const auto size = static_cast<std::size_t>(parts[0]);
    if (std::ranges::count(parts, parts[0]) == std::ssize(parts)) {
      if (size == 0) return;
      int own = 0;
      CAROUSEL_NCCL(ncclCommUserRank(ranks, &own));
      if (collective.kind == Collective::Kind::reduce_scatter)
        CAROUSEL_NCCL(
            ncclReduceScatter(collective.from + at, to, size, real_type, ncclSum, ranks, stream));
      else
        CAROUSEL_NCCL(ncclAllGather(bytes + own * size, bytes, size, ncclInt8, ranks, stream));
      return;
    }
    CAROUSEL_NCCL(ncclGroupStart());
    for (int k = 0; k < std::ssize(parts); ++k) {
      start_part(collective, at, parts[k], k, to, ranks);
      at += static_cast<std::size_t>(parts[k]);
    }
    CAROUSEL_NCCL(ncclGroupEnd());
  }

  /// A part to the member `root`, or from it.
  void start_part(const Collective& collective, std::size_t at, int size, int root, real* to,
                  ncclComm_t ranks) {
    if (size == 0) return;
    const auto count = static_cast<std::size_t>(size);
    auto* const bytes = reinterpret_cast<std::byte*>(collective.data) + at;
    if (collective.kind == Collective::Kind::reduce_scatter)
      CAROUSEL_NCCL(ncclReduce(collective.from + at, to, count, real_type, ncclSum, root, ranks,
                               stream_of(exec_)));
    else
      CAROUSEL_NCCL(ncclBroadcast(bytes, bytes, count, ncclInt8, root, ranks, stream_of(exec_)));
  }

  ExecutionSpace exec_;
  const Communicators& all_;
  DeviceClock clock_;
  Kokkos::View<std::byte*, MemorySpace> tokens_;
  std::vector<Order> told_;    // of rounds that are not exchanged yet
  std::vector<Order> orders_;  // of those that are: order k in k % room
  std::size_t handed_over_ = 0;
  std::size_t launched_ = 0;
  std::int64_t numbers_ = 0;
  std::int64_t groups_ = 0;              // exchanged
  std::vector<std::int64_t> groups_of_;  // [request] the group that it is in
  Kokkos::View<OperationTimes*, Kokkos::SharedHostPinnedSpace> times_;
  LaunchTimeline timeline_;  // groups
};

NcclSession::NcclSession(const MpiSession& session, const ExecutionSpace& exec, Spec spec)
    : exec_(own_stream(exec)), all_(std::make_unique<Communicators>()) {
  ncclUniqueId id = {};
  if (session.rank() == 0) CAROUSEL_NCCL(ncclGetUniqueId(&id));
  session.from_first(std::as_writable_bytes(std::span(&id, 1)));
  CAROUSEL_NCCL(ncclCommInitRank(&all_->world, session.size(), id, session.rank()));
  const auto split = [&](int color, int key, ncclComm_t* ranks) {
    CAROUSEL_NCCL(ncclCommSplit(all_->world, color, key, ranks, nullptr));
  };
  for (std::vector<int>& members : spec.groups) {
    const auto place =
        static_cast<int>(std::ranges::find(members, session.rank()) - members.begin());
    const bool takes_part = place < std::ssize(members);
    Communicators::Group group;
    split(takes_part ? 0 : NCCL_SPLIT_NOCOLOR, place, &group.ranks);
    group.width = width_of_nodes(members, spec.nodes);
    if (group.width > 0) {
      split(takes_part ? place / group.width : NCCL_SPLIT_NOCOLOR, place, &group.inside);
      split(takes_part ? place % group.width : NCCL_SPLIT_NOCOLOR, place, &group.across);
    }
    group.members = std::move(members);
    all_->groups.push_back(std::move(group));
  }
  warm(spec.peers);
}

NcclSession::~NcclSession() = default;

/// One byte to and from every peer, and one number summed in every group.
void NcclSession::warm(const std::vector<int>& peers) {
  const Kokkos::View<std::byte*, MemorySpace> bytes("carousel::comm::warm", 2 * peers.size());
  const Kokkos::View<real, MemorySpace> number("carousel::comm::warm");
  Kokkos::fence("carousel::comm::warm");
  const cudaStream_t stream = stream_of(exec_);
  CAROUSEL_NCCL(ncclGroupStart());
  std::byte* at = bytes.data();
  for (const int peer : peers) {
    CAROUSEL_NCCL(ncclSend(at++, 1, ncclInt8, peer, all_->world, stream));
    CAROUSEL_NCCL(ncclRecv(at++, 1, ncclInt8, peer, all_->world, stream));
  }
  CAROUSEL_NCCL(ncclGroupEnd());
  all_->for_each_of_groups([&](ncclComm_t ranks) {
    CAROUSEL_NCCL(
        ncclAllReduce(number.data(), number.data(), 1, real_type, ncclSum, ranks, stream));
  });
  finish(exec_, "carousel::comm::warm");
}

void NcclSession::close() {
  all_->for_each_of_groups([](ncclComm_t ranks) { CAROUSEL_NCCL(ncclCommDestroy(ranks)); });
  CAROUSEL_NCCL(ncclCommDestroy(all_->world));
  all_->groups.clear();
  all_->world = nullptr;
}

std::unique_ptr<CommunicationQueue> NcclSession::queue(int requests, Clock clock) {
  return std::make_unique<Queue>(exec_, *all_, requests, std::move(clock));
}

std::string NcclSession::failure() const {
  const auto look = [](ncclComm_t ranks) -> std::string {
    ncclResult_t result = ncclSuccess;
    if (ranks == nullptr || ncclCommGetAsyncError(ranks, &result) != ncclSuccess) return {};
    if (result == ncclSuccess || result == ncclInProgress) return {};
    return fmt::format("NCCL: {}: {}", ncclGetErrorString(result), ncclGetLastError(ranks));
  };
  std::string told = look(all_->world);
  all_->for_each_of_groups([&](ncclComm_t ranks) {
    if (told.empty()) told = look(ranks);
  });
  return told;
}

}  // namespace carousel
