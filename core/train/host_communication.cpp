// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/train/host_communication.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/copy.hpp"
#include "core/base/cuda.hpp"
#include "core/plan/staging.hpp"

namespace carousel {
namespace {

/// Between two looks of the thread at what is under way. A look that finds nothing new takes a few
/// microseconds, and the buffers of a socket hold what comes in the meantime.
constexpr auto interval = std::chrono::microseconds(200);
/// The same where nobody else looks.
constexpr auto short_interval = std::chrono::microseconds(20);
/// What a device may hand over before its turn comes; fewer than two steps of a large plan.
constexpr std::size_t queued_orders = 1024;

}  // namespace

class HostCommunication::End final : public CommunicationQueue {
 public:
  End(HostCommunication& all, HostCommunicationSpec spec)
      : all_(all),
        spec_(std::move(spec)),
        staging_(Kokkos::view_alloc("carousel::train::staging", Kokkos::WithoutInitializing),
                 spec_.staging_bytes),
        places_(spec_.requests, spec_.staging_by_size),
        orders_(queued_orders),
        operations_(spec_.requests),
        times_("carousel::train::times", spec_.requests) {
    under_way_.reserve(spec_.requests);
    const std::lock_guard lock(all_.mutex_);
    all_.ends_.push_back(this);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  ~End() override {
    const std::lock_guard lock(all_.mutex_);
    std::erase(all_.ends_, this);
    spec_.transport.reset();  // it may be known to those of other devices
  }

  // ---- By the thread that hands over ----
  [[nodiscard]] bool full() const override {
    return handed_over_.load(std::memory_order_relaxed) - begun_.load(std::memory_order_acquire) ==
           orders_.size();
  }
  Request post(const Message& message, const Event& after) override {
    return start({.kind = Kind::post, .message = message, .after = after});
  }
  Request send(const Message& message, const Event& after) override {
    return start({.kind = Kind::send, .message = message, .after = after});
  }
  Request join(const Collective& collective, const Event& after) override {
    return start({.kind = Kind::collective, .collective = collective, .after = after});
  }
  void exchange(std::int64_t round) override {
    hand_over({.kind = Kind::exchange, .message = {.round = round}});
  }
  [[nodiscard]] Event done(Request request) const override {
    return {&operations_[request].done, operations_[request].uses};
  }
  [[nodiscard]] const OperationTimes* times(Request request) const override {
    return &times_(request);
  }
  void release(Request request) override {
    operations_[request].taken = false;
    places_.give_back(std::exchange(operations_[request].place, -1));
  }

  void begin_due() override {
    if (!all_.is_alone() && is_due()) lend_a_hand(&End::begin);
  }
  void help() override { lend_a_hand(&End::go_on); }
  [[nodiscard]] std::int64_t staging_bytes() const override { return spec_.staging_bytes; }

  // ---- By either thread, with the lock ----
  [[nodiscard]] bool is_due() const {
    const std::size_t next = begun_.load(std::memory_order_relaxed);
    return next < handed_over_.load(std::memory_order_acquire) &&
           orders_[next % orders_.size()].after.reached();
  }

  /// Starts what is due, in order.
  void begin() {
    while (is_due()) {
      const std::size_t next = begun_.load(std::memory_order_relaxed);
      begin(orders_[next % orders_.size()]);
      begun_.store(next + 1, std::memory_order_release);
    }
  }

  /// The same, and looks at what is under way.
  void go_on() {
    begin();
    if (under_way_.empty()) return;
    spec_.transport->progress();
    std::erase_if(under_way_, [&](Operation* operation) {
      const std::optional<double> completed = spec_.transport->test(operation->carried);
      if (!completed) return false;
      operation->landed.bring(spec_.exec);
      times_(operation - operations_.data()).completed = *completed;
      operation->done.reach(++operation->completions);
      return true;
    });
  }
  void go_on_in_thread() {
    use_gpu_of(spec_.exec);  // a thread begins with the first one of the node
    go_on();
  }
  /// Whether the thread has something to do.
  [[nodiscard]] bool needs_thread() const {
    if (!all_.is_alone()) return !under_way_.empty() && spec_.transport->needs_calls();
    return !under_way_.empty() ||
           begun_.load(std::memory_order_relaxed) != handed_over_.load(std::memory_order_relaxed);
  }

 private:
  enum class Kind : std::uint8_t { post, send, collective, exchange };
  struct Order {
    Kind kind = Kind::post;
    Request request = 0;
    Message message = {};
    Collective collective = {};
    Event after = {};
    std::int64_t place = -1;  // in staging
  };
  /// From where to where bytes are copied when an operation is complete.
  struct Copy {
    std::byte* to = nullptr;  // on the device; null: nothing is
    const std::byte* from = nullptr;
    std::size_t bytes = 0;

    void bring(const ExecutionSpace& exec) const {
      if (to == nullptr) return;
      copy<MemorySpace, Kokkos::SharedHostPinnedSpace>(exec, to, from, bytes);
      finish(exec, "carousel::train::unstage");
    }
  };
  struct Operation {
    // Of the thread that hands over:
    bool taken = false;
    std::int64_t uses = 0;
    std::int64_t place = -1;  // in staging
    // Of whoever carries it, until it is done:
    std::int64_t completions = 0;
    Request carried = 0;
    Copy landed = {};
    HostTimeline done;  // uses that are complete
  };

  void lend_a_hand(void (End::*work)()) {
    // Where the thread does all, it may have the lock for as long as a copy takes.
    const std::unique_lock lock = all_.is_alone() ? std::unique_lock(all_.mutex_, std::try_to_lock)
                                                  : std::unique_lock(all_.mutex_);
    if (!lock.owns_lock()) return;
    if (all_.failure_) std::rethrow_exception(all_.failure_);
    if (all_.is_alone()) return;
    const bool idle = under_way_.empty();
    (this->*work)();
    if (idle && needs_thread()) all_.wake();
  }

  Request start(Order order) {
    const auto free = std::ranges::find(operations_, false, &Operation::taken);
    CAROUSEL_CHECK(free != operations_.end(), "more than {} messages pending", operations_.size());
    free->taken = true;
    ++free->uses;
    order.request = static_cast<Request>(free - operations_.begin());
    if (spec_.staging_bytes > 0) order.place = free->place = places_.take(bytes_of(order));
    CAROUSEL_CHECK(places_.size() <= spec_.staging_bytes, "{} bytes of messages, {} were planned",
                   places_.size(), spec_.staging_bytes);
    hand_over(order);
    return order.request;
  }

  void hand_over(const Order& order) {
    CAROUSEL_CHECK(!full(), "more than {} messages wait for their turn", orders_.size());
    const std::size_t place = handed_over_.load(std::memory_order_relaxed);
    orders_[place % orders_.size()] = order;
    handed_over_.store(place + 1, std::memory_order_release);
    // Without the lock, which the thread has for as long as a copy takes.
    if (all_.is_alone()) all_.wake();
  }

  static std::int64_t bytes_of(const Order& order) {
    if (order.kind != Kind::collective) return static_cast<std::int64_t>(order.message.bytes);
    return static_cast<std::int64_t>(order.collective.bytes());
  }

  /// Whether the operation sends what lies on this device, and whether it brings something there.
  [[nodiscard]] bool leaves(const Order& order) const {
    if (order.kind != Kind::collective) return order.kind == Kind::send;
    return order.collective.kind != Collective::Kind::broadcast ||
           order.collective.root == spec_.device;
  }
  [[nodiscard]] bool lands(const Order& order) const {
    if (order.kind != Kind::collective) return order.kind == Kind::post;
    const bool root = order.collective.root == spec_.device;
    const Collective::Kind kind = order.collective.kind;
    const bool rooted = kind == Collective::Kind::reduce || kind == Collective::Kind::broadcast;
    return !rooted || root == (kind == Collective::Kind::reduce);
  }

  /// Puts staged memory in place of that of the device, with what is to leave; returns what is to
  /// be done with it in the end.
  [[nodiscard]] Copy stage(Order& order) {
    if (order.place < 0) return {};
    std::byte* const staged = staging_.data() + order.place;
    const auto bytes = static_cast<std::size_t>(bytes_of(order));
    const bool scatters =
        order.kind == Kind::collective && order.collective.kind == Collective::Kind::reduce_scatter;
    std::byte* const data = order.kind == Kind::collective
                                ? reinterpret_cast<std::byte*>(order.collective.data)
                                : order.message.data;
    if (leaves(order)) {
      const void* const from = scatters ? order.collective.from : static_cast<const void*>(data);
      copy<Kokkos::SharedHostPinnedSpace, MemorySpace>(spec_.exec, staged, from, bytes);
      finish(spec_.exec, "carousel::train::stage");
    }
    order.message.data = staged;
    order.collective.data = reinterpret_cast<real*>(staged);
    order.collective.from = order.collective.data;
    if (scatters) return {data, staged, order.collective.own * sizeof(real)};
    return lands(order) ? Copy{data, staged, bytes} : Copy{};
  }

  void begin(Order& order) {
    if (order.kind == Kind::exchange) return spec_.transport->exchange(order.message.round);
    Operation& operation = operations_[order.request];
    times_(order.request).started = spec_.clock();
    operation.landed = stage(order);
    switch (order.kind) {
      case Kind::post:
        operation.carried = spec_.transport->post(order.message);
        break;
      case Kind::send:
        operation.carried = spec_.transport->send(order.message);
        break;
      case Kind::collective:
        operation.carried = spec_.transport->join(order.collective);
        break;
      case Kind::exchange:
        break;
    }
    under_way_.push_back(&operation);
  }

  HostCommunication& all_;
  HostCommunicationSpec spec_;
  Kokkos::View<std::byte*, Kokkos::SharedHostPinnedSpace> staging_;
  StagingPlaces places_;  // given in the order in which operations are handed over and released
  std::vector<Order> orders_;  // order k in k % room
  std::atomic<std::size_t> handed_over_ = 0;
  std::atomic<std::size_t> begun_ = 0;
  std::vector<Operation> operations_;
  Kokkos::View<OperationTimes*, Kokkos::SharedHostPinnedSpace> times_;  // of each operation
  std::vector<Operation*> under_way_;
};

HostCommunication::HostCommunication(Helping helping)
    : helping_(helping), thread_(&HostCommunication::drive, this) {}

HostCommunication::~HostCommunication() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  wake();
  thread_.join();
}

std::unique_ptr<CommunicationQueue> HostCommunication::queue(HostCommunicationSpec spec) {
  return std::make_unique<End>(*this, std::move(spec));
}

void HostCommunication::wake() {
  calls_.fetch_add(1);
  calls_.notify_one();
}

void HostCommunication::drive() {
  std::unique_lock lock(mutex_);
  try {
    while (!leaving_) {
      const std::uint32_t seen = calls_;  // whatever it looks at now is there, or calls again
      if (std::ranges::none_of(ends_, &End::needs_thread)) {
        lock.unlock();
        calls_.wait(seen);
        lock.lock();
        continue;
      }
      for (End* end : ends_) end->go_on_in_thread();
      lock.unlock();
      std::this_thread::sleep_for(is_alone() ? short_interval : interval);
      lock.lock();
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

}  // namespace carousel
