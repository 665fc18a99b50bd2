// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What all ranks agree on: errors, the least number, and bytes of rank 0.

#include <gmock/gmock.h>

#include "tests/mpi_session.hpp"

namespace carousel::test {
namespace {

/// What together() throws here when some ranks fail.
AgreedError agreed(const std::function<void()>& action) {
  try {
    session().together(action);
  } catch (const AgreedError& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ExitCode::done, ""};
}

TEST(MpiSession, IsSilentWhenAllIsWell) {
  int done = 0;
  session().together([&] { ++done; });
  EXPECT_EQ(done, 1);
}

TEST(MpiSession, GivesTheErrorOfTheLowestFailingRankToAll) {
  const int first = session().size() / 2;
  const AgreedError error = agreed([&] {
    if (session().rank() >= first)
      fail(session().rank() == first ? ExitCode::bad_data : ExitCode::input_output,
           "spoilt on rank {}", session().rank());
  });
  EXPECT_EQ(error.code(), ExitCode::bad_data);
  const std::string text = "spoilt on rank " + std::to_string(first);
  EXPECT_EQ(error.what(), first == 0 ? text : "rank " + std::to_string(first) + ": " + text);
}

TEST(MpiSession, CallsUnknownErrorsInternalAndCutsLongOnes) {
  const AgreedError error = agreed([] { throw std::runtime_error(std::string(5000, 'x')); });
  EXPECT_EQ(error.code(), ExitCode::internal);
  EXPECT_THAT(error.what(), ::testing::StartsWith("xxxx"));
}

TEST(MpiSession, WorksAgainAfterAnError) {
  (void)agreed([] { fail(ExitCode::usage, "no"); });
  EXPECT_NO_THROW(session().together([] {}));
}

TEST(MpiSession, FindsTheLeastNumberOfAnyRank) {
  constexpr std::int64_t number = 1'700'000'000'123'456'789;  // no double holds it
  EXPECT_EQ(session().least(number + session().rank()), number);
  EXPECT_EQ(session().least(number - session().rank()), number - session().size() + 1);
}

TEST(MpiSession, HandsOutTheBytesOfRankZero) {
  int value = session().rank() + 7;
  session().from_first(std::as_writable_bytes(std::span(&value, 1)));
  EXPECT_EQ(value, 7);
}

TEST(MpiSession, TellsTheTextsOfItsNode) {
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(3 * rank), 'x');
  };
  const MpiSession::NodeTexts told = session().texts_of_node(text_of(session().rank()));
  ASSERT_EQ(std::ssize(told.texts), session().ranks_on_node());
  EXPECT_EQ(told.own, session().rank()) << "the tests run on one node";
  for (int rank = 0; rank < session().size(); ++rank)
    EXPECT_EQ(told.texts[static_cast<std::size_t>(rank)], text_of(rank));
}

TEST(MpiSession, CountsTheRanksOfItsNode) {
  EXPECT_GE(session().ranks_on_node(), 1);
  EXPECT_LE(session().ranks_on_node(), session().size());
  EXPECT_GE(session().cores_on_node(), 1);
  const auto [first, last] = session().ends_on_node();
  EXPECT_LE(first, session().rank());
  EXPECT_GE(last, session().rank());
  EXPECT_GE(last - first + 1, session().ranks_on_node());
}

TEST(MpiSession, FindsTheRanksOfItsNodeThatHaveTheSame) {
  const int size = session().ranks_on_node();
  EXPECT_EQ(session().ranks_on_node_with("GPU 0"), size);
  EXPECT_EQ(session().ranks_on_node_with("GPU " + std::to_string(session().rank())), 1);
  if (size != session().size()) return;  // ranks of several nodes
  const bool even = session().rank() % 2 == 0;
  EXPECT_EQ(session().ranks_on_node_with(even ? "even" : "odd"), even ? (size + 1) / 2 : size / 2);
}

}  // namespace
}  // namespace carousel::test
