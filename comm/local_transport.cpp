// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/local_transport.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/add.hpp"
#include "core/base/check.hpp"
#include "core/base/copy.hpp"

namespace carousel {
namespace {

/// sum += added, by whatever thread calls.
void add_numbers([[maybe_unused]] const ExecutionSpace& exec, real* sum, const real* added,
                 std::size_t count) {
  if constexpr (runs_on_host)
    std::transform(sum, sum + count, added, sum, std::plus<>());
  else
    add(exec, Vector(sum, count), ConstVector(added, count));
}

std::byte* bytes_of(const Collective& collective) {
  return reinterpret_cast<std::byte*>(collective.data);
}

}  // namespace

class LocalHub::End final : public Transport {
 public:
  End(LocalHub& hub, int device) : hub_(hub), device_(device) {}

  Request post(const Message& message) override { return hub_.start(Kind::post, device_, message); }
  Request send(const Message& message) override { return hub_.start(Kind::send, device_, message); }
  Request join(const Collective& collective) override { return hub_.join(device_, collective); }
  std::optional<double> test(Request request) override { return hub_.test(request); }

 private:
  LocalHub& hub_;
  int device_;
};

LocalHub::LocalHub(const ExecutionSpace& exec, std::vector<std::vector<int>> groups, int operations,
                   Clock clock)
    : exec_(own_stream(exec)),
      copies_(exec_, operations + 1),
      groups_(std::move(groups)),
      clock_(std::move(clock)),
      operations_(operations) {
  for (const std::vector<int>& group : groups_)
    met_.reserve(std::max(met_.capacity(), group.size()));
}

std::unique_ptr<Transport> LocalHub::transport(int device) {
  return std::make_unique<End>(*this, device);
}

LocalHub::Operation& LocalHub::take(Kind kind, int device) {
  const auto free = std::ranges::find(operations_, Kind::none, &Operation::kind);
  CAROUSEL_CHECK(free != operations_.end(), "more than {} messages pending", operations_.size());
  *free = {.kind = kind, .device = device, .number = started_++};
  return *free;
}

Request LocalHub::start(Kind kind, int device, const Message& message) {
  Operation& mine = take(kind, device);
  mine.message = message;
  match(mine);
  return static_cast<Request>(&mine - operations_.data());
}

Request LocalHub::join(int device, const Collective& collective) {
  Operation& mine = take(Kind::collective, device);
  mine.collective = collective;
  meet(collective.group);
  return static_cast<Request>(&mine - operations_.data());
}

std::optional<double> LocalHub::test(Request request) {
  Operation& operation = operations_[request];
  CAROUSEL_CHECK(operation.kind != Kind::none, "request {} is not pending", request);
  if (operation.mark > 0) complete(operation, operation.mark);
  if (operation.completed) operation.kind = Kind::none;
  return operation.completed;
}

void LocalHub::complete(Operation& operation, std::int64_t mark) {
  operation.mark = mark;
  if (!operation.completed && copies_.has_reached(mark)) operation.completed = clock_();
}

void LocalHub::match(Operation& mine) {
  const Kind other_kind = mine.kind == Kind::send ? Kind::post : Kind::send;
  Operation* oldest = nullptr;
  for (Operation& other : operations_) {
    if (other.kind == other_kind && other.mark == 0 && other.device == mine.message.peer &&
        other.message.peer == mine.device && other.message.tag == mine.message.tag &&
        (oldest == nullptr || other.number < oldest->number))
      oldest = &other;
  }
  if (oldest == nullptr) return;
  CAROUSEL_CHECK(oldest->message.bytes == mine.message.bytes,
                 "device {} and device {} disagree on a message: {} and {} bytes", mine.device,
                 oldest->device, mine.message.bytes, oldest->message.bytes);
  const Message& from = mine.kind == Kind::send ? mine.message : oldest->message;
  const Message& to = mine.kind == Kind::send ? oldest->message : mine.message;
  copy<MemorySpace, MemorySpace>(exec_, to.data, from.data, to.bytes);
  const std::int64_t mark = copies_.mark();
  complete(mine, mark);
  complete(*oldest, mark);
}

void LocalHub::meet(int group) {
  // Each device's oldest collective of the group: only the last one to join finds all of them here.
  met_.clear();
  for (const int device : groups_[group]) {
    Operation* oldest = nullptr;
    for (Operation& operation : operations_) {
      if (operation.kind == Kind::collective && operation.mark == 0 && operation.device == device &&
          operation.collective.group == group &&
          (oldest == nullptr || operation.number < oldest->number))
        oldest = &operation;
    }
    if (oldest == nullptr) return;
    met_.push_back(oldest);
  }
  const Collective::Kind kind = met_.front()->collective.kind;
  if (kind == Collective::Kind::reduce_scatter || kind == Collective::Kind::all_gather)
    exchange_parts();
  else
    exchange_all(groups_[group]);
  const std::int64_t mark = copies_.mark();
  for (Operation* operation : met_) complete(*operation, mark);
}

/// Of those who met: a sum, or copies, of all numbers.
void LocalHub::exchange_all(const std::vector<int>& group) {
  const Collective& what = met_.front()->collective;
  const auto root = std::ranges::find(group, what.root) - group.begin();
  Collective* holder = &met_[what.root < 0 ? 0 : static_cast<std::size_t>(root)]->collective;
  if (what.kind != Collective::Kind::broadcast) {
    // In the order of the group, whoever gets the sum.
    for (std::size_t k = 1; k < met_.size(); ++k)
      add_numbers(exec_, what.data, met_[k]->collective.data, what.count);
    if (holder->data != what.data)
      copy<MemorySpace, MemorySpace>(exec_, holder->data, what.data, what.count * sizeof(real));
  }
  for (const Operation* operation : met_) {
    real* data = operation->collective.data;
    if (what.kind != Collective::Kind::reduce && data != holder->data)
      copy<MemorySpace, MemorySpace>(exec_, data, holder->data, what.count * sizeof(real));
  }
}

/// Of those who met: sums in the order of the group, or copies.
void LocalHub::exchange_parts() {
  const Collective& what = met_.front()->collective;
  const bool sums = what.kind == Collective::Kind::reduce_scatter;
  std::size_t at = 0;
  for (std::size_t k = 0; k < met_.size(); ++k) {
    const auto part = static_cast<std::size_t>(what.parts[k]);
    const Collective& own = met_[k]->collective;
    // Where all of it is to be lost, parts of others are not yet.
    real* const sum = own.from == own.data ? own.data + at : own.data;
    if (sums && sum != own.from + at)
      copy<MemorySpace, MemorySpace>(exec_, sum, own.from + at, part * sizeof(real));
    for (std::size_t m = 0; m < met_.size(); ++m) {
      const Collective& other = met_[m]->collective;
      if (m == k) continue;
      if (sums)
        add_numbers(exec_, sum, other.from + at, part);
      else
        copy<MemorySpace, MemorySpace>(exec_, bytes_of(other) + at, bytes_of(own) + at, part);
    }
    at += part;
  }
  at = 0;
  for (std::size_t k = 0; k < met_.size() && sums; ++k) {
    const Collective& own = met_[k]->collective;
    const auto part = static_cast<std::size_t>(what.parts[k]);
    if (own.from == own.data) {
      CAROUSEL_CHECK(runs_on_host, "a sum of parts in place");
      std::copy(own.data + at, own.data + at + part, own.data);
    }
    at += part;
  }
}

}  // namespace carousel
