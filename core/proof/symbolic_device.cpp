// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/proof/symbolic_device.hpp"

#include <algorithm>
#include <numeric>

#include "core/plan/pieces.hpp"
#include "core/proof/action_fields.hpp"

namespace carousel {
namespace {

/// The rule once more, straight from the paper's table and not by way of Rule.
std::int64_t slot_by_rule(const ParallelConfig& parallel, std::int64_t worker) {
  return parallel.stages * worker / parallel.workers();
}

/// Pairs of time steps by which a worker begins behind worker 0: k for every slot, and what keeps
/// slots at different stages, where the multiples of k are not all different modulo S.
std::int64_t start_by_rule(const ParallelConfig& parallel, std::int64_t worker) {
  const std::int64_t divisor = std::gcd(parallel.passes, parallel.stages);
  const std::int64_t slot = slot_by_rule(parallel, worker);
  const std::int64_t block = slot * divisor / parallel.stages;
  // 0, 2, 4, ..., 5, 3, 1
  const bool rising = 2 * block < divisor;
  const std::int64_t shift = rising ? 2 * block : 2 * (divisor - 1 - block) + 1;
  return parallel.passes * slot + shift;
}

std::int64_t version_by_rule(const ParallelConfig& parallel, int i, int j, std::int64_t t) {
  if (parallel.rule == RuleKind::dp) return t;
  if (parallel.rule == RuleKind::cdp_v1) return t - 1;
  // Pass p is S p pairs behind the first one. The last worker has its last backward of stage j of
  // step t - 1 behind it k S pairs and j time steps before it begins this stage in step t.
  const std::int64_t begin = start_by_rule(parallel, i / parallel.passes) +
                             std::int64_t{i % parallel.passes} * parallel.stages;
  const std::int64_t last = start_by_rule(parallel, parallel.workers() - 1);
  return begin + j >= last + parallel.slack ? t : t - 1;
}

/// Whether devices pace each other by tokens.
bool paced(const ParallelConfig& parallel) {
  const bool together = parallel.rule == RuleKind::dp || parallel.sums == Sums::late;
  return !together && traits_of(parallel.placement).paced;
}

}  // namespace

SymbolicDevice::SymbolicDevice(const Schedule& schedule, const Segment& segment, int device)
    : schedule_(schedule),
      parallel_(schedule.parallel()),
      counts_(schedule.buffers(device)),
      segment_(segment),
      device_(device),
      parameters_(parallel_.stages),
      predicted_(parallel_.stages),
      gradients_(counts_.gradients.size()),
      norms_(parallel_.stages, segment.first - 1),
      landings_(counts_.lands() ? counts_.frames[counts_.first_stage] : 0),
      inputs_(counts_.inputs),
      metrics_(parallel_.micro_batches),
      known_decision_(segment.first - 1),
      told_(segment.first - 1) {
  const std::vector<ParameterCopy> passing(schedule.most_pieces());
  travelling_.assign(counts_.travelling, passing);
  std::vector<int> here = counts_.owned;
  here.insert(here.end(), counts_.kept.begin(), counts_.kept.end());
  for (const int j : here) {
    parameters_[j].assign(counts_.parameter_copies, std::vector<ParameterCopy>(pieces(j)));
    if (counts_.reads_of(j) == ParametersRead::both) predicted_[j] = parameters_[j];
    for (std::int64_t v = segment.first - counts_.parameter_copies + 1; v <= segment.first; ++v) {
      for (ParameterCopy& piece : pieces_of(j, v)) piece.version = v;
      for (ParameterCopy& piece : pieces_of(j, v, true)) piece.version = v;
    }
  }
  for (std::size_t k = 0; k < gradients_.size(); ++k) {
    int most = 1;
    for (const int j : counts_.gradients[k].stages) most = std::max(most, pieces(j));
    gradients_[k].resize(counts_.gradients[k].shard < 0 ? most : 1);
  }
  for (int j = 0; j < parallel_.stages; ++j) {
    frames_.emplace_back(counts_.frames[j]);
    boundaries_.emplace_back(counts_.boundaries[j]);
  }
}

const char* SymbolicDevice::execute(const Action& action) {
  error_ = misnamed_field(schedule_, segment_, device_, action);
  static_assert(device_lag == 3);
  demand(action.step <= known_decision_ + device_lag,
         "runs before step - 3 is known to be complete");
  if (!fine()) return error_;
  switch (action.kind) {
    case ActionKind::load:
      load(action);
      break;
    case ActionKind::copy:
      copy(action);
      break;
    case ActionKind::forward:
      forward(action);
      break;
    case ActionKind::backward:
      backward(action);
      break;
    case ActionKind::accumulate:
      accumulate(action);
      break;
    case ActionKind::measure:
      measure(action);
      break;
    case ActionKind::update:
      update(action);
      break;
    case ActionKind::release:
      release(action);
      break;
    case ActionKind::post:
      post(action);
      break;
    case ActionKind::send:
      send(action);
      break;
    case ActionKind::all_reduce:
    case ActionKind::reduce:
    case ActionKind::broadcast:
      collective(action);
      break;
    case ActionKind::reduce_scatter:
    case ActionKind::all_gather:
      chunk(action);
      break;
    case ActionKind::wait:
    case ActionKind::exchange:
      break;
  }
  return error_;
}

int SymbolicDevice::pieces(int stage) const {
  const auto& cut = schedule_.spec().pieces;
  return cut.empty() ? 1 : static_cast<int>(cut[stage].size());
}

bool SymbolicDevice::exists(int stage, int piece) const {
  const auto& cut = schedule_.spec().pieces;
  return cut.empty() || cut[stage][piece].gradients > 0;
}

bool SymbolicDevice::makes(const Action& action) const {
  if (!counts_.optimizer[action.stage]) return false;
  return action.piece < 0 || action.piece % shards_of(parallel_) == counts_.shard;
}

std::vector<SymbolicDevice::ParameterCopy>& SymbolicDevice::pieces_of(int stage,
                                                                      std::int64_t version,
                                                                      bool predicted) {
  auto& all = predicted && !predicted_[stage].empty() ? predicted_[stage] : parameters_[stage];
  const auto copies = static_cast<std::int64_t>(all.size());
  return all[((version % copies) + copies) % copies];
}

bool SymbolicDevice::is_read(const Action& message) const {
  const ParametersRead reads = counts_.reads_of(message.stage);
  if (message.payload == Payload::predicted) return reads != ParametersRead::theta;
  // Where nobody reads theta, its name is that of what is read.
  return reads != ParametersRead::predicted || schedule_.rule().always_stale();
}

bool SymbolicDevice::has_version(int stage, std::int64_t version, bool predicted) {
  const std::vector<ParameterCopy>& all = pieces_of(stage, version, predicted);
  for (int p = 0; p < std::ssize(all); ++p) {
    if (exists(stage, p) && stays(stage, p) &&
        (all[p].version != version || all[p].pending.landing))
      return false;
  }
  return true;
}

SymbolicDevice::GradientSum& SymbolicDevice::gradient(int buffer, const Action& action) {
  std::vector<GradientSum>& sums = gradients_[buffer];
  return counts_.gradients[buffer].shard < 0 ? sums[std::max(action.piece, 0)] : sums[0];
}

bool SymbolicDevice::stays(int stage, int piece) const {
  return owns(stage) || counts_.keeps(stage, piece, shards_of(parallel_));
}

SymbolicDevice::ParameterCopy& SymbolicDevice::passing(const Action& action, Payload payload) {
  if (owns(action.stage) || schedule_.leaves_from_kept(device_, action))
    return copy_of(action.stage, action.version, action.piece);
  return passing_buffer(action, payload)[std::max(action.piece, 0)];
}

std::vector<SymbolicDevice::ParameterCopy>& SymbolicDevice::passing_buffer(const Action& action,
                                                                           Payload payload) {
  return travelling_[schedule_.travelling(device_, action.step - segment_.first, payload,
                                          action.stage)];
}

bool SymbolicDevice::has_passing(const Action& pass, Payload payload) {
  const std::vector<ParameterCopy>& all = passing_buffer(pass, payload);
  for (int p = 0; p < pieces(pass.stage); ++p) {
    if (exists(pass.stage, p) &&
        (!is_of(all[p], pass, payload) || all[p].version != pass.version || all[p].pending.landing))
      return false;
  }
  return true;
}

bool SymbolicDevice::is_of(const ParameterCopy& copy, const Action& action, Payload payload) {
  return copy.stage == action.stage && copy.payload == payload && copy.step == action.step;
}

std::vector<SymbolicDevice::ParameterCopy>& SymbolicDevice::enter(const Action& action) {
  std::vector<ParameterCopy>& buffer = passing_buffer(action, action.payload);
  for (ParameterCopy& copy : buffer) {
    if (is_of(copy, action, action.payload)) continue;
    demand(copy.pending.idle(), "lands in a buffer that is in use");
    copy = {not_there, {}, action.stage, action.payload, action.step};
  }
  return buffer;
}

void SymbolicDevice::enter(const Action& action, int piece) {
  demand_room(enter(action)[std::max(piece, 0)]);
}

void SymbolicDevice::demand_room(const ParameterCopy& copy) {
  demand(copy.pending.idle() && copy.version == not_there, "lands in a buffer that is in use");
}

/// The executor takes these buffers in turn; so must whoever checks its lists.
SymbolicDevice::Holder& SymbolicDevice::in_turn(std::vector<Holder>& places, const Action& action) {
  return places[schedule_.round_robin(action.step - segment_.first, action.micro_batch,
                                      static_cast<int>(places.size()))];
}

int SymbolicDevice::first_of_term(int micro_batch) const {
  const int worker = micro_batch / parallel_.passes;
  int first = worker;
  if (by_collectives(parallel_.reduction)) {
    if (parallel_.rule == RuleKind::dp || parallel_.sums == Sums::late) return 0;
    while (first > 0 && slot_by_rule(parallel_, first - 1) == slot_by_rule(parallel_, worker))
      --first;
  }
  return first * parallel_.passes;
}

bool SymbolicDevice::joins(const MicroBatchSet& before, const MicroBatchSet& term,
                           int micro_batch) const {
  const int i = micro_batch;
  const int worker = first_of_worker(i);
  if (i > worker && before == MicroBatchSet(worker, i - 1) && term == MicroBatchSet(i, i))
    return true;
  const bool complete = i + 1 == worker + parallel_.passes;
  const int first = first_of_term(i);
  return complete && first > 0 && before == MicroBatchSet(0, first - 1) &&
         term == MicroBatchSet(first, i);
}

/// Whether the buffer has what a message of this kind is to carry, or an update to read.
bool SymbolicDevice::holds(const GradientSum& buffer, const Action& action) const {
  if (buffer.pending.landing || buffer.step != action.step || buffer.stage != action.stage ||
      buffer.piece != action.piece)
    return false;
  if (action.payload == Payload::part)
    return buffer.summed == MicroBatchSet(first_of_worker(action.micro_batch), action.micro_batch);
  const bool part = action.payload == Payload::gradient;
  if (!part) return buffer.summed == MicroBatchSet(0, parallel_.micro_batches - 1);
  // What a device summed by itself first is not the sum through the last one it added.
  if (parallel_.reduction == Reduction::local) return buffer.summed.contains(action.micro_batch);
  return buffer.summed == MicroBatchSet(0, action.micro_batch);
}

void SymbolicDevice::load(const Action& action) {
  Holder& input = in_turn(inputs_, action);
  demand(input.free(), "overwrites images in use");
  // Behind a divergence, loads of later steps are left out: they must be the last ones.
  demand(action.step >= newest_load_, "loads images of a step behind those of a later one");
  newest_load_ = action.step;
  input.who = {action.step, action.micro_batch};
}

void SymbolicDevice::copy(const Action& action) {
  const ParameterCopy& own = copy_of(action.stage, action.version, action.piece);
  demand(own.version == action.version && !own.pending.landing, "what it copies is not here");
  enter(action, action.piece);
  if (fine()) passing(action, action.payload).version = action.version;
}

/// Both passes read the version of the rule, from a copy that nothing is landing in.
void SymbolicDevice::demand_version(const Action& action) {
  const std::int64_t version =
      version_by_rule(parallel_, action.micro_batch, action.stage, action.step);
  demand(action.version == version, "does not use the version of the rule");
  if (!fine()) return;
  const bool predicted = parallel_.predict > 0 && version < action.step;
  const ParametersRead reads = counts_.reads_of(action.stage);
  demand(predicted ? reads != ParametersRead::theta : reads != ParametersRead::predicted,
         "reads theta in place of what is predicted, or the other way round");
  if (owns(action.stage)) {
    demand(has_version(action.stage, version, predicted), "its parameters are not here");
    return;
  }
  const Payload payload =
      action.kind == ActionKind::forward ? Payload::forward_copy : Payload::backward_copy;
  demand(has_passing(action, payload), "its parameters are not here");
}

void SymbolicDevice::forward(const Action& action) {
  const Occupant self{action.step, action.micro_batch};
  const int j = action.stage;
  demand_version(action);
  demand(progress_[self].forwards++ == j - counts_.first_stage,
         "is not the next forward of this micro-batch");
  demand(in_turn(inputs_, action).holds(self), "its inputs and targets are not here");
  if (j > counts_.first_stage)
    demand(in_turn(frames_[j - 1], action).holds(self), "its input is not here");
  else if (counts_.lands())
    demand(in_turn(landings_, action).holds(self), "its input is not here");
  Holder& frame = in_turn(frames_[j], action);
  demand(frame.free(), "overwrites activations in use");
  const bool begins = action.micro_batch == first_of_worker(action.micro_batch) && j == 0;
  const bool waits_for_token = paced(parallel_) && begins &&
                               action.micro_batch >= tokens_apart(parallel_) * parallel_.passes;
  demand(!waits_for_token || token_ == action.step, "begins without the token of its step");
  if (!fine()) return;
  frame.who = self;
  frame.decision = known_decision_;
  if (j == parallel_.stages - 1) {
    Occupant& metrics = metrics_[action.micro_batch];
    demand(metrics == Occupant{}, "overwrites the loss of a step that was not reported yet");
    metrics = self;
  }
  ++passes_;
}

void SymbolicDevice::backward(const Action& action) {
  const Occupant self{action.step, action.micro_batch};
  const int j = action.stage;
  Progress& progress = progress_[self];
  demand_version(action);
  demand(progress.forwards == counts_.last_stage - counts_.first_stage + 1,
         "runs before forward is complete");
  demand(progress.backwards++ == counts_.last_stage - j,
         "is not the next backward of this micro-batch");
  demand(in_turn(frames_[j], action).holds(self), "its activations are not in that frame");
  demand(in_turn(inputs_, action).holds(self), "its inputs and targets are gone");
  if (j > counts_.first_stage)
    demand(in_turn(frames_[j - 1], action).holds(self), "its input is gone");
  if (!fine()) return;
  if (counts_.last_stage == parallel_.stages - 1) {
    // Every stage here reports the loss with its own gradient.
    Occupant& metrics = metrics_[action.micro_batch];
    demand(metrics == self, "its loss is gone");
    if (j == counts_.first_stage) metrics = {};
  }
  if (j < parallel_.stages - 1) {
    Holder& d_output = in_turn(boundaries_[j], action);
    demand(d_output.holds(self), "the gradient of its output is not here");
    d_output.who = {};
  }
  if (j > 0) {
    Holder& d_input = in_turn(boundaries_[j - 1], action);
    demand(d_input.free(), "overwrites a gradient of activations");
    d_input.who = self;
  }
  demand(counts_.gradients[action.buffer].shard < 0, "has no room for its gradient");
  if (!fine()) return;
  const bool whole = schedule_.spec().pieces.empty();
  for (int p = 0; p < pieces(j); ++p) {
    GradientSum& sum = gradients_[action.buffer][p];
    demand(sum.pending.idle(), "overwrites a gradient that is being sent or received");
    sum = {
        action.step, j, whole ? -1 : p, MicroBatchSet(action.micro_batch, action.micro_batch), {}};
  }
}

void SymbolicDevice::accumulate(const Action& action) {
  if (action.piece >= 0 || schedule_.spec().pieces.empty())
    return add(action, gradient(action.source, action), gradient(action.buffer, action));
  Action of_piece = action;
  for (of_piece.piece = 0; of_piece.piece < pieces(action.stage); ++of_piece.piece)
    add(of_piece, gradient(action.source, of_piece), gradient(action.buffer, of_piece));
}

void SymbolicDevice::add(const Action& action, GradientSum& from, GradientSum& to) {
  demand(to.pending.idle(), "overwrites a gradient that is being sent or received");
  demand(!from.pending.landing, "reads a gradient that has not landed");
  demand(to.step == action.step && from.step == action.step, "adds gradients of another step");
  demand(to.stage == action.stage && from.stage == action.stage, "adds another stage");
  demand(to.piece == action.piece && from.piece == action.piece, "adds another piece");
  if (!fine()) return;
  const int i = action.micro_batch;
  const bool local = parallel_.reduction == Reduction::local;
  // In index order: all before this micro-batch, or before those summed with it, and itself.
  const bool in_order = joins(from.summed, to.summed, i) || joins(to.summed, from.summed, i);
  demand(local || in_order, "does not add in index order");
  demand(!to.summed.intersects(from.summed), "adds a micro-batch twice");
  to.summed.add(from.summed);
  demand(to.summed.last() == i, "adds another micro-batch than it says");
  from.step = -1;  // added once
}

void SymbolicDevice::measure(const Action& action) {
  const int j = action.stage;
  demand(counts_.optimizer[j], "measures what another device updates");
  demand(holds(gradient(action.source, action), action), "its gradient is not complete");
  if (action.piece >= 0) {
    PieceNorm& norm = piece_norm(action);
    demand(norm.pending.idle(), "overwrites norms on their way");
    demand(norm.step < action.step, "measures a gradient again");
    norm.step = action.step;
    return;
  }
  demand(!norms_travel_, "overwrites norms on their way");
  demand(norms_[j] < action.step, "measures a gradient again");
  norms_[j] = action.step;
}

/// Whether the norms are here that an update waits for: of all stages, or of all pieces of its own.
bool SymbolicDevice::knows_norms(const Action& update) {
  if (update.piece < 0) {
    const bool waits = schedule_.spec().norm_bytes > 0;
    return !waits ||
           (!norms_travel_ && std::ranges::count(norms_, update.step) == std::ssize(norms_));
  }
  const bool all = schedule_.spec().norm_bytes > 0;
  for (int j = all ? 0 : update.stage; j <= (all ? parallel_.stages - 1 : update.stage); ++j) {
    for (int p = 0; p < pieces(j); ++p) {
      if (schedule_.spec().pieces[j][p].norms == 0) continue;
      const PieceNorm& norm = piece_norms_[{j, p}];
      if (norm.step != update.step || norm.pending.landing) return false;
    }
  }
  return true;
}

void SymbolicDevice::update(const Action& action) {
  const int j = action.stage;
  demand(counts_.optimizer[j] && stays(j, action.piece), "has no optimizer state here");
  demand(holds(gradient(action.source, action), action), "its gradient is not complete");
  demand(knows_norms(action), "does not know the norms of all stages");
  demand(action.version == action.step + 1, "does not make the next version");
  if (!fine()) return;
  const ParameterCopy& old = copy_of(j, action.step, action.piece);
  demand(old.version == action.step && !old.pending.landing, "its parameters are not here");
  ParameterCopy& next = copy_of(j, action.version, action.piece);
  demand(next.version <= action.step, "makes a version that is here already");
  demand(next.pending.idle(), "overwrites parameters that are being sent or received");
  next.version = action.version;
  if (counts_.reads_of(j) == ParametersRead::both) {
    ParameterCopy& predicted = pieces_of(j, action.version, true)[0];
    demand(predicted.version <= action.step && predicted.pending.idle(),
           "overwrites what is predicted and on its way");
    predicted.version = action.version;
  }
  if (j == 0 && action.piece <= 0) learn(action.step);
}

/// With all of stage 0 or, where it is cut, with its first piece. In order, since the executor has
/// no ear for a step behind a later one.
void SymbolicDevice::learn(std::int64_t step) {
  demand(step <= told_ + 1, "brings the loss of a step before that of an earlier one");
  told_ = std::max(told_, step);
  known_decision_ = std::max(known_decision_, step);
}

void SymbolicDevice::release(const Action& action) {
  const Occupant self{action.step, action.micro_batch};
  Holder& frame = in_turn(frames_[action.stage], action);
  demand(frame.who == self, "releases activations that are not there");
  demand(frame.pending.idle(), "releases activations that are being sent");
  demand(progress_[self].backwards > counts_.last_stage - action.stage, "releases before backward");
  frame.who = {};
  if (action.stage > counts_.first_stage) return;
  Holder& input = in_turn(inputs_, action);
  demand(input.who == self, "releases images that are not there");
  input.who = {};
  if (counts_.lands()) in_turn(landings_, action).who = {};
}

void SymbolicDevice::token(const Action& action) {
  const int next = action.micro_batch / parallel_.passes;
  const int from = next - tokens_apart(parallel_);
  const std::int64_t ahead =
      from >= 0 ? 2 * (start_by_rule(parallel_, next) - start_by_rule(parallel_, from)) : -1;
  std::int64_t done = 0;
  for (int i = from * parallel_.passes; i < (from + 1) * parallel_.passes; ++i) {
    const Progress& before = progress_[{action.step, i}];
    done += before.forwards + before.backwards;
  }
  const bool begins = from < tokens_apart(parallel_) || token_ == action.step;
  demand(begins && done == ahead, "paces the next device wrongly");
}

const char* SymbolicDevice::at_the_end() {
  error_ = nullptr;
  const auto left = [](const std::vector<Holder>& places) {
    return std::ranges::any_of(places, [](const Holder& place) { return !place.free(); });
  };
  // What holds for an action of the last step holds for whoever has none, too.
  demand(segment_.last - 1 <= known_decision_ + device_lag,
         "ends before step - 3 is known to be complete");
  demand(!left(inputs_), "images were never released");
  demand(!left(landings_), "activations were never released");
  for (int j = 0; j < parallel_.stages; ++j) {
    demand(!left(frames_[j]), "activations were never released");
    demand(!left(boundaries_[j]), "a gradient of activations was never read");
    // Updates and arrivals go from version to version, so that none was left out.
    for (std::int64_t back = 0; back < std::ssize(parameters_[j]); ++back)
      demand(has_version(j, segment_.last - back) && has_version(j, segment_.last - back, true),
             "parameters are not complete");
  }
  for (const auto& [who, passes] : progress_)
    demand(passes.backwards == counts_.last_stage - counts_.first_stage + 1,
           "a backward is missing");
  return error_;
}

}  // namespace carousel
