// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// What concerns the whole run: plan, steps, evaluations, receipts, and that messages meet. The rows
// of one rank are verify_rank.cpp's.

#include "core/audit/verify.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "core/audit/judged_file.hpp"
#include "core/audit/verify_rank.hpp"
#include "core/base/digest.hpp"
#include "core/plan/account.hpp"
#include "core/record/patience.hpp"
#include "core/state/checkpoint.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

/// Compares a column of /plan that has one value per device or per stage.
template <class T>
void verify_plan_column(const JudgedFile& file, const std::string& name,
                        const std::vector<T>& wanted) {
  const auto found = file.column<T>("/plan/" + name, wanted.size());
  for (std::size_t k = 0; k < wanted.size(); ++k)
    file.demand("/plan/" + name, k, found[k], wanted[k]);
}

void verify_plan(const JudgedFile& file, const PlanRecord& found, const PlanRecord& wanted) {
  const auto attribute = [&](const char* name, const auto& value, const auto& should) {
    file.demand_attribute("/plan", name, value, should);
  };
  attribute("rule", found.rule, wanted.rule);
  attribute("placement", found.placement, wanted.placement);
  attribute("order", found.order, wanted.order);
  attribute("devices", found.devices, wanted.devices);
  attribute("micro_batches", found.micro_batches, wanted.micro_batches);
  attribute("stages", found.stages, wanted.stages);
  if (found.collective_bytes_per_step)
    attribute("collective_bytes_per_step", *found.collective_bytes_per_step,
              *wanted.collective_bytes_per_step);
  attribute("activation_bytes_together", found.activation_bytes_together,
            wanted.activation_bytes_together);
  attribute("activation_bytes_accumulate", found.activation_bytes_accumulate,
            wanted.activation_bytes_accumulate);
  verify_plan_column(file, "messages_per_step", wanted.messages_per_step);
  verify_plan_column(file, "bytes_per_step", wanted.bytes_per_step);
  verify_plan_column(file, "stage_layers", wanted.stage_layers);
  verify_plan_column(file, "stage_activations", wanted.stage_activations);
  for (std::size_t c = 0; c < category_count; ++c) {
    std::vector<std::int64_t> bytes;
    for (const CategoryBytes& device : wanted.bytes) bytes.push_back(device[c]);
    verify_plan_column(file, fmt::format("bytes/{}", to_string(static_cast<Category>(c))), bytes);
  }
}

/// Where a part of a run lies in it, and what it must be.
struct JudgedPart {
  const RunPart& found;
  const Expectation& expected;
  std::int64_t first = 0;              // step
  std::int64_t end = 0;                // where the next part goes on, or the run ends
  std::vector<Segment> segments = {};  // of its rank 0
  // [stage][step of the part] digests of every stage after every update
  std::vector<std::vector<std::uint64_t>> receipts = {};
};

/// All parts, of which the last one is the newest. A part may have made steps that no later part
/// goes on from.
std::vector<JudgedPart> judged_parts(const RunSummary& run, std::span<const Expectation> expected) {
  std::vector<JudgedPart> parts;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const RunPart& found = k < run.earlier.size() ? run.earlier[k] : run;
    const std::int64_t first = found.part.first_step;
    for (JudgedPart& before : parts) before.end = std::clamp(first, before.first, before.end);
    parts.push_back({.found = found, .expected = expected[k], .first = first, .end = run.steps});
  }
  return parts;
}

/// The part that made the update before `step`.
const JudgedPart& part_before(std::span<const JudgedPart> parts, std::int64_t step) {
  const auto found = std::ranges::find_if(
      parts, [&](const JudgedPart& part) { return part.first < step && step <= part.end; });
  CAROUSEL_CHECK(found != parts.end(), "no part made the update before step {}", step);
  return *found;
}

/// Metrics lie within what they may be.
void demand_metrics(const JudgedFile& file, const std::string& group, MetricNames names,
                    std::size_t row, const MetricValues& values) {
  for (std::size_t k = 0; k < names.size(); ++k) {
    const Metric& metric = metric_named(names[k]);
    file.demand_within(group + names[k], row, values[k], metric.least, metric.most);
  }
}

void verify_steps(const JudgedFile& file, const RunSummary& run,
                  std::span<const JudgedPart> parts) {
  const std::int64_t first = run.first_step();
  const auto rows = static_cast<std::size_t>(run.steps - first);
  std::set<std::string> words;  // these records have none
  const auto found = file.rows<StepRecord>(rows, words, run.metrics);
  double before = 0;
  for (std::size_t k = 0; k < rows; ++k) {
    const StepRecord& row = found[k];
    const std::int64_t t = first + static_cast<std::int64_t>(k);
    const Expectation& expected = part_before(parts, t + 1).expected;
    file.demand_row<StepRecord>(k, row, {.step = t, .epoch = expected.agenda.epochs_after(t)});
    // Cosines of two machines may differ in their last bits.
    const double wanted = expected.learning_rate(t);
    if (!(std::abs(row.learning_rate - wanted) <= 1e-12 * std::abs(wanted)))
      file.demand("/steps/learning_rate", k, row.learning_rate, wanted);
    demand_metrics(file, "/steps/", run.metrics, k, row.metrics);
    file.demand_within("/steps/seconds", k, row.seconds, before,
                       std::numeric_limits<double>::max());
    file.demand_within("/steps/images_per_second", k, row.images_per_second, 0,
                       std::numeric_limits<double>::max());
    before = row.seconds;
  }
}

/// The segments that a rank recorded: one after the other, none longer than the deck lets it be.
std::vector<Segment> verify_segments(const JudgedFile& file, const JudgedPart& part) {
  std::set<std::string> words;  // these records have none
  const hdf5::File& hdf5 = file.hdf5();
  if (!hdf5.contains(Columns<SegmentRecord>::group))
    file.wrong("has no /segments; an earlier Carousel did not write them; train again");
  std::vector<Segment> segments;
  std::int64_t next = part.first;
  for (const SegmentRecord& row : read_rows<SegmentRecord>(hdf5, words)) {
    const std::size_t k = segments.size();
    file.demand("/segments/first", k, row.first, next);
    const std::int64_t longest =
        next < part.expected.agenda.total_steps ? part.expected.agenda.segment_at(next).last : next;
    if (row.last <= next || row.last > longest)
      file.wrong("/segments/last row {} is {}, should lie between {} and {}", k, row.last, next + 1,
                 longest);
    segments.push_back({row.first, row.last});
    next = row.last;
  }
  return segments;
}

/// Whether evaluations that got no better ended the run, as the last deck has it, and not before.
bool ended_early(const JudgedFile& file, const RunSummary& run, const JudgedPart& part) {
  const int patience = part.expected.agenda.patience;
  if (patience == 0) return false;
  const auto is_over = [&](std::size_t count) {
    return is_out_of_patience(std::span(run.evaluations).first(count), run.metrics, patience);
  };
  for (std::size_t k = 0; k + 1 < run.evaluations.size(); ++k) {
    const std::int64_t step = run.evaluations[k].step;
    if (step > part.first && step < run.steps && is_over(k + 1))
      file.wrong(
          "/evaluations row {}: the run should have ended after step {}, by a patience of {}", k,
          step, patience);
  }
  return !run.evaluations.empty() && run.evaluations.back().step == run.steps &&
         is_over(run.evaluations.size());
}

/// How the run ended, its losses and its length agree: all devices stop decision_lag steps after
/// the first loss that is not finite, or with the segment if that is earlier. Where all of them are
/// finite, the parameters ceased to be, which a checkpoint tells, or the test loss did.
void verify_end(const JudgedFile& file, const RunSummary& run, const JudgedPart& part) {
  const Agenda& agenda = part.expected.agenda;
  const RunState state = run.status ? run.status->state : RunState::running;
  const auto first = std::ranges::find_if_not(
      run.rows, [](double loss) { return std::isfinite(loss); }, &StepRecord::loss);
  const std::int64_t t = run.first_step() + (first - run.rows.begin());
  std::int64_t wanted = agenda.total_steps;
  if (state == RunState::diverged) {
    const bool told_by_numbers = t == run.steps;
    wanted = told_by_numbers ? t : std::min(agenda.segment_at(t).last, t + decision_lag);
    // Somebody may have wanted a pause just before.
    if (!told_by_numbers && run.steps < wanted && !part.segments.empty() &&
        part.segments.back().last == run.steps && run.steps > t)
      return;
  } else {
    if (t < run.steps)
      file.wrong("/steps/loss row {} is {}, but the run is {}", t - run.first_step(), first->loss,
                 to_string(state));
    // As far as it came.
    const auto ends = [&](const Segment& segment) { return segment.last == run.steps; };
    if (state != RunState::done &&
        (run.steps == part.first || std::ranges::any_of(part.segments, ends)))
      return;
    if (ended_early(file, run, part)) return;
  }
  if (run.steps != wanted)
    file.wrong("/steps/loss has {} rows, should have {} in a run that is {}",
               run.steps - run.first_step(), wanted - run.first_step(), to_string(state));
}

/// The exit code that goes with a state in status.json.
bool fits(const RunStatus& status) {
  switch (status.state) {
    case RunState::running:
    case RunState::done:
      return status.exit_code == 0;
    case RunState::stopped:
      return status.exit_code == static_cast<int>(ExitCode::requeue);
    case RunState::failed:
      return status.exit_code != 0;
    case RunState::diverged:
      return status.exit_code == static_cast<int>(ExitCode::diverged);
  }
  return false;
}

/// status.json agrees with the records. A run writes its records first: if it ended between the two
/// or in the middle of a segment, its status may be up to a segment behind or ahead.
void verify_status(const RunSummary& run, const JudgedPart& part) {
  if (!run.status) return;
  const RunStatus& status = *run.status;
  const std::string file = run.folder + "/status.json";
  if (!fits(status))
    fail(ExitCode::bad_data, "{}: exit_code is {} in a run that is {}", file, status.exit_code,
         to_string(status.state));
  std::int64_t least = run.steps;
  std::int64_t most = run.steps;
  if (status.state == RunState::running || status.state == RunState::failed) {
    const Agenda& agenda = part.expected.agenda;
    const auto last = std::ranges::find(part.segments, run.steps, &Segment::last);
    if (last != part.segments.end()) least = last->first;
    if (run.steps < agenda.total_steps) most = agenda.segment_at(run.steps).last;
  }
  if (status.step < least || status.step > most)
    fail(ExitCode::bad_data, "{}: step is {}, but {} has {} steps in a run that is {}", file,
         status.step, run.file, run.steps, to_string(status.state));
}

/// Evaluations stand where the decks ask for them. A run cut short may lack its last one; where a
/// part goes on from another, either deck may have asked for one.
std::int64_t verify_evaluations(const JudgedFile& file, const RunSummary& run,
                                std::span<const JudgedPart> parts) {
  const bool done = run.status && run.status->state == RunState::done;
  std::size_t k = 0;  // of those found
  std::vector<EvaluationRecord> wanted;
  for (std::int64_t step = run.first_step() + 1; step <= run.steps; ++step) {
    const Agenda& agenda = part_before(parts, step).expected.agenda;
    const bool is_due = agenda.evaluates_after(step);
    bool may_lack = step == run.steps && !done;
    bool may_have = is_due;
    std::int64_t epoch = agenda.epochs_after(step);
    for (const JudgedPart& part : parts) {
      if (part.first != step) continue;
      const bool is_due_again = part.expected.agenda.evaluates_after(step);
      may_lack = may_lack || !is_due_again;
      may_have = may_have || is_due_again;
      // What an epoch has left may be too little for a step of another size.
      if (!is_due && is_due_again) epoch = part.expected.agenda.epochs_after(step);
    }
    const bool is_there = k < run.evaluations.size() && run.evaluations[k].step == step;
    if (is_there ? !may_have : !may_have || may_lack) continue;
    wanted.push_back({.step = step, .epoch = epoch});
    ++k;
  }
  std::set<std::string> words;  // these records have none
  const auto found = file.rows<EvaluationRecord>(wanted.size(), words, run.metrics);
  for (std::size_t row = 0; row < wanted.size(); ++row) {
    file.demand_row<EvaluationRecord>(row, found[row], wanted[row]);
    demand_metrics(file, "/evaluations/", run.metrics, row, found[row].metrics);
  }
  return std::ssize(wanted);
}

void verify_info(const JudgedFile& file, const RunInfo& info, const RunInfo& wanted) {
  if (info.deck != wanted.deck) file.wrong("attribute deck of /info is not that of run.h5");
  file.demand_attribute("/info", "seed", info.seed, wanted.seed);
  file.demand_attribute("/info", "git_hash", info.git_hash, wanted.git_hash);
}

/// run.h5 links to the files of the ranks, so that h5py sees one file.
void verify_links(const JudgedFile& file, const Schedule& schedule, int part) {
  const auto verify = [&](const std::string& object, int rank, const std::string& target) {
    const std::string wanted = fmt::format("{}:{}", rank_file_name(rank, part), target);
    const std::string found = file.hdf5().link_target(object);
    if (found.empty()) file.wrong("{} is missing", object);
    if (found != wanted) file.wrong("{} leads to {}, should lead to {}", object, found, wanted);
  };
  for (int d = 0; d < schedule.devices(); ++d) verify(fmt::format("/ranks/{:04}", d), d, "/");
  for (int j = 0; j < schedule.rule().stages(); ++j) {
    const std::string receipts = fmt::format("/receipts/{}", j);
    verify(receipts, schedule.owner(j), receipts);
  }
}

/// Every stage has a receipt per update, in the file of its owner and nowhere else; adds those of
/// one device.
std::int64_t verify_receipts(const JudgedFile& file, JudgedPart& part, int device,
                             std::int64_t steps) {
  const Expectation& expected = part.expected;
  std::int64_t count = 0;
  for (int j = 0; j < expected.schedule.rule().stages(); ++j) {
    const std::string name = fmt::format("/receipts/{}", j);
    const bool owns = expected.schedule.owner(j) == device;
    if (!owns && file.hdf5().contains(name))
      file.wrong("{} should be in the file of device {} alone", name, expected.schedule.owner(j));
    if (!owns || (steps == 0 && !file.hdf5().contains(name))) continue;
    part.receipts[static_cast<std::size_t>(j)] =
        file.column<std::uint64_t>(name, static_cast<std::size_t>(steps));
    count += steps;
  }
  return count;
}

/// Both ends of a message seen from outside: who sent what to whom.
struct Meeting {
  std::int64_t step = 0;
  std::string kind;
  int stage = 0;
  int piece = -1;
  int micro_batch = 0;
  int from = 0;
  int to = 0;
  std::int64_t bytes = 0;
  auto operator<=>(const Meeting&) const = default;
};

/// Ends seen so far: sends less receives, and the row of the last one.
struct Ends {
  std::int64_t balance = 0;
  int device = 0;
  std::size_t row = 0;
};

class Meetings {
 public:
  void add(int device, std::size_t row, const MessageEnd& end) {
    if (end.collective) return;
    const int from = end.sent ? device : end.peer;
    const int to = end.sent ? end.peer : device;
    Ends& ends =
        ends_[{end.step, end.kind, end.stage, end.piece, end.micro_batch, from, to, end.bytes}];
    ends = {ends.balance + (end.sent ? 1 : -1), device, row};
    sent_ += end.sent ? 1 : 0;
  }

  /// Every message of a step before `steps` has both ends; returns the messages of all steps.
  [[nodiscard]] std::int64_t verify(const std::string& folder, int part, std::int64_t steps) const {
    for (const auto& [meeting, ends] : ends_) {
      if (ends.balance == 0 || meeting.step >= steps) continue;
      fail(ExitCode::bad_data, "{}/{}: /messages row {}: {} of step {}, stage {} has only one end",
           folder, rank_file_name(ends.device, part), ends.row, meeting.kind, meeting.step,
           meeting.stage);
    }
    return sent_;
  }

 private:
  std::map<Meeting, Ends> ends_;
  std::int64_t sent_ = 0;
};

/// Digest of a stage in a checkpoint, as its receipts have it: parameters that learn, then buffers.
std::uint64_t digest_of(const Checkpoint& checkpoint, const Model& model, const StageMemory& stage,
                        const char* parameters) {
  std::vector<real> flat;
  const auto add = [&](const std::string& group, auto list) {
    for (int k = 0; k < stage.layers; ++k) {
      for (const ParameterSpec& tensor : model.layers[stage.first + k].*list) {
        if (tensor.frozen) continue;
        const std::vector<real> values = checkpoint.values(group + tensor.name, tensor.shape);
        flat.insert(flat.end(), values.begin(), values.end());
      }
    }
  };
  add(parameters, &LayerSpec::parameters);
  add("/buffers/", &LayerSpec::buffers);
  return digest(std::span<const real>(flat));
}

/// Where a checkpoint stands in the run follows from its step; returns the part that made it.
const JudgedPart& verify_place(const Checkpoint& checkpoint, const RunSummary& run,
                               std::span<const JudgedPart> parts) {
  const CheckpointPlace& place = checkpoint.place();
  const auto wrong = [&](const char* name, std::int64_t found, std::int64_t wanted) {
    if (found != wanted)
      fail(ExitCode::bad_data, "{}: attribute {} of / is {}, should be {}", checkpoint.path(), name,
           found, wanted);
  };
  if (place.step <= run.first_step() || place.step > run.steps)
    fail(ExitCode::bad_data, "{}: was made after {} steps, but receipts end with {}",
         checkpoint.path(), place.step, run.steps);
  const JudgedPart& part = part_before(parts, place.step);
  if (std::ranges::find(part.segments, place.step, &Segment::last) == part.segments.end())
    fail(ExitCode::bad_data, "{}: was made after {} steps, where the run made no pause",
         checkpoint.path(), place.step);
  const EpochPosition wanted = part.expected.order.locate(place.step, 0);
  wrong("epoch", place.epoch, wanted.epoch);
  wrong("position", place.position, wanted.first);
  wrong("micro_batches", place.micro_batches, part.expected.schedule.rule().micro_batches());
  wrong("micro_batch_size", place.micro_batch_size, part.expected.micro_batch_size);
  return part;
}

/// Parameters and buffers of a checkpoint have the digests of their receipts; so have previous
/// parameters, where they have no buffers, which are not stored, and where the same part made them;
/// not so in bf16, where what is previous is not what was updated, unless prediction needs that.
/// What was predicted and what the optimizer keeps have no receipts; they must be there.
void verify_checkpoint(const Checkpoint& checkpoint, const RunSummary& run,
                       const JudgedPart& part) {
  const Expectation& expected = part.expected;
  const std::int64_t step = checkpoint.place().step - part.first;
  for (std::size_t j = 0; j < expected.memory.stages.size(); ++j) {
    const StageMemory& stage = expected.memory.stages[j];
    const auto demand = [&](std::int64_t row, const char* parameters) {
      const std::uint64_t found = digest_of(checkpoint, expected.model, stage, parameters);
      const std::uint64_t receipt = part.receipts[j].at(static_cast<std::size_t>(row));
      const int owner = expected.schedule.owner(static_cast<int>(j));
      if (found != receipt)
        fail(ExitCode::bad_data, "{}/{}: /receipts/{} row {} is {}, should be {} as in {} of {}",
             run.folder, rank_file_name(owner, part.found.number), j, row, receipt, found,
             parameters, checkpoint.path());
    };
    demand(step - 1, "/parameters/");
    const bool predicts = expected.schedule.parallel().predict > 0;
    if (expected.schedule.rule().cyclic() && stage.buffer_size == 0 &&
        (predicts || !stage.keeps_full) && step > 1)
      demand(step - 2, "/previous/");
    if (predicts) static_cast<void>(digest_of(checkpoint, expected.model, stage, "/predicted/"));
    for (const std::string& state : expected.optimizer_states)
      static_cast<void>(
          digest_of(checkpoint, expected.model, stage, optimizer_group(state).c_str()));
  }
}

/// All checkpoints that were kept; returns the step of the newest, or -1 where there is none.
std::int64_t verify_checkpoints(const RunSummary& run, std::span<const JudgedPart> parts) {
  const fs::path folder = fs::path(run.folder) / "checkpoints";
  const std::string last = (folder / last_checkpoint).string();
  std::error_code unknown;  // the files themselves will tell
  const bool linked = fs::symlink_status(last, unknown).type() != fs::file_type::not_found;
  const std::vector<fs::path> files =
      fs::exists(folder, unknown) ? checkpoints_of(run.folder) : std::vector<fs::path>();
  if (files.empty() && !linked) return -1;
  std::vector<std::int64_t> made;  // after how many steps, newest first
  for (const fs::path& file : files) {
    const Checkpoint checkpoint(file.string());
    // What a run began with that another one has trained has no receipts here.
    if (checkpoint.place().step != run.first_step() || run.first_step() == 0)
      verify_checkpoint(checkpoint, run, verify_place(checkpoint, run, parts));
    made.push_back(checkpoint.place().step);
  }
  const std::int64_t newest = made.empty() ? -1 : made.front();
  // A run may have been killed when its newest checkpoint was there and the link to it was not.
  const bool done = run.status && run.status->state == RunState::done;
  const bool killed_there = !done && run.steps == newest;
  const auto saved_before = [&](const JudgedPart& part) {
    return std::ranges::any_of(part.segments, [&](const Segment& segment) {
      return segment.last < newest && part.expected.agenda.saves_after(segment.last);
    });
  };
  if (killed_there && !linked && std::ranges::none_of(parts, saved_before)) return newest;
  // Mostly a link to what was read already.
  const bool same = !files.empty() && fs::equivalent(last, files.front(), unknown);
  const std::int64_t step = same ? newest : Checkpoint(last).place().step;
  const bool behind = killed_there && made.size() > 1 && step == made[1];
  if ((step != newest && !behind) || (done && step != run.steps))
    fail(ExitCode::bad_data, "{}: was made after {} steps, the newest is of {}, the run made {}",
         last, step, newest, run.steps);
  return newest;
}

/// All files of ranks of one part.
void verify_part(const RunSummary& run, JudgedPart& part, bool is_newest, Verified& result) {
  const Expectation& expected = part.expected;
  const RunState state = run.status ? run.status->state : RunState::running;
  const bool is_whole = is_newest && (state == RunState::done || state == RunState::diverged ||
                                      state == RunState::stopped);
  part.receipts.resize(expected.memory.stages.size());
  Meetings meetings;
  std::int64_t common = std::numeric_limits<std::int64_t>::max();
  for (int d = 0; d < expected.schedule.devices(); ++d) {
    const std::string name = rank_file_name(d, part.found.number);
    const JudgedFile file(fmt::format("{}/{}", run.folder, name));
    verify_info(file, read_info(file.hdf5(), rank_format), part.found.info);
    const std::vector<Segment> segments = verify_segments(file, part);
    // Ranks of a part that was killed may be a segment apart.
    const std::size_t both = std::min(segments.size(), part.segments.size());
    for (std::size_t k = 0; k < both; ++k)
      file.demand("/segments/last", k, segments[k].last, part.segments[k].last);
    const std::int64_t end = segments.empty() ? part.first : segments.back().last;
    const bool may_be_behind = is_newest && !is_whole;
    if (is_whole ? end != part.end : end < part.end && !may_be_behind)
      file.wrong("/segments end after {} steps, should end after {}", end, part.end);
    const VerifiedRank rank = verify_rank(file, expected, d, segments);
    result.receipts += verify_receipts(file, part, d, end - part.first);
    result.actions += rank.actions;
    for (std::size_t k = 0; k < rank.messages.size(); ++k) meetings.add(d, k, rank.messages[k]);
    common = std::min(common, end);
  }
  result.messages += meetings.verify(run.folder, part.found.number, common);
  result.lost_steps += std::max<std::int64_t>(0, common - part.end);
}

}  // namespace

Verified verify_run(const RunSummary& run, std::span<const Expectation> expected) {
  const JudgedFile main(run.file);
  main.demand_attribute("/info", "seed", run.info.seed, expected.back().seed);
  verify_plan(main, *run.plan, expected.back().plan);
  if (run.steps > run.first_step()) verify_links(main, expected.back().schedule, run.number);
  std::vector<JudgedPart> parts = judged_parts(run, expected);
  verify_steps(main, run, parts);
  Verified result{.steps = run.steps};
  for (JudgedPart& part : parts) {
    const JudgedFile first(fmt::format("{}/{}", run.folder, rank_file_name(0, part.found.number)));
    part.segments = verify_segments(first, part);
  }
  verify_end(main, run, parts.back());
  verify_status(run, parts.back());
  for (JudgedPart& part : parts) verify_part(run, part, &part == &parts.back(), result);
  result.evaluations = verify_evaluations(main, run, parts);
  for (const JudgedPart& part : parts)
    for (std::int64_t t = part.first; t < part.end; ++t)
      result.profiled_steps += part.expected.profiled(t) ? 1 : 0;
  result.checkpoint_step = verify_checkpoints(run, parts);
  return result;
}

}  // namespace carousel
