// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// NCCL's queue with another library in NCCL's place; every rank is one device.

#include "comm/nccl_session.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "core/base/check.hpp"
#include "tests/comm/nccl_double.hpp"
#include "tests/mpi_session.hpp"

namespace carousel::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int room = 9;

class NcclQueue : public ::testing::Test {
 protected:
  NcclQueue() {
    std::vector<int> all(size_);
    std::iota(all.begin(), all.end(), 0);
    std::vector<int> peers = all;
    std::erase(peers, rank_);
    // All in another order, and the first one alone.
    std::ranges::reverse(all);
    clear_nccl();
    session_.emplace(session(), exec_,
                     NcclSession::Spec{.groups = {all, {0}}, .peers = peers, .nodes = {}});
    warmed_ = nccl_calls();
    clear_nccl();
    queue_ = session_->queue(room, [this] { return now_; });
  }
  void TearDown() override {
    queue_.reset();
    session_->close();
    EXPECT_EQ(nccl_calls().open, 0);
    break_nccl(ncclSuccess);
  }

  template <class T>
  static Message message(int peer, int tag, std::vector<T>& data, std::int64_t round) {
    return {.peer = peer,
            .tag = tag,
            .data = reinterpret_cast<std::byte*>(data.data()),
            .bytes = data.size() * sizeof(T),
            .round = round};
  }

  const int rank_ = session().rank();
  const int size_ = session().size();
  const int next_ = (rank_ + 1) % size_;
  const int before_ = (rank_ + size_ - 1) % size_;
  const ExecutionSpace exec_;
  double now_ = 1;
  NcclCalls warmed_;
  std::optional<NcclSession> session_;
  std::unique_ptr<CommunicationQueue> queue_;
};

TEST_F(NcclQueue, OpensEveryConnectionBeforeItIsNeeded) {
  EXPECT_EQ(warmed_.splits, 2);
  EXPECT_EQ(std::ssize(warmed_.counts.sent), size_ - 1);
  EXPECT_EQ(std::ssize(warmed_.counts.posted), size_ - 1);
  EXPECT_EQ(warmed_.counts.all_reduces.messages, rank_ == 0 ? 2 : 1);
}

TEST_F(NcclQueue, MatchesMessagesOfARoundByTheirTags) {
  if (size_ == 1) return;  // nobody sends to itself
  std::vector<int> sent_a{rank_, 10};
  std::vector<int> sent_b{rank_, 20, 21};
  std::vector<int> got_a(2);
  std::vector<int> got_b(3);
  (void)queue_->send(message(next_, 5, sent_b, 1), {});
  const Request a = queue_->post(message(before_, 4, got_a, 1), {});
  (void)queue_->send(message(next_, 4, sent_a, 1), {});
  const Request b = queue_->post(message(before_, 5, got_b, 1), {});
  EXPECT_THAT(nccl_calls().log, IsEmpty());
  EXPECT_THROW((void)queue_->done(a), Error) << "its round is not over";
  now_ = 2;
  queue_->exchange(1);
  EXPECT_TRUE(queue_->done(a).reached());
  EXPECT_TRUE(queue_->done(b).reached());
  EXPECT_EQ(queue_->times(a)->started, 2);
  EXPECT_EQ(queue_->times(a)->completed, 2);
  EXPECT_THAT(got_a, ElementsAre(before_, 10));
  EXPECT_THAT(got_b, ElementsAre(before_, 20, 21));
  EXPECT_EQ(nccl_calls().groups, 1);
}

TEST_F(NcclQueue, LaunchesARoundWhenAllOfItIsThere) {
  if (size_ == 1) return;
  HostTimeline computed;
  std::vector<int> sent{rank_};
  std::vector<int> got{-1};
  std::vector<int> late_sent{10 + rank_};
  std::vector<int> late_got{-1};
  (void)queue_->send(message(next_, 0, late_sent, 2), {&computed, 2});
  (void)queue_->send(message(next_, 0, sent, 1), {&computed, 1});
  const Request first = queue_->post(message(before_, 0, got, 1), {});
  queue_->exchange(1);
  const Request second = queue_->post(message(before_, 0, late_got, 2), {});
  queue_->exchange(2);
  queue_->help();
  EXPECT_FALSE(queue_->done(first).launched());
  computed.reach(1);
  queue_->begin_due();
  EXPECT_TRUE(queue_->done(first).reached());
  EXPECT_FALSE(queue_->done(second).launched());
  EXPECT_THAT(got, ElementsAre(before_));
  queue_->release(first);
  computed.reach(2);
  queue_->begin_due();
  EXPECT_TRUE(queue_->done(second).reached());
  EXPECT_THAT(late_got, ElementsAre(10 + before_));
}

TEST_F(NcclQueue, HasAGroupForEachRoundUpToTheOneExchanged) {
  if (size_ == 1) return;
  queue_->exchange(2);
  EXPECT_EQ(nccl_calls().groups, 0) << "nothing is told of it";
  std::vector<int> sent{1};
  std::vector<int> got(4);
  for (int k = 0; k < 4; ++k) {
    const std::int64_t round = std::array{4, 3, 5, 3}[static_cast<std::size_t>(k)];
    (void)queue_->send(message(next_, k, sent, round), {});
    (void)queue_->post({.peer = before_,
                        .tag = k,
                        .data = reinterpret_cast<std::byte*>(&got[static_cast<std::size_t>(k)]),
                        .bytes = sizeof(int),
                        .round = round},
                       {});
  }
  queue_->exchange(4);
  EXPECT_EQ(nccl_calls().groups, 2);
  EXPECT_EQ(nccl_calls().largest_group, 4);
  EXPECT_THAT(got, ElementsAre(1, 1, 0, 1));
}

TEST_F(NcclQueue, GivesTokensAByte) {
  if (size_ == 1) return;
  (void)queue_->send({.peer = next_, .round = 0}, {});
  (void)queue_->post({.peer = before_, .round = 0}, {});
  queue_->exchange(0);
  EXPECT_EQ(nccl_calls().counts.sent.at(next_).bytes, 1);
  EXPECT_EQ(queue_->staging_bytes(), 2);
}

TEST_F(NcclQueue, HasCollectivesBehindTheMessagesOfTheirRound) {
  std::vector<real> sum(3, static_cast<real>(rank_ + 1));
  std::vector<real> given(2, static_cast<real>(rank_));
  std::vector<real> reduced(1, static_cast<real>(1));
  std::vector<int> sent{rank_};
  std::vector<int> got{-1};
  const auto collective = [](Collective::Kind kind, int root, std::vector<real>& data,
                             std::int64_t round) {
    return Collective{.kind = kind,
                      .group = 0,
                      .root = root,
                      .data = data.data(),
                      .count = data.size(),
                      .round = round};
  };
  (void)queue_->join(collective(Collective::Kind::all_reduce, -1, sum, 7), {});
  if (size_ > 1) {
    (void)queue_->post(message(before_, 0, got, 7), {});
    (void)queue_->send(message(next_, 0, sent, 7), {});
  }
  queue_->exchange(7);
  const int root = size_ - 1;
  (void)queue_->join(collective(Collective::Kind::broadcast, root, given, 8), {});
  queue_->exchange(8);
  (void)queue_->join(collective(Collective::Kind::reduce, root, reduced, 9), {});
  queue_->exchange(9);
  const real all = static_cast<real>(size_ * (size_ + 1)) / 2;
  EXPECT_THAT(sum, ElementsAre(all, all, all));
  EXPECT_THAT(given, ElementsAre(static_cast<real>(root), static_cast<real>(root)));
  if (rank_ == root) {
    EXPECT_EQ(reduced.front(), static_cast<real>(size_));
  }
  if (size_ > 1) {
    EXPECT_EQ(got.front(), before_);
    EXPECT_THAT(nccl_calls().log.front(), HasSubstr("from")) << "collectives come later";
  }
}

TEST_F(NcclQueue, TellsWhatGoesWrongBesideAllCalls) {
  EXPECT_EQ(session_->failure(), "");
  break_nccl(ncclInProgress);
  EXPECT_EQ(session_->failure(), "");
  break_nccl(ncclRemoteError);
  EXPECT_EQ(session_->failure(), "NCCL: remote error: said the double");
}

/// Of a plan for as many ranks as have requests pending on rank 0 when they tell it their results.
TEST_F(NcclQueue, HasRoomForThousandsOfRequests) {
  for (const int requests : {1, 1023, 1024, 5000}) {
    SCOPED_TRACE(requests);
    queue_ = session_->queue(requests, [this] { return now_; });
    HostTimeline computed;
    std::vector<real> sums;
    sums.reserve(4 * static_cast<std::size_t>(requests));
    std::int64_t round = 0;
    // As a device does that is ahead: what was told is exchanged and its request used again, until
    // there is no room for more.
    for (std::vector<Request> told; round < 4 && !queue_->full(); ++round) {
      for (int k = 0; k < requests; ++k) {
        ASSERT_TRUE(k == 0 || !queue_->full()) << k << " requests are pending";
        sums.push_back(static_cast<real>(k % 100));
        told.push_back(
            queue_->join({.data = &sums.back(), .count = 1, .round = round}, {&computed, 1}));
      }
      queue_->exchange(round);
      for (const Request request : told) queue_->release(request);
      told.clear();
    }
    ASSERT_GT(round, 0) << "nothing fits";
    computed.reach(1);
    queue_->begin_due();
    EXPECT_EQ(nccl_calls().counts.all_reduces.messages, std::ssize(sums));
    for (std::size_t k = 0; k < sums.size(); ++k)
      ASSERT_EQ(sums[k], static_cast<real>(k % requests % 100 * size_)) << "sum " << k;
    clear_nccl();
  }
}

TEST_F(NcclQueue, RefusesMisuse) {
  std::vector<int> data{1};
  for (int k = 0; k < room; ++k) (void)queue_->post(message(next_, k, data, 3), {});
  EXPECT_THROW((void)queue_->post(message(next_, room, data, 3), {}), Error);
}

}  // namespace
}  // namespace carousel::test
