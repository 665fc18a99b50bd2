// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// The checker against schedules that are wrong in one place: thousands of random single mutations.
// Each is rejected with a message that names device and action, or it is harmless, which this file
// shows in its own way.
//
// Harmless is only one kind: two neighbours of one list that change places, touch nothing in common
// (or both only read it), and after which no chain of waits closes upon itself.

#include "core/proof/checker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "tests/core/plan/blocking_groups.hpp"
#include "tests/core/plan/schedules.hpp"

namespace carousel {
namespace {

using testing::all_variants;
using testing::describe;
using testing::Lists;
using testing::lists_of;
using testing::schedule_of;

constexpr const char* kinds[] = {
    "drop",  "duplicate",   "swap", "peer",    "version",   "stage", "buffer", "source",
    "bytes", "micro_batch", "step", "payload", "direction", "kind",  "group",  "piece"};

/// Where and how a list was made wrong.
struct Mutation {
  std::string kind;
  int device = 0;
  std::size_t index = 0;
};

/// Changes one number of the action to another one of its neighbourhood.
template <class Number>
void change(Number& number, std::mt19937& random, Number first, Number last) {
  const Number before = number;
  while (number == before)
    number = static_cast<Number>(first + static_cast<Number>(random() % (last - first + 1)));
}

Mutation mutate(Lists& lists, std::mt19937& random) {
  Mutation mutation{kinds[random() % std::size(kinds)], static_cast<int>(random() % lists.size())};
  std::vector<Action>& list = lists[mutation.device];
  mutation.index = random() % (list.size() - 1);
  const auto at = list.begin() + static_cast<std::ptrdiff_t>(mutation.index);
  const std::string& kind = mutation.kind;
  if (kind == "drop") list.erase(at);
  if (kind == "duplicate") list.insert(at, Action(*at));
  if (kind == "swap") std::iter_swap(at, at + 1);
  if (kind == "peer") change(at->peer, random, -1, 5);
  if (kind == "version")
    change<std::int64_t>(at->version, random, at->version - 2, at->version + 2);
  if (kind == "stage") change(at->stage, random, -1, 5);
  if (kind == "group") change(at->group, random, -1, 4);
  if (kind == "piece") change(at->piece, random, -1, 5);
  if (kind == "buffer") change(at->buffer, random, -1, 7);
  if (kind == "source") change(at->source, random, -1, 7);
  if (kind == "bytes") {
    std::int64_t blocks = at->bytes / 64;
    change<std::int64_t>(blocks, random, 0, 3);
    at->bytes = 64 * blocks;
  }
  if (kind == "micro_batch") change(at->micro_batch, random, -1, 5);
  if (kind == "step") change<std::int64_t>(at->step, random, at->step - 2, at->step + 2);
  const auto code = [&](auto& value, int last) {
    int number = static_cast<int>(value);
    change(number, random, 0, last);
    value = static_cast<std::decay_t<decltype(value)>>(number);
  };
  if (kind == "payload") code(at->payload, static_cast<int>(Payload::metrics));
  if (kind == "direction") code(at->direction, static_cast<int>(Direction::send));
  if (kind == "kind") code(at->kind, static_cast<int>(ActionKind::all_gather));
  return mutation;
}

/// What an action reads or writes on its device. True: writes.
using Thing = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
using Touched = std::map<Thing, bool>;

/// Everything one action depends on or changes, worked out from what the executor does with it.
class Touch {
 public:
  Touch(const Schedule& schedule, int device)
      : schedule_(schedule),
        counts_(schedule.buffers(device)),
        device_(device),
        stages_(schedule.rule().stages()) {}

  Touched operator()(const Action& a) {
    touched_.clear();
    // Whoever runs in step t needs the decision about step t - 3.
    if (a.step >= 3) read({"decision", a.step - 3, 0, 0, 0});
    switch (a.kind) {
      case ActionKind::load:
        write(input(a));
        break;
      case ActionKind::copy:
        parameters(a, a.version, false);
        copy(a, a.payload == Payload::forward_copy, true);
        break;
      case ActionKind::forward:
        passes(a);
        write({"frame", a.stage, a.buffer, 0, 0});
        break;
      case ActionKind::backward:
        passes(a);
        read({"frame", a.stage, a.source, 0, 0});
        gradients(a, a.buffer, true);
        if (a.stage > 0) write(boundary(a, a.stage - 1));
        if (a.stage + 1 < stages_) write(boundary(a, a.stage));
        break;
      case ActionKind::accumulate:
        gradients(a, a.buffer, true);
        gradients(a, a.source, true);
        break;
      case ActionKind::measure:
        gradients(a, a.source, false);
        write({"norm", a.stage, std::max(a.piece, 0), 0, 0});
        break;
      case ActionKind::update:
        gradients(a, a.source, false);
        if (a.piece < 0)
          for (int j = 0; j < stages_; ++j) read({"norm", j, 0, 0, 0});
        else
          for (int p = 0; p < pieces(a.stage); ++p) read({"norm", a.stage, p, 0, 0});
        parameters(a, a.step, false);
        parameters(a, a.version, true);
        if (a.stage == 0 && a.piece <= 0) write({"decision", a.step, 0, 0, 0});
        break;
      case ActionKind::release:
        write({"frame", a.stage, a.buffer, 0, 0});
        if (a.stage == counts_.first_stage) {
          write(input(a));
          write(landing(a));
        }
        break;
      default:
        message(a);
    }
    return touched_;
  }

 private:
  void read(const Thing& thing) { touched_.insert({thing, false}); }
  void write(const Thing& thing) { touched_[thing] = true; }

  [[nodiscard]] std::int64_t turn(const Action& a, int count) const {
    return schedule_.round_robin(a.step, a.micro_batch, count);
  }
  [[nodiscard]] Thing input(const Action& a) const {
    return {"input", turn(a, counts_.inputs), 0, 0, 0};
  }
  [[nodiscard]] Thing landing(const Action& a) const {
    return {"landing", turn(a, counts_.frames[counts_.first_stage]), 0, 0, 0};
  }
  [[nodiscard]] Thing frame(const Action& a, int stage) const {
    return {"frame", stage, turn(a, counts_.frames[stage]), 0, 0};
  }
  [[nodiscard]] Thing boundary(const Action& a, int stage) const {
    return {"boundary", stage, turn(a, counts_.boundaries[stage]), 0, 0};
  }
  void touch(const Thing& thing, bool writes) { writes ? write(thing) : read(thing); }
  [[nodiscard]] int pieces(int stage) const {
    const auto& cut = schedule_.spec().pieces;
    return cut.empty() ? 1 : static_cast<int>(cut[stage].size());
  }
  /// Calls visit with the piece that an action is about, or with all of its stage.
  template <class Visit>
  void each_piece(const Action& a, Visit&& visit) const {
    if (a.piece >= 0) return visit(a.piece);
    for (int p = 0; p < pieces(a.stage); ++p) visit(p);
  }
  void gradients(const Action& a, int buffer, bool writes) {
    if (counts_.gradients[buffer].shard >= 0) return touch({"gradient", buffer, 0, 0, 0}, writes);
    each_piece(a, [&](int p) { touch({"gradient", buffer, p, 0, 0}, writes); });
  }
  void parameters(const Action& a, std::int64_t version, bool writes) {
    const int copies = counts_.parameter_copies;
    each_piece(a, [&](int p) {
      touch({"parameters", a.stage, (version + copies) % copies, p, 0}, writes);
    });
  }
  /// What a pass reads, or a message brings: what the device owns, or what passes by.
  void copy(const Action& a, bool forward, bool writes) {
    if (counts_.owns(a.stage) || schedule_.leaves_from_kept(device_, a))
      return parameters(a, a.version, writes);
    const int buffer = travelling(a, forward);
    if (!is_pass(a)) return touch({"travelling", buffer, std::max(a.piece, 0), 0, 0}, writes);
    // Nothing may land there, not even behind the stage.
    for (int p = 0; p < schedule_.most_pieces(); ++p) read({"travelling", buffer, p, 0, 0});
  }

  [[nodiscard]] int travelling(const Action& a, bool forward) const {
    const Payload copy = forward ? Payload::forward_copy : Payload::backward_copy;
    return schedule_.travelling(device_, a.step, copy, a.stage);
  }

  void passes(const Action& a) {
    write({"micro-batch", a.step, a.micro_batch, 0, 0});
    copy(a, a.kind == ActionKind::forward, false);
    read(input(a));
    if (a.stage > counts_.first_stage)
      read(frame(a, a.stage - 1));
    else if (counts_.lands())
      read(landing(a));
  }

  /// What travels inside a slot: the own piece is read or, of a sum, written, and others otherwise.
  void chunk(const Action& a, bool ends) {
    const int shards = shards_of(schedule_.parallel());
    for (int p = a.piece; p < a.piece + shards; ++p) {
      if (schedule_.spec().pieces[a.stage][p].gradients == 0) continue;
      const bool own = p % shards == counts_.shard;
      if (a.payload == Payload::part) {
        read({"gradient", a.source, p, 0, 0});
        if (own) write({"gradient", a.buffer, 0, 0, 0});
        continue;
      }
      const int copies = counts_.parameter_copies;
      if (a.payload == Payload::parameters)
        touch({"parameters", a.stage, (a.version + copies) % copies, p, 0}, !own);
      else
        touch({"travelling", travelling(a, a.payload == Payload::forward_copy), p, 0, 0}, !own);
      if (a.stage == 0 && p == 0 && ends) write({"decision", a.version - 1, 0, 0, 0});
    }
  }

  void message(const Action& a) {
    const auto payload = static_cast<std::int64_t>(a.payload);
    const std::int64_t line = (a.peer * 100 + a.stage) * 100 + a.piece;
    write({"request", payload, static_cast<std::int64_t>(a.direction), line,
           a.step * 1000 + a.micro_batch});
    // Messages of one kind between two devices keep the order in which they start.
    if (a.kind != ActionKind::wait)
      write({"line", payload, static_cast<std::int64_t>(a.direction), line, 0});
    const bool ends = a.kind == ActionKind::wait;
    const bool copies = passes_by(a);
    // Whoever broadcasts sends.
    const bool brings = copies || a.payload == Payload::parameters;
    const bool roots = brings && a.group >= 0 && a.peer == device_;
    const bool changes = a.direction != Direction::send && !roots;
    const auto use = [&](const Thing& thing) { changes ? write(thing) : read(thing); };
    if (a.group >= 0 && !ends) write({"group", a.group, 0, 0, 0});
    if (a.group >= 0 && a.piece >= 0) return chunk(a, ends);
    if (brings) {
      if (copies)
        copy(a, a.payload == Payload::forward_copy, changes);
      else
        parameters(a, a.version, changes);
      if (a.stage == 0 && a.piece <= 0 && changes && ends)
        write({"decision", a.version - 1, 0, 0, 0});
    } else if (a.payload == Payload::norms && a.piece >= 0) {
      use({"norm", a.stage, a.piece, 0, 0});
    } else if (a.payload == Payload::norms) {
      for (int j = 0; j < stages_; ++j) write({"norm", j, 0, 0, 0});
    } else if (a.direction == Direction::none && a.stage < 0) {
      for (int j = 0; j < stages_; ++j) use({"gradient", j, 0, 0, 0});
    } else if (a.payload == Payload::activations) {
      use(changes ? landing(a) : frame(a, a.stage - 1));
    } else if (a.payload == Payload::d_activations) {
      // What has left is free again.
      if (ends) write(boundary(a, a.stage));
      use(boundary(a, a.stage));
    } else if (a.payload == Payload::token) {
      // A token counts the passes of its sender and begins those of its receiver.
      const int about =
          changes ? a.micro_batch : a.micro_batch - tokens_apart(schedule_.parallel());
      if (a.kind == ActionKind::send || (changes && a.kind == ActionKind::wait))
        use({"micro-batch", a.step, about, 0, 0});
    } else {
      gradients(a, a.buffer, changes);
    }
  }

  const Schedule& schedule_;
  const BufferCounts& counts_;
  int device_;
  int stages_;
  Touched touched_;
};

bool commute(const Schedule& schedule, int device, const Action& a, const Action& b) {
  Touch touch(schedule, device);
  const Touched first = touch(a);
  const Touched second = touch(b);
  return std::ranges::none_of(first, [&](const auto& entry) {
    const auto other = second.find(entry.first);
    return other != second.end() && (entry.second || other->second);
  });
}

/// Whether the waits of all devices can come to an end: the graph of "needs first" has no cycle. A
/// wait needs the start at the other end, and for a collective the starts of all.
bool ends(const Schedule& schedule, const Lists& lists) {
  struct Node {
    std::vector<int> next;
    int needs = 0;
  };
  using Start = std::tuple<int, int, int, int, int, std::int64_t, int, int, int>;  // at, peer, ...
  std::vector<Node> nodes;
  std::map<Start, int> starts;
  const auto start_of = [](int at, int peer, Direction direction, const Action& a) {
    return Start{at,
                 peer,
                 static_cast<int>(a.payload),
                 a.stage,
                 a.piece,
                 a.step,
                 a.micro_batch,
                 a.group,
                 static_cast<int>(direction)};
  };
  for (int d = 0; d < std::ssize(lists); ++d) {
    for (const Action& a : lists[d]) {
      if (starts_message(a))
        starts[start_of(d, a.peer, a.direction, a)] = static_cast<int>(nodes.size());
      nodes.emplace_back();
    }
  }
  int node = 0;
  const auto order = [&](int from, int to) {
    nodes[from].next.push_back(to);
    ++nodes[to].needs;
  };
  for (int d = 0; d < std::ssize(lists); ++d) {
    for (std::size_t k = 0; k < lists[d].size(); ++k, ++node) {
      if (k > 0) order(node - 1, node);
      const Action& a = lists[d][k];
      if (a.kind != ActionKind::wait) continue;
      const bool collective = a.group >= 0;
      const std::vector<int> peers = collective ? schedule.groups()[a.group] : std::vector{a.peer};
      for (const int peer : peers) {
        const Direction opposite = collective                       ? Direction::none
                                   : a.direction == Direction::send ? Direction::receive
                                                                    : Direction::send;
        const auto other = starts.find(start_of(peer, collective ? a.peer : d, opposite, a));
        if (other == starts.end()) return false;
        order(other->second, node);
      }
    }
  }
  std::vector<int> ready;
  for (int n = 0; n < std::ssize(nodes); ++n)
    if (nodes[n].needs == 0) ready.push_back(n);
  std::size_t done = 0;
  for (; done < ready.size(); ++done)
    for (int next : nodes[ready[done]].next)
      if (--nodes[next].needs == 0) ready.push_back(next);
  return done == nodes.size();
}

Schedule random_schedule(std::mt19937& random, bool rounds = false) {
  const int n = 1 + static_cast<int>(random() % 5);
  const int stages = 1 + static_cast<int>(random() % 5);
  const std::vector<ParallelConfig> all = all_variants(n, stages);
  const ParallelConfig& config = all[random() % all.size()];
  return schedule_of(config, config.rule == RuleKind::dp && random() % 2 == 0, rounds);
}

TEST(Checker, RejectsMutatedSchedulesOrTheyAreHarmless) {
  std::mt19937 random(20240321);
  std::map<std::string, int> rejected;
  std::map<std::string, int> harmless;
  for (int trial = 0; trial < 24000; ++trial) {
    const Schedule schedule = random_schedule(random);
    const Segment segment = schedule.window();
    const Lists right = lists_of(schedule, segment);
    Lists lists = right;
    const Mutation mutation = mutate(lists, random);
    const auto fault = check_actions(schedule, segment, lists);
    const std::string what = fmt::format(
        "{}: {} of device {}, action {}: {}", describe(schedule.parallel()), mutation.kind,
        mutation.device, mutation.index, to_string(right[mutation.device][mutation.index]));
    if (fault.has_value()) {
      ++rejected[mutation.kind];
      ++rejected[to_string(schedule.parallel().placement)];
      EXPECT_THAT(fault->text, ::testing::StartsWith(fmt::format(
                                   "device {}, action {}: ", fault->device, fault->index)))
          << what;
      EXPECT_EQ(fault->text.find('\n'), std::string::npos) << what;
      continue;
    }
    ++harmless[mutation.kind];
    const std::vector<Action>& list = right[mutation.device];
    EXPECT_EQ(mutation.kind, "swap") << what;
    EXPECT_TRUE(mutation.kind != "swap" ||
                commute(schedule, mutation.device, list[mutation.index], list[mutation.index + 1]))
        << what << "\n  and " << to_string(list[mutation.index + 1]);
    EXPECT_TRUE(ends(schedule, lists)) << what;
  }
  for (const char* kind : kinds) {
    EXPECT_GE(rejected[kind], 500) << kind;
    RecordProperty(kind, fmt::format("{} rejected, {} harmless", rejected[kind], harmless[kind]));
  }
  for (const PlacementKind& kind : placement_kinds())
    EXPECT_GE(rejected[kind.name], 1000) << kind.name;
  EXPECT_GT(harmless["swap"], 0);
}

/// Moves a start, or what exchanges a round, to a round nearby.
Mutation mutate_round(Lists& lists, std::mt19937& random) {
  while (true) {
    Mutation mutation{"round", static_cast<int>(random() % lists.size())};
    mutation.index = random() % lists[mutation.device].size();
    Round& round = lists[mutation.device][mutation.index].round;
    if (!round.exists()) continue;
    if (random() % 2 == 0)
      change<std::int64_t>(round.time, random, round.time - 2, round.time + 2);
    else
      change(round.hop, random, std::max(0, round.hop - 2), round.hop + 2);
    return mutation;
  }
}

// Groups that block as NCCL's do end, and bring what they should, wherever the checker has nothing
// to say.
TEST(Checker, RejectsMutatedRoundsOrTheyEnd) {
  std::mt19937 random(20261126);
  std::map<std::string, int> rejected;
  std::map<std::string, int> accepted;
  for (int trial = 0; trial < 5000;) {
    const Schedule schedule = random_schedule(random, true);
    if (schedule.devices() == 1) continue;
    ++trial;
    const Segment segment = schedule.window();
    const Lists right = lists_of(schedule, segment);
    Lists lists = right;
    const Mutation mutation = trial % 2 == 0 ? mutate(lists, random) : mutate_round(lists, random);
    const auto fault = check_actions(schedule, segment, lists);
    if (fault.has_value()) {
      ++rejected[mutation.kind];
      continue;
    }
    ++accepted[mutation.kind];
    EXPECT_EQ(testing::BlockingGroups(lists, schedule.groups()).run(), "") << fmt::format(
        "{}: {} of device {}, action {}: {}", describe(schedule.parallel()), mutation.kind,
        mutation.device, mutation.index, to_string(right[mutation.device][mutation.index]));
  }
  for (const auto& [kind, count] : accepted)
    fmt::print("{:<12} {:5} rejected, {:4} accepted\n", kind, rejected[kind], count);
  EXPECT_GT(rejected["round"], 1000);
  EXPECT_GT(accepted["round"], 0);
}

// A wait names a message, not a buffer, so that a second one of that name could be taken for it.
TEST(Checker, LetsNoTwoMessagesOfOneNameBeUnderWay) {
  int tried = 0;
  for (const ParallelConfig& config : all_variants(3, 3)) {
    const Schedule schedule = schedule_of(config);
    const Segment segment = schedule.window();
    const Lists right = lists_of(schedule, segment);
    for (int d = 0; d < schedule.devices(); ++d) {
      for (const Action& post : right[d]) {
        const bool sum = post.payload == Payload::gradient || post.payload == Payload::total;
        if (post.kind != ActionKind::post || post.step != 1 || !sum) continue;
        Action send = post;
        send.kind = ActionKind::send;
        send.direction = Direction::send;
        send.peer = d;
        const auto sent = std::ranges::find_if(right[post.peer], [&](const Action& a) {
          return a.kind == ActionKind::send && same_message(a, send);
        });
        ASSERT_NE(sent, right[post.peer].end());
        for (int buffer = 0; buffer < std::ssize(schedule.buffers(d).gradients); ++buffer) {
          Lists lists = right;
          const auto twice = [&](int device, const Action& start, bool behind, int to) {
            std::vector<Action>& list = lists[device];
            const auto at = std::ranges::find(list, start);
            list.insert(at + (behind ? 1 : 0), start)->buffer = to;
            const auto wait = std::ranges::find_if(list, [&](const Action& a) {
              return a.kind == ActionKind::wait && same_message(a, start);
            });
            list.insert(wait + 1, Action(*wait))->buffer = to;
          };
          twice(d, post, false, buffer);
          twice(post.peer, *sent, true, sent->buffer);
          ++tried;
          const auto fault = check_actions(schedule, segment, lists);
          EXPECT_TRUE(fault) << describe(config) << ": " << to_string(post) << " and into "
                             << buffer;
        }
      }
    }
  }
  EXPECT_GT(tried, 100);
}

using Where = std::vector<Action>::iterator;

/// The `nth` action of a list that starts or does this.
Where find(std::vector<Action>& list, ActionKind kind, Payload payload = Payload::none,
           int nth = 0) {
  for (auto at = list.begin(); at != list.end(); ++at) {
    if (at->kind == kind && at->payload == payload && nth-- == 0) return at;
  }
  ADD_FAILURE() << "no " << to_string(kind) << " " << to_string(payload);
  return list.begin();
}

/// Puts actions and their waits in front of another one.
void insert(std::vector<Action>& list, Where before, std::initializer_list<Action> starts) {
  std::vector<Action> all;
  for (const Action& start : starts) {
    all.push_back(start);
    all.push_back(start);
    all.back().kind = ActionKind::wait;
  }
  list.insert(before, all.begin(), all.end());
}

std::string fault_in(const Schedule& schedule, const Segment& segment, const Lists& lists) {
  const auto fault = check_actions(schedule, segment, lists);
  return fault ? fault->text : "";
}

// Device 1 would add what device 0 has sent to a sum that contains it.
TEST(Checker, LetsOrderedSumsHaveNoCollective) {
  const Schedule schedule =
      schedule_of(testing::parallel(RuleKind::dp, Placement::replicated, 2, 1));
  const Segment segment{0, 1};
  Lists lists = lists_of(schedule, segment);
  const Action sum{.kind = ActionKind::all_reduce,
                   .payload = Payload::total,
                   .stage = 0,
                   .group = 0,
                   .bytes = schedule.message_bytes(0),
                   .buffer = 0};
  insert(lists[0], find(lists[0], ActionKind::post, Payload::total), {sum});
  insert(lists[1], find(lists[1], ActionKind::accumulate), {sum});
  EXPECT_THAT(fault_in(schedule, segment, lists),
              ::testing::HasSubstr("is a collective, and the sums are ordered"));
}

ParallelConfig fast(RuleKind rule, Placement placement, int n, int stages) {
  ParallelConfig config = testing::parallel(rule, placement, n, stages);
  config.reduction = Reduction::fast;
  return config;
}

// The gradient of micro-batch 0 goes to device 5 and back, and is summed once more with that of
// micro-batch 3, where device 4 calls this the sum of the slot before; micro-batch 2 is left out.
TEST(Checker, LetsDevicesOfACollectiveSumTheSameSlot) {
  const Schedule schedule = schedule_of(fast(RuleKind::cdp_v1, Placement::model, 4, 2));
  const Segment segment{0, 1};
  Lists lists = lists_of(schedule, segment);
  std::vector<Action>& here = lists[4];
  std::vector<Action>& there = lists[5];
  const Action sum = *find(here, ActionKind::reduce, Payload::gradient);
  const auto message = [&](ActionKind kind, int peer, int buffer) {
    return Action{.kind = kind,
                  .payload = Payload::gradient,
                  .direction = kind == ActionKind::send ? Direction::send : Direction::receive,
                  .time = sum.time,
                  .micro_batch = 0,
                  .stage = 1,
                  .peer = peer,
                  .bytes = sum.bytes,
                  .buffer = buffer};
  };
  insert(here, find(here, ActionKind::reduce, Payload::gradient),
         {message(ActionKind::send, 5, sum.buffer), message(ActionKind::post, 5, 1)});
  insert(there, find(there, ActionKind::reduce, Payload::gradient),
         {message(ActionKind::post, 4, 0), message(ActionKind::send, 4, 0)});
  const Action total = *find(here, ActionKind::post, Payload::total);
  here.erase(find(here, ActionKind::post, Payload::total));
  const auto second = find(here, ActionKind::reduce, Payload::gradient, 1);
  const auto end = std::find_if(second, here.end(), [](const Action& a) {
    return a.kind == ActionKind::wait && a.group >= 0;
  });
  std::rotate(second + 1, end, end + 1);
  for (const auto at : {second, second + 1}) {
    at->micro_batch = 1;
    at->buffer = 1;
  }
  here.insert(second + 2, total);
  EXPECT_THAT(fault_in(schedule, segment, lists),
              ::testing::HasSubstr("meets another collective in its group"));
}

// A device whose parameters come from another one, now and then, has momentum of an older step.
TEST(Checker, LetsWhoeverUpdatesTakeNoParameters) {
  const Schedule schedule =
      schedule_of(testing::parallel(RuleKind::dp, Placement::replicated, 2, 1));
  const Segment segment{0, 2};
  Lists lists = lists_of(schedule, segment);
  const auto first_step = [](const Action& a) { return a.step == 0; };
  for (const int d : {0, 1}) {
    for (Action& action : lists[d]) {
      if (!first_step(action) || action.payload != Payload::total) continue;
      action.payload = Payload::parameters;
      action.micro_batch = -1;
      action.version = 1;
      action.buffer = -1;
      action.bytes = schedule.parameter_bytes(action.stage);
    }
  }
  lists[0].erase(find(lists[0], ActionKind::update));
  // Device 1 sends what it makes.
  const auto update = find(lists[1], ActionKind::update);
  const auto send = find(lists[1], ActionKind::send, Payload::parameters);
  if (send < update) std::rotate(send, update, update + 1);
  EXPECT_THAT(fault_in(schedule, segment, lists),
              ::testing::HasSubstr("gets parameters that it must make itself"));
}

TEST(Checker, LetsNoCollectiveOfACyclicRuleBringParameters) {
  const Schedule schedule = schedule_of(fast(RuleKind::cdp_v1, Placement::replicated, 5, 2));
  const Segment segment{0, 1};
  for (const Payload payload : {Payload::forward_copy, Payload::backward_copy}) {
    Lists lists = lists_of(schedule, segment);
    Action& sum = *find(lists[0], ActionKind::reduce, Payload::gradient);
    sum.payload = payload;
    sum.version = -1;
    sum.buffer = -1;
    EXPECT_THAT(fault_in(schedule, segment, lists),
                ::testing::HasSubstr("broadcasts what is handed on"));
  }
}

// MPI has no communicator for it.
TEST(Checker, LetsNoDeviceSumWithItself) {
  const Schedule schedule = schedule_of(fast(RuleKind::cdp_v1, Placement::replicated, 3, 2));
  ASSERT_EQ(schedule.groups()[1], std::vector{2});
  const Segment segment{0, 1};
  Lists lists = lists_of(schedule, segment);
  const auto backward = find(lists[2], ActionKind::backward);
  insert(lists[2], backward + 1,
         {{.kind = ActionKind::reduce,
           .payload = Payload::gradient,
           .time = backward->time,
           .micro_batch = 2,
           .stage = backward->stage,
           .peer = 2,
           .group = 1,
           .bytes = schedule.message_bytes(backward->stage),
           .buffer = backward->buffer}});
  EXPECT_THAT(fault_in(schedule, segment, lists),
              ::testing::HasSubstr("is a collective of a device with itself"));
}

// Devices of one stage would take its norm twice for that of the model.
TEST(Checker, LetsNormsComeFromEveryStage) {
  const Schedule schedule =
      schedule_of(testing::parallel(RuleKind::dp, Placement::model, 2, 2), true);
  ASSERT_EQ(schedule.groups(), (std::vector<std::vector<int>>{{0, 1}, {2, 3}, {0, 2}, {1, 3}}));
  const Segment segment{0, 1};
  Lists lists = lists_of(schedule, segment);
  for (int d = 0; d < 4; ++d) {
    for (Action& action : lists[d])
      if (action.payload == Payload::norms) action.group = d / 2;
  }
  EXPECT_THAT(fault_in(schedule, segment, lists),
              ::testing::HasSubstr("does not tell the norm of every stage once"));
}

// Only those of `fast` have memory for it where messages are staged.
TEST(Checker, LetsOverlappedSumsBeOfOneStage) {
  ParallelConfig config = fast(RuleKind::dp, Placement::replicated, 2, 2);
  const Segment segment{0, 1};
  const Lists lists = lists_of(schedule_of(config), segment);
  config.reduction = Reduction::overlapped;
  EXPECT_THAT(fault_in(schedule_of(config), segment, lists), ::testing::HasSubstr("sums no stage"));
}

// The owner of stage 0 is device 1.
TEST(Checker, LetsOwnersAloneBringWhatTheyUpdated) {
  ParallelConfig config = testing::parallel(RuleKind::dp, Placement::replicated, 2, 2);
  config.reduction = Reduction::owner;
  const Segment segment{0, 2};
  const Schedule schedule = schedule_of(config);
  const auto broadcast = [](std::vector<Action>& list) {
    return find(list, ActionKind::broadcast, Payload::parameters);
  };
  ASSERT_EQ(fault_in(schedule, segment, lists_of(schedule, segment)), "");
  const auto fault = [&](auto&& change) {
    Lists lists = lists_of(schedule, segment);
    change(lists);
    return fault_in(schedule, segment, lists);
  };
  // They would land before the backward that still reads those of the step before.
  EXPECT_THAT(fault([&](Lists& lists) {
                const auto copy = broadcast(lists[0]);
                const auto backward = find(lists[0], ActionKind::backward, Payload::none, 1);
                ASSERT_LT(backward, copy);
                std::rotate(backward, copy, copy + 1);
              }),
              ::testing::HasSubstr("its parameters are not here"));
  EXPECT_THAT(fault([&](Lists& lists) {
                const auto copy = broadcast(lists[1]);
                const auto update = find(lists[1], ActionKind::update);
                ASSERT_LT(update, copy);
                std::rotate(update, copy, copy + 1);
              }),
              ::testing::HasSubstr("what it sends is not here"));
  EXPECT_THAT(fault([&](Lists& lists) {
                for (std::vector<Action>& list : lists) {
                  for (Action& action : list)
                    if (action.payload == Payload::parameters && action.stage == 0) action.peer = 0;
                }
              }),
              ::testing::HasSubstr("has numbers that do not belong to it"));
  EXPECT_THAT(fault([&](Lists& lists) {
                auto& list = lists[0];
                list.insert(broadcast(list), *find(lists[1], ActionKind::update));
              }),
              ::testing::HasSubstr("no optimizer state here"));
  config.reduction = Reduction::overlapped;
  EXPECT_THAT(fault_in(schedule_of(config), segment, lists_of(schedule, segment)),
              ::testing::HasSubstr("is another collective than the placement has"));
}

/// Everything that a device does about two micro-batches of a step by itself: the gradient of
/// micro-batch i of stage j goes to buffer S i + j, and their sum is in the latter ones.
std::vector<Action> alone(const Schedule& schedule, std::int64_t step) {
  std::vector<Action> list;
  const int stages = schedule.rule().stages();
  const auto add = [&](ActionKind kind, int i, int j, int buffer, int source) {
    list.push_back({.kind = kind,
                    .time = step * schedule.period_time(),
                    .step = step,
                    .micro_batch = i,
                    .stage = j,
                    .buffer = buffer,
                    .source = source});
    if (is_pass(list.back())) list.back().version = step;
  };
  for (int i = 0; i < 2; ++i) {
    const int turn = schedule.round_robin(step, i, schedule.buffers(1).frames[0]);
    add(ActionKind::load, i, 0, schedule.round_robin(step, i, schedule.buffers(1).inputs), -1);
    for (int j = 0; j < stages; ++j) add(ActionKind::forward, i, j, turn, -1);
    for (int j = stages - 1; j >= 0; --j) add(ActionKind::backward, i, j, stages * i + j, turn);
    for (int j = stages - 1; j >= 0; --j) add(ActionKind::release, i, j, turn, -1);
  }
  for (int j = 0; j < stages; ++j) add(ActionKind::accumulate, 1, j, stages + j, j);
  return list;
}

Action update(std::int64_t step, int stage, int source) {
  return {.kind = ActionKind::update,
          .step = step,
          .stage = stage,
          .version = step + 1,
          .source = source};
}

Action message(const Schedule& schedule, std::int64_t step, Payload payload, int peer, int buffer) {
  Action action{.kind = ActionKind::send,
                .payload = payload,
                .direction = Direction::send,
                .step = step,
                .micro_batch = 1,
                .stage = 1,
                .peer = peer,
                .bytes = schedule.message_bytes(1),
                .buffer = buffer};
  if (payload == Payload::total) return action;
  action.version = step;
  action.bytes = schedule.parameter_bytes(1);
  return action;
}

Action received(Action action, int peer, int buffer) {
  action.kind = ActionKind::post;
  action.direction = Direction::receive;
  action.peer = peer;
  action.buffer = buffer;
  return action;
}

constexpr std::int64_t steps_without_news = 5;

void append(std::vector<Action>& list, const std::vector<Action>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

// Device 0 hands out stage 1 and updates it, and never has anything of stage 0, with which comes
// word of a step that diverged.
TEST(Checker, LetsNoDeviceGoOnForEverWithoutNews) {
  const Schedule own = schedule_of(testing::parallel(RuleKind::dp, Placement::sharded, 2, 2));
  Lists lists(2);
  for (std::int64_t t = 0; t < steps_without_news; ++t) {
    std::vector<Action> keeper;
    std::vector<Action> worker = alone(own, t);
    const Action total = message(own, t, Payload::total, 0, 3);
    for (const Payload copy : {Payload::backward_copy, Payload::forward_copy}) {
      const Action send = message(own, t, copy, 1, -1);
      insert(keeper, keeper.begin(), {send});
      insert(worker, worker.begin(), {received(send, 0, own.travelling(1, t, copy, 1))});
    }
    insert(keeper, keeper.end(), {received(total, 1, 2)});
    keeper.push_back(update(t, 1, 2));
    insert(worker, worker.end(), {total});
    worker.push_back(update(t, 0, 2));
    append(lists[0], keeper);
    append(lists[1], worker);
  }
  EXPECT_THAT(fault_in(own, {0, steps_without_news}, lists),
              ::testing::HasSubstr("runs before step - 3 is known to be complete"));
}

TEST(Checker, LetsNoIdleDeviceGoOnForEverWithoutNews) {
  const Schedule own = schedule_of(testing::parallel(RuleKind::dp, Placement::sharded, 2, 1));
  ASSERT_TRUE(own.buffers(0).owns(0));
  Lists lists(2);
  for (std::int64_t t = 0; t < steps_without_news; ++t) {
    append(lists[0], alone(own, t));
    lists[0].push_back(update(t, 0, 1));
  }
  EXPECT_THAT(fault_in(own, {0, steps_without_news}, lists),
              ::testing::HasSubstr("ends before step - 3 is known to be complete"));
}

}  // namespace
}  // namespace carousel
