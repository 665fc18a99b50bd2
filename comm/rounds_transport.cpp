// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/rounds_transport.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace carousel {

class RoundsHub::End final : public Transport {
 public:
  End(RoundsHub& hub, std::unique_ptr<Transport> carrier, int requests)
      : hub_(hub), carrier_(std::move(carrier)), operations_(requests) {
    group_.reserve(requests);
  }
  ~End() override { std::erase(hub_.ends_, this); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  Request post(const Message& message) override { return take(Kind::post, message.round, message); }
  Request send(const Message& message) override { return take(Kind::send, message.round, message); }
  Request join(const Collective& collective) override {
    const Request request = take(Kind::collective, collective.round, {});
    operations_[request].collective = collective;
    return request;
  }

  void exchange(std::int64_t round) override {
    for (Operation& operation : operations_) {
      if (operation.state == State::told && operation.round <= round)
        operation.state = State::ready;
    }
    hub_.go_on();
  }

  void progress() override { hub_.go_on(); }
  [[nodiscard]] bool needs_calls() const override { return carrier_->needs_calls(); }

  std::optional<double> test(Request request) override {
    Operation& operation = operations_[request];
    CAROUSEL_CHECK(operation.state != State::free, "request {} is not pending", request);
    if (operation.state != State::over) return std::nullopt;
    operation.state = State::free;
    return operation.completed;
  }

  /// Ends the group under way and begins the next one; returns whether any began.
  bool go_on() {
    bool began = false;
    while (ended() && begin()) began = true;
    return began;
  }

 private:
  enum class Kind : std::uint8_t { post, send, collective };
  enum class State : std::uint8_t {
    free,
    told,       // of a round that is not exchanged yet
    ready,      // waits for the groups before
    under_way,  // in the group that is
    arrived,    // in that group, which has others that are not
    over,       // with its group
  };
  struct Operation {
    State state = State::free;
    Kind kind = Kind::post;
    std::int64_t round = 0;
    std::int64_t number = 0;  // order of start
    Message message = {};
    Collective collective = {};
    Request carried = 0;
    double completed = 0;
  };

  Request take(Kind kind, std::int64_t round, const Message& message) {
    const auto free = std::ranges::find(operations_, State::free, &Operation::state);
    CAROUSEL_CHECK(free != operations_.end(), "more than {} messages pending", operations_.size());
    *free = {.state = State::told,
             .kind = kind,
             .round = round,
             .number = started_++,
             .message = message};
    return static_cast<Request>(free - operations_.begin());
  }

  bool ended() {
    if (!group_.empty()) carrier_->progress();
    double last = 0;
    for (Operation* operation : group_) {
      if (operation->state == State::under_way) {
        const std::optional<double> completed = carrier_->test(operation->carried);
        if (!completed) continue;
        operation->completed = *completed;
        operation->state = State::arrived;
      }
      last = std::max(last, operation->completed);
    }
    if (std::ranges::find(group_, State::under_way, &Operation::state) != group_.end())
      return false;
    for (Operation* operation : group_) {
      operation->completed = last;
      operation->state = State::over;
    }
    group_.clear();
    return true;
  }

  /// Messages of one name keep their order, whatever the order of names at either end.
  bool begin() {
    const Operation* first = nullptr;
    for (const Operation& operation : operations_) {
      if (operation.state == State::ready && (first == nullptr || operation.round < first->round))
        first = &operation;
    }
    if (first == nullptr) return false;
    for (Operation& operation : operations_) {
      if (operation.state == State::ready && operation.round == first->round)
        group_.push_back(&operation);
    }
    std::ranges::sort(group_, {}, [](const Operation* operation) {
      return std::pair(operation->message.tag, operation->number);
    });
    for (Operation* operation : group_) {
      operation->state = State::under_way;
      Message message = operation->message;
      message.tag = 0;
      switch (operation->kind) {
        case Kind::post:
          operation->carried = carrier_->post(message);
          break;
        case Kind::send:
          operation->carried = carrier_->send(message);
          break;
        case Kind::collective:
          operation->carried = carrier_->join(operation->collective);
          break;
      }
    }
    return true;
  }

  RoundsHub& hub_;
  std::unique_ptr<Transport> carrier_;
  std::vector<Operation> operations_;
  std::vector<Operation*> group_;  // under way
  std::int64_t started_ = 0;
};

std::unique_ptr<Transport> RoundsHub::transport(std::unique_ptr<Transport> carrier, int requests) {
  auto end = std::make_unique<End>(*this, std::move(carrier), requests);
  ends_.push_back(end.get());
  return end;
}

void RoundsHub::go_on() {
  bool moved = true;
  while (moved) {
    moved = false;
    for (End* end : ends_) moved = end->go_on() || moved;
  }
}

}  // namespace carousel
