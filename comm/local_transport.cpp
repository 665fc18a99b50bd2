// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/local_transport.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "core/train/kernels.hpp"

namespace carousel {

class LocalHub::End final : public Transport {
 public:
  End(LocalHub& hub, int device) : hub_(hub), device_(device) {}

  Request post(const Message& message) override { return hub_.start(Kind::post, device_, message); }
  Request send(const Message& message) override { return hub_.start(Kind::send, device_, message); }
  Request all_reduce(real* data, std::size_t count) override {
    return hub_.start(Kind::all_reduce, device_,
                      {.data = reinterpret_cast<std::byte*>(data), .bytes = count * sizeof(real)});
  }
  std::optional<double> test(Request request) override { return hub_.test(request); }
  // A message moves when its second end arrives; there is nothing to drive.
  void progress() override {}

 private:
  LocalHub& hub_;
  int device_;
};

LocalHub::LocalHub(const ExecutionSpace& exec, int devices, int operations, Clock clock)
    : exec_(exec), devices_(devices), clock_(std::move(clock)), operations_(operations) {}

std::unique_ptr<Transport> LocalHub::transport(int device) {
  return std::make_unique<End>(*this, device);
}

Request LocalHub::start(Kind kind, int device, const Message& message) {
  const auto free = std::ranges::find(operations_, Kind::none, &Operation::kind);
  CAROUSEL_CHECK(free != operations_.end(), "more than {} messages pending", operations_.size());
  *free = {kind, device, message, started_++};
  if (kind == Kind::all_reduce)
    sum_all();
  else
    match(*free);
  return static_cast<Request>(free - operations_.begin());
}

std::optional<double> LocalHub::test(Request request) {
  Operation& operation = operations_[request];
  CAROUSEL_CHECK(operation.kind != Kind::none, "request {} is not pending", request);
  if (operation.completed) operation.kind = Kind::none;
  return operation.completed;
}

void LocalHub::match(Operation& mine) {
  const Kind other_kind = mine.kind == Kind::send ? Kind::post : Kind::send;
  Operation* oldest = nullptr;
  for (Operation& other : operations_) {
    if (other.kind == other_kind && !other.completed && other.device == mine.message.peer &&
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
  mine.completed = oldest->completed = clock_();
}

void LocalHub::sum_all() {
  // Only the last device to enter finds everyone here; it adds in device order.
  const auto waits = [](const Operation& operation) {
    return operation.kind == Kind::all_reduce && !operation.completed;
  };
  if (std::ranges::count_if(operations_, waits) < devices_) return;
  const auto of = [&](int device) -> Operation& {
    return *std::ranges::find_if(operations_, [&](const Operation& operation) {
      return waits(operation) && operation.device == device;
    });
  };
  Operation& first = of(0);
  const std::size_t count = first.message.bytes / sizeof(real);
  const Vector sum(reinterpret_cast<real*>(first.message.data), count);
  for (int device = 1; device < devices_; ++device) {
    add(exec_, sum, ConstVector(reinterpret_cast<real*>(of(device).message.data), count));
  }
  for (int device = 1; device < devices_; ++device) {
    Operation& other = of(device);
    copy<MemorySpace, MemorySpace>(exec_, other.message.data, sum.data(), first.message.bytes);
    other.completed = clock_();
  }
  first.completed = clock_();
}

}  // namespace carousel
