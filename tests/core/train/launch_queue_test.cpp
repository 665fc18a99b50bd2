// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The queues of a device on the host: order, events, room, and who makes the calls of a transport.

#include "core/train/launch_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/check.hpp"
#include "core/train/host_communication.hpp"

namespace carousel::test {
namespace {

constexpr int room = 4;

class LaunchQueues : public ::testing::Test {
 protected:
  /// Submits a task that notes a number.
  void note(int number, bool yields = false) {
    queue_.submit([this, number] { done_.push_back(number); }, yields);
  }
  void run_all() {
    while (!queue_.empty() && !queue_.blocked()) queue_.run_next();
  }

  LaunchQueue queue_{ExecutionSpace(), room};
  std::vector<int> done_;
};

TEST_F(LaunchQueues, RunTasksInOrderWhenTheyAreTold) {
  for (int k = 0; k < 3; ++k) note(k);
  EXPECT_TRUE(done_.empty());
  run_all();
  EXPECT_EQ(done_, (std::vector<int>{0, 1, 2}));
}

TEST_F(LaunchQueues, ReachAnEventWhenAllBeforeItIsDone) {
  EXPECT_TRUE(queue_.record().reached()) << "nothing is before it";
  note(0);
  note(1);
  const Event event = queue_.record();
  note(2);
  EXPECT_FALSE(queue_.run_next());
  EXPECT_FALSE(event.reached());
  EXPECT_TRUE(queue_.run_next()) << "an event is reached";
  EXPECT_TRUE(event.reached());
  EXPECT_FALSE(queue_.run_next());
  EXPECT_TRUE(queue_.record().reached());
}

TEST_F(LaunchQueues, WaitForEventsOfOthers) {
  HostTimeline other;
  note(0);
  queue_.wait({&other, 2});
  note(1);
  note(2);
  run_all();
  EXPECT_EQ(done_, std::vector<int>{0});
  other.reach(1);
  run_all();
  EXPECT_EQ(done_, std::vector<int>{0});
  other.reach(2);
  run_all();
  EXPECT_EQ(done_, (std::vector<int>{0, 1, 2}));
}

TEST_F(LaunchQueues, KnowTheirRoomAndWhoseTurnItIs) {
  int submitted = 0;
  for (int k = 0; k < 5; ++k) {
    for (; !queue_.full(); ++submitted) note(submitted, submitted % 3 == 0);
    EXPECT_EQ(submitted, std::ssize(done_) + room);
    EXPECT_EQ(queue_.yields(), done_.size() % 3 == 0);
    queue_.run_next();
  }
  note(submitted++);
  EXPECT_TRUE(queue_.full());
  note(submitted++);
  EXPECT_THROW(note(submitted), Error) << "one further task is the most";
  run_all();
  EXPECT_EQ(std::ssize(done_), submitted);
}

/// What a transport was asked for; it completes what it is told to.
class ToldTransport final : public Transport {
 public:
  struct Told {
    std::mutex mutex;
    std::vector<int> tags;  // of messages, in the order of their start
    bool complete = false;
    bool fail = false;
    int looks = 0;

    template <class Get>
    auto get(Get&& what) {
      const std::lock_guard lock(mutex);
      return what(*this);
    }
  };
  explicit ToldTransport(Told& told) : told_(told) {}

  Request post(const Message& message) override { return start(message.tag); }
  Request send(const Message& message) override { return start(message.tag); }
  Request join(const Collective& collective) override { return start(collective.group); }
  void progress() override {
    told_.get([](Told& told) {
      ++told.looks;
      if (told.fail) fail(ExitCode::peer_lost, "lost");
      return 0;
    });
  }
  [[nodiscard]] bool needs_calls() const override { return true; }
  std::optional<double> test(Request /*request*/) override {
    return told_.get([](Told& told) { return told.complete ? std::optional(7.0) : std::nullopt; });
  }

 private:
  Request start(int tag) {
    return told_.get([&](Told& told) {
      told.tags.push_back(tag);
      return static_cast<Request>(told.tags.size()) - 1;
    });
  }
  Told& told_;
};

class HostCommunications : public ::testing::TestWithParam<Helping> {
 protected:
  [[nodiscard]] std::unique_ptr<CommunicationQueue> queue(int requests) {
    return all_.queue({.transport = std::make_unique<ToldTransport>(told_),
                       .requests = requests,
                       .clock = [] { return 3.0; }});
  }
  [[nodiscard]] std::vector<int> tags() {
    return told_.get([](const auto& told) { return told.tags; });
  }
  /// Lends a hand until it holds, as a device does that has nothing else to do.
  template <class Condition>
  void help_until(CommunicationQueue& queue, Condition&& holds) {
    while (!holds()) queue.help();
  }

  ToldTransport::Told told_;
  HostCommunication all_{GetParam()};
  HostTimeline computed_;
};

TEST_P(HostCommunications, StartInOrderWhenTheirEventIsReached) {
  const auto queue = this->queue(3);
  (void)queue->send({.tag = 10}, {&computed_, 1});
  (void)queue->post({.tag = 11}, {&computed_, 2});
  (void)queue->join({.group = 12}, {&computed_, 2});
  queue->help();
  EXPECT_TRUE(tags().empty());
  computed_.reach(1);
  help_until(*queue, [&] { return tags().size() == 1; });
  queue->begin_due();
  EXPECT_EQ(tags(), std::vector<int>{10});
  computed_.reach(2);
  help_until(*queue, [&] { return tags().size() == 3; });
  EXPECT_EQ(tags(), (std::vector<int>{10, 11, 12}));
}

TEST_P(HostCommunications, TellWhenOperationsAreDoneAndUseRequestsAgain) {
  const auto queue = this->queue(1);
  for (int k = 0; k < 3; ++k) {
    told_.get([](auto& told) { return told.complete = false; });
    const Request request = queue->send({.tag = k}, {});
    EXPECT_THROW((void)queue->send({.tag = 9}, {}), Error) << "it has one request";
    const Event done = queue->done(request);
    help_until(*queue, [&] { return std::ssize(tags()) == k + 1; });
    EXPECT_FALSE(done.reached());
    told_.get([](auto& told) { return told.complete = true; });
    help_until(*queue, [&] { return done.reached(); });
    EXPECT_EQ(queue->times(request)->started, 3);
    EXPECT_EQ(queue->times(request)->completed, 7);
    queue->release(request);
  }
}

TEST_P(HostCommunications, LookAtWhatIsUnderWayWhileTheDeviceComputes) {
  const auto queue = this->queue(1);
  const Event done = queue->done(queue->send({.tag = 1}, {}));
  queue->begin_due();
  told_.get([](auto& told) { return told.complete = true; });
  while (!done.reached()) std::this_thread::yield();  // nobody helps
}

TEST_P(HostCommunications, TellWhatWentWrongMeanwhile) {
  const auto queue = this->queue(1);
  told_.get([](auto& told) { return told.fail = true; });
  (void)queue->send({.tag = 1}, {});
  queue->begin_due();
  const auto help = [&] {
    while (true) queue->help();
  };
  EXPECT_THROW(help(), Error);
}

INSTANTIATE_TEST_SUITE_P(Threads, HostCommunications,
                         ::testing::Values(Helping::helped, Helping::alone));

/// Whose sends take as long as a copy from a GPU that has much to do: until somebody says so.
class SlowTransport final : public Transport {
 public:
  struct Gate {
    std::atomic<bool> reached = false;
    std::atomic<bool> open = false;
    bool was_opened = false;  // in time

    void pass() {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      reached = true;
      while (!open && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      was_opened = open;
    }
  };
  explicit SlowTransport(Gate& gate) : gate_(gate) {}

  Request post(const Message& /*message*/) override { return 1; }
  Request send(const Message& /*message*/) override {
    gate_.pass();
    return 0;
  }
  Request join(const Collective& /*collective*/) override { return 2; }
  std::optional<double> test(Request /*request*/) override { return 7.0; }

 private:
  Gate& gate_;
};

/// The thread that launches has kernels to launch meanwhile.
TEST(StagedCommunication, IsHandedMessagesWhileACopyIsUnderWay) {
  SlowTransport::Gate gate;
  {
    HostCommunication all(Helping::alone);
    const auto queue =
        all.queue({.transport = std::make_unique<SlowTransport>(gate), .requests = 3, .clock = [] {
                     return 3.0;
                   }});
    const Event sent = queue->done(queue->send({.tag = 1}, {}));
    while (!gate.reached) std::this_thread::yield();
    const Event posted = queue->done(queue->post({.tag = 2}, {}));
    queue->exchange(0);
    queue->begin_due();
    queue->help();
    EXPECT_FALSE(queue->full() || sent.reached() || posted.reached());
    gate.open = true;
    while (!sent.reached() || !posted.reached()) queue->help();
  }
  EXPECT_TRUE(gate.was_opened) << "somebody waited for the copy";
}

/// Whatever is handed over while the thread is about to sleep is seen.
TEST(StagedCommunication, NeverSleepsOverAMessage) {
  ToldTransport::Told told;
  told.complete = true;
  HostCommunication all(Helping::alone);
  const auto queue =
      all.queue({.transport = std::make_unique<ToldTransport>(told), .requests = 1, .clock = [] {
                   return 3.0;
                 }});
  for (int k = 0; k < 2000; ++k) {
    const Request request = queue->send({.tag = k}, {});
    const Event done = queue->done(request);
    while (!done.reached()) std::this_thread::yield();
    queue->release(request);
  }
  EXPECT_EQ(told.tags.size(), 2000U);
}

}  // namespace
}  // namespace carousel::test
