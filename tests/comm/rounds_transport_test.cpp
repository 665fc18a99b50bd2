// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Groups of messages: when they begin, what they wait for, and that they need no tags. Whole runs
// in rounds, also over MPI, are in tests/core/train.

#include "comm/rounds_transport.hpp"

#include "comm/local_transport.hpp"
#include "tests/layers/device.hpp"

namespace carousel::test {
namespace {

class RoundsTransport : public ::testing::Test {
 protected:
  static constexpr int devices = 3;

  RoundsTransport() {
    for (int d = 0; d < devices; ++d) ends_.push_back(rounds_.transport(hub_.transport(d), 8));
  }

  Request post(int here, int from, int tag, const Device<int>& to, std::int64_t round) {
    return ends_[here]->post(message(from, tag, to, round));
  }
  Request send(int here, int to, int tag, const Device<int>& from, std::int64_t round) {
    return ends_[here]->send(message(to, tag, from, round));
  }
  void exchange(int device, std::int64_t round) {
    ends_[device]->exchange(round);
    // GPUs copy later; then the next group begins, which is one at most in these tests.
    for (int left = runs_on_host ? 0 : 2; left > 0; --left) {
      Kokkos::fence("carousel::test::exchanged");
      ends_[device]->progress();
    }
  }
  [[nodiscard]] std::optional<double> end_of(int device, Request request) {
    return ends_[device]->test(request);
  }
  [[nodiscard]] bool over(int device, Request request) {
    return end_of(device, request).has_value();
  }

  static Message message(int peer, int tag, const Device<int>& data, std::int64_t round) {
    return {peer, tag, reinterpret_cast<std::byte*>(data.data()), data.size() * sizeof(int), round};
  }

  const ExecutionSpace exec_;
  double now_ = 0;
  LocalHub hub_{exec_, {{0, 1, 2}}, 64, [this] { return now_; }};
  RoundsHub rounds_;
  std::vector<std::unique_ptr<Transport>> ends_;
};

TEST_F(RoundsTransport, NothingMovesBeforeBothEndsExchange) {
  const Device<int> from = to_device(std::vector<int>{7});
  const Device<int> to = to_device(std::vector<int>{0});
  const Request received = post(1, 0, 5, to, 3);
  const Request sent = send(0, 1, 5, from, 3);
  EXPECT_FALSE(over(1, received));
  exchange(1, 2);  // of an earlier round there is nothing
  exchange(0, 3);
  EXPECT_FALSE(over(1, received));
  EXPECT_FALSE(over(0, sent));
  EXPECT_EQ(to_host(to), std::vector<int>{0});
  exchange(1, 3);
  EXPECT_TRUE(over(1, received));
  EXPECT_TRUE(over(0, sent));
  EXPECT_EQ(to_host(to), std::vector<int>{7});
}

TEST_F(RoundsTransport, MessagesOfAGroupAreOverTogether) {
  const Device<int> data = to_device(std::vector<int>{1});
  const Device<int> landed = to_device(std::vector<int>{0});
  const Device<int> other = to_device(std::vector<int>{0});
  const Request first = post(1, 0, 0, landed, 1);
  const Request second = post(1, 2, 0, other, 1);
  exchange(1, 1);
  (void)send(0, 1, 0, data, 1);
  now_ = 4;
  exchange(0, 1);
  EXPECT_EQ(to_host(landed), std::vector<int>{1});
  EXPECT_FALSE(over(1, first)) << "its group waits for device 2";
  (void)send(2, 1, 0, data, 1);
  now_ = 6;
  exchange(2, 1);
  EXPECT_EQ(end_of(1, first), 6);
  EXPECT_EQ(end_of(1, second), 6);
}

TEST_F(RoundsTransport, AGroupBeginsWhenTheOneBeforeIsOver) {
  const Device<int> data = to_device(std::vector<int>{1});
  const Device<int> early = to_device(std::vector<int>{0});
  const Device<int> late = to_device(std::vector<int>{0});
  const Request second = post(1, 2, 0, late, 2);
  const Request first = post(1, 0, 0, early, 1);
  exchange(1, 2);
  (void)send(2, 1, 0, data, 2);
  exchange(2, 2);
  EXPECT_FALSE(over(1, second));
  EXPECT_EQ(to_host(late), std::vector<int>{0});
  (void)send(0, 1, 0, data, 1);
  exchange(0, 1);
  EXPECT_TRUE(over(1, first));
  EXPECT_TRUE(over(1, second));
  EXPECT_EQ(to_host(late), std::vector<int>{1});
}

TEST_F(RoundsTransport, MessagesMeetByNameWhateverTheirOrder) {
  const Device<int> one = to_device(std::vector<int>{1});
  const Device<int> two = to_device(std::vector<int>{2});
  const Device<int> landed_one = to_device(std::vector<int>{0});
  const Device<int> landed_two = to_device(std::vector<int>{0});
  (void)send(0, 1, 9, two, 1);
  (void)send(0, 1, 3, one, 1);
  (void)post(1, 0, 3, landed_one, 1);
  (void)post(1, 0, 9, landed_two, 1);
  exchange(0, 1);
  exchange(1, 1);
  EXPECT_EQ(to_host(landed_one), std::vector<int>{1});
  EXPECT_EQ(to_host(landed_two), std::vector<int>{2});
}

TEST_F(RoundsTransport, CollectivesHaveRoundsToo) {
  std::vector<Device<real>> numbers;
  std::vector<Request> requests;
  for (int d = 0; d < devices; ++d) {
    numbers.push_back(to_device(std::vector<real>{real(d), 1}));
    requests.push_back(ends_[d]->join({.kind = Collective::Kind::all_reduce,
                                       .group = 0,
                                       .data = numbers[d].data(),
                                       .count = 2,
                                       .round = 4}));
  }
  exchange(0, 4);
  exchange(2, 4);
  EXPECT_FALSE(over(2, requests[2]));
  exchange(1, 4);
  for (int d = 0; d < devices; ++d) {
    EXPECT_TRUE(over(d, requests[d]));
    EXPECT_EQ(to_host(numbers[d]), (std::vector<real>{3, 3}));
  }
}

}  // namespace
}  // namespace carousel::test
