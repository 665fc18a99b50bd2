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

void verify_steps(const JudgedFile& file, const Expectation& expected, std::int64_t steps) {
  const auto rows = static_cast<std::size_t>(steps);
  std::set<std::string> words;  // these records have none
  const auto found = file.rows<StepRecord>(rows, words);
  double before = 0;
  for (std::size_t k = 0; k < rows; ++k) {
    const StepRecord& row = found[k];
    const auto t = static_cast<std::int64_t>(k);
    file.demand_row<StepRecord>(k, row, {.step = t, .epoch = t / expected.agenda.steps_per_epoch});
    // Cosines of two machines may differ in their last bits.
    const double wanted = expected.learning_rate(t);
    if (!(std::abs(row.learning_rate - wanted) <= 1e-12 * std::abs(wanted)))
      file.demand("/steps/learning_rate", k, row.learning_rate, wanted);
    file.demand_within("/steps/accuracy", k, row.accuracy, 0, 1);
    file.demand_within("/steps/seconds", k, row.seconds, before,
                       std::numeric_limits<double>::max());
    file.demand_within("/steps/images_per_second", k, row.images_per_second, 0,
                       std::numeric_limits<double>::max());
    before = row.seconds;
  }
}

/// The segments of a run that made `steps` updates; the last one may have been cut short.
std::vector<Segment> segments_until(const Expectation& expected, std::int64_t steps) {
  std::vector<Segment> segments;
  for (std::int64_t t = 0; t < steps; t = segments.back().last) {
    segments.push_back(expected.agenda.segment_at(t));
    segments.back().last = std::min(segments.back().last, steps);
  }
  return segments;
}

/// How the run ended, its losses and its length agree: all devices stop three steps after the first
/// loss that is not finite, or with the segment if that is earlier. Where all of them are finite,
/// the parameters ceased to be, which a checkpoint tells, or the test loss did.
void verify_end(const JudgedFile& file, const RunSummary& run, const Expectation& expected) {
  const RunState state = run.status ? run.status->state : RunState::running;
  const auto first =
      std::ranges::find_if_not(run.losses, [](double x) { return std::isfinite(x); });
  const std::int64_t t = first - run.losses.begin();
  std::int64_t wanted = expected.agenda.total_steps;
  if (state == RunState::diverged) {
    if (t == run.steps && !expected.agenda.saves_after(t) && !expected.agenda.evaluates_after(t))
      file.wrong("/steps/loss is finite in every row, but the run diverged");
    wanted = t == run.steps ? t : std::min(expected.agenda.segment_at(t).last, t + 3);
  } else {
    if (t < run.steps)
      file.wrong("/steps/loss row {} is {}, but the run is {}", t, *first, to_string(state));
    if (state != RunState::done && expected.agenda.pauses_after(run.steps)) return;
  }
  if (run.steps != wanted)
    file.wrong("/steps/loss has {} rows, should have {} in a run that is {}", run.steps, wanted,
               to_string(state));
}

/// The exit code that goes with a state in status.json.
bool fits(const RunStatus& status) {
  switch (status.state) {
    case RunState::running:
    case RunState::done:
      return status.exit_code == 0;
    case RunState::failed:
      return status.exit_code != 0;
    case RunState::diverged:
      return status.exit_code == static_cast<int>(ExitCode::diverged);
  }
  return false;
}

/// status.json agrees with the records. A run writes its records first: if it ended between the two
/// or in the middle of a segment, its status may be up to a segment behind or ahead.
void verify_status(const RunSummary& run, const Expectation& expected) {
  if (!run.status) return;
  const RunStatus& status = *run.status;
  const std::string file = run.folder + "/status.json";
  if (!fits(status))
    fail(ExitCode::bad_data, "{}: exit_code is {} in a run that is {}", file, status.exit_code,
         to_string(status.state));
  std::int64_t least = run.steps;
  std::int64_t most = run.steps;
  if (status.state == RunState::running || status.state == RunState::failed) {
    if (run.steps > 0) least = segments_until(expected, run.steps).back().first;
    if (run.steps < expected.agenda.total_steps) most = expected.agenda.segment_at(run.steps).last;
  }
  if (status.step < least || status.step > most)
    fail(ExitCode::bad_data, "{}: step is {}, but {} has {} steps in a run that is {}", file,
         status.step, run.file, run.steps, to_string(status.state));
}

/// Evaluations stand where the deck asks for them; a run cut short may lack its last one.
std::int64_t verify_evaluations(const JudgedFile& file, const RunSummary& run,
                                const Expectation& expected) {
  std::vector<std::int64_t> wanted;
  for (const Segment& segment : segments_until(expected, run.steps))
    if (expected.agenda.evaluates_after(segment.last)) wanted.push_back(segment.last);
  const bool done = run.status && run.status->state == RunState::done;
  const bool last_missing = !done && !wanted.empty() && run.evaluations.size() + 1 == wanted.size();
  if (last_missing && wanted.back() == run.steps) wanted.pop_back();
  std::set<std::string> words;  // these records have none
  const auto found = file.rows<EvaluationRecord>(wanted.size(), words);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    file.demand_row<EvaluationRecord>(
        k, found[k], {.step = wanted[k], .epoch = wanted[k] / expected.agenda.steps_per_epoch});
    file.demand_within("/evaluations/accuracy", k, found[k].accuracy, 0, 1);
  }
  return std::ssize(wanted);
}

void verify_info(const JudgedFile& file, const RunInfo& info, const RunInfo& wanted) {
  if (info.deck != wanted.deck) file.wrong("attribute deck of /info is not that of run.h5");
  file.demand_attribute("/info", "seed", info.seed, wanted.seed);
  file.demand_attribute("/info", "git_hash", info.git_hash, wanted.git_hash);
}

/// run.h5 links to the files of the ranks, so that h5py sees one file.
void verify_links(const JudgedFile& file, const Schedule& schedule) {
  const auto verify = [&](const std::string& object, int rank, const std::string& target) {
    const std::string wanted = fmt::format("{}:{}", rank_file_name(rank), target);
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

/// Updates that a rank's file holds. Ranks of a run that was killed may be an epoch apart.
std::int64_t recorded_steps(const JudgedFile& file, const RunSummary& run,
                            const Expectation& expected, int device) {
  const RunState state = run.status ? run.status->state : RunState::running;
  if (state == RunState::done || state == RunState::diverged) return run.steps;
  if (!file.hdf5().contains("/measured")) return 0;  // it finished no segment
  std::int64_t steps = run.steps;
  const std::int64_t messages = file.hdf5().integer("/measured", "messages_sent");
  std::int64_t counted = 0;
  const std::int64_t total = expected.agenda.total_steps;
  // Who sends nothing has no count to go by.
  for (std::int64_t t = 0; counted != messages && t <= run.steps && t < total; t = steps) {
    const Segment segment = expected.agenda.segment_at(t);
    counted += sent_in(expected.schedule, device, segment).messages;
    steps = segment.last;
  }
  for (int j = 0; j < expected.schedule.rule().stages(); ++j) {
    const std::string receipts = fmt::format("/receipts/{}", j);
    if (expected.schedule.owner(j) == device)
      steps = file.hdf5().contains(receipts) ? std::ssize(file.hdf5().read<std::uint64_t>(receipts))
                                             : 0;
  }
  return expected.agenda.pauses_after(steps) ? steps : run.steps;
}

/// Digests of every stage after every update.
using Receipts = std::vector<std::vector<std::uint64_t>>;  // [stage][step]

/// Every stage has a receipt per update, in the file of its owner and nowhere else; adds those of
/// one device.
std::int64_t verify_receipts(const JudgedFile& file, const Expectation& expected, int device,
                             std::int64_t steps, Receipts& receipts) {
  std::int64_t count = 0;
  for (int j = 0; j < expected.schedule.rule().stages(); ++j) {
    const std::string name = fmt::format("/receipts/{}", j);
    const bool owns = expected.schedule.owner(j) == device;
    if (!owns && file.hdf5().contains(name))
      file.wrong("{} should be in the file of device {} alone", name, expected.schedule.owner(j));
    if (!owns || (steps == 0 && !file.hdf5().contains(name))) continue;
    receipts[j] = file.column<std::uint64_t>(name, static_cast<std::size_t>(steps));
    count += steps;
  }
  return count;
}

/// Both ends of a message seen from outside: who sent what to whom.
struct Meeting {
  std::int64_t step = 0;
  std::string kind;
  int stage = 0;
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
    Ends& ends = ends_[{end.step, end.kind, end.stage, end.micro_batch, from, to, end.bytes}];
    ends = {ends.balance + (end.sent ? 1 : -1), device, row};
    sent_ += end.sent ? 1 : 0;
  }

  /// Every message of a step before `steps` has both ends; returns the messages of all steps.
  [[nodiscard]] std::int64_t verify(const RunSummary& run, std::int64_t steps) const {
    for (const auto& [meeting, ends] : ends_) {
      if (ends.balance == 0 || meeting.step >= steps) continue;
      fail(ExitCode::bad_data, "{}/{}: /messages row {}: {} of step {}, stage {} has only one end",
           run.folder, rank_file_name(ends.device), ends.row, meeting.kind, meeting.step,
           meeting.stage);
    }
    return sent_;
  }

 private:
  std::map<Meeting, Ends> ends_;
  std::int64_t sent_ = 0;
};

/// Digest of a stage in a checkpoint, as its receipts have it: parameters, then buffers.
std::uint64_t digest_of(const Checkpoint& checkpoint, const Model& model, const StageMemory& stage,
                        const char* parameters) {
  std::vector<real> flat;
  const auto add = [&](const std::string& group, auto list) {
    for (int k = 0; k < stage.layers; ++k) {
      for (const ParameterSpec& tensor : model.layers[stage.first + k].*list) {
        const auto values = checkpoint.values(group + tensor.name, tensor.shape);
        flat.insert(flat.end(), values.begin(), values.end());
      }
    }
  };
  add(parameters, &LayerSpec::parameters);
  add("/buffers/", &LayerSpec::buffers);
  return digest(std::span<const real>(flat));
}

/// Where a checkpoint stands in the run follows from its step.
void verify_place(const Checkpoint& checkpoint, const Expectation& expected, std::int64_t steps) {
  const CheckpointPlace& place = checkpoint.place();
  const auto wrong = [&](const char* name, std::int64_t found, std::int64_t wanted) {
    if (found != wanted)
      fail(ExitCode::bad_data, "{}: attribute {} of / is {}, should be {}", checkpoint.path(), name,
           found, wanted);
  };
  if (place.step < 1 || place.step > steps)
    fail(ExitCode::bad_data, "{}: was made after {} steps, but receipts end with {}",
         checkpoint.path(), place.step, steps);
  if (!expected.agenda.saves_after(place.step))
    fail(ExitCode::bad_data, "{}: was made after {} steps, where the deck wants none",
         checkpoint.path(), place.step);
  wrong("epoch", place.epoch, place.step / expected.agenda.steps_per_epoch);
  wrong("micro_batches", place.micro_batches, expected.schedule.rule().micro_batches());
  wrong("micro_batch_size", place.micro_batch_size, expected.micro_batch_size);
}

/// Parameters and buffers of a checkpoint have the digests of their receipts, of which every stage
/// has `steps`; so have previous parameters, where they have no buffers, which are not stored.
/// Momentum has no receipts; it must be there.
void verify_checkpoint(const Checkpoint& checkpoint, const RunSummary& run,
                       const Expectation& expected, const Receipts& receipts) {
  const std::int64_t step = checkpoint.place().step;
  for (std::size_t j = 0; j < expected.memory.stages.size(); ++j) {
    const StageMemory& stage = expected.memory.stages[j];
    const auto demand = [&](std::int64_t row, const char* parameters) {
      const std::uint64_t found = digest_of(checkpoint, expected.model, stage, parameters);
      const std::uint64_t receipt = receipts[j][static_cast<std::size_t>(row)];
      if (found != receipt)
        fail(ExitCode::bad_data, "{}/{}: /receipts/{} row {} is {}, should be {} as in {} of {}",
             run.folder, rank_file_name(expected.schedule.owner(static_cast<int>(j))), j, row,
             receipt, found, parameters, checkpoint.path());
    };
    demand(step - 1, "/parameters/");
    if (expected.schedule.rule().cyclic() && stage.buffer_size == 0 && step > 1)
      demand(step - 2, "/previous/");
    for (const std::string& state : expected.optimizer_states)
      static_cast<void>(
          digest_of(checkpoint, expected.model, stage, optimizer_group(state).c_str()));
  }
}

/// All checkpoints that were kept; returns the step of the newest, or -1 where there is none.
std::int64_t verify_checkpoints(const RunSummary& run, const Expectation& expected,
                                const Receipts& receipts, std::int64_t steps) {
  const fs::path folder = fs::path(run.folder) / "checkpoints";
  const std::string last = (folder / "last.h5").string();
  std::error_code unknown;  // the files themselves will tell
  const bool linked = fs::symlink_status(last, unknown).type() != fs::file_type::not_found;
  const std::vector<fs::path> files =
      fs::exists(folder, unknown) ? checkpoints_of(run.folder) : std::vector<fs::path>();
  if (files.empty() && !linked) return -1;
  std::vector<std::int64_t> made;  // after how many steps, newest first
  for (const fs::path& file : files) {
    const Checkpoint checkpoint(file.string());
    verify_place(checkpoint, expected, steps);
    verify_checkpoint(checkpoint, run, expected, receipts);
    made.push_back(checkpoint.place().step);
  }
  const std::int64_t newest = made.empty() ? -1 : made.front();
  // A run may have been killed when its newest checkpoint was there and the link to it was not.
  const bool done = run.status && run.status->state == RunState::done;
  const bool killed_there = !done && run.steps == newest;
  const auto saved_before = [&](const Segment& segment) {
    return segment.last < newest && expected.agenda.saves_after(segment.last);
  };
  if (killed_there && !linked &&
      std::ranges::none_of(segments_until(expected, newest), saved_before))
    return newest;
  // Mostly a link to what was read already.
  const bool same = !files.empty() && fs::equivalent(last, files.front(), unknown);
  const std::int64_t step = same ? newest : Checkpoint(last).place().step;
  const bool behind = killed_there && made.size() > 1 && step == made[1];
  if ((step != newest && !behind) || (done && step != run.steps))
    fail(ExitCode::bad_data, "{}: was made after {} steps, the newest is of {}, the run made {}",
         last, step, newest, run.steps);
  return newest;
}

}  // namespace

Verified verify_run(const RunSummary& run, const Expectation& expected) {
  const JudgedFile main(run.file);
  main.demand_attribute("/info", "seed", run.info.seed, expected.seed);
  verify_plan(main, *run.plan, expected.plan);
  if (run.steps > 0) verify_links(main, expected.schedule);
  verify_steps(main, expected, run.steps);
  verify_end(main, run, expected);
  verify_status(run, expected);
  Verified result{.steps = run.steps, .evaluations = verify_evaluations(main, run, expected)};
  for (std::int64_t t = 0; t < run.steps; ++t)
    result.profiled_steps += expected.profiled(t) ? 1 : 0;

  Meetings meetings;
  Receipts receipts(expected.memory.stages.size());
  std::int64_t common = run.steps;
  for (int d = 0; d < expected.schedule.devices(); ++d) {
    const JudgedFile file(fmt::format("{}/{}", run.folder, rank_file_name(d)));
    verify_info(file, read_info(file.hdf5(), "carousel rank"), run.info);
    const std::int64_t steps = recorded_steps(file, run, expected, d);
    const VerifiedRank rank = verify_rank(file, expected, d, segments_until(expected, steps));
    result.receipts += verify_receipts(file, expected, d, steps, receipts);
    result.actions += rank.actions;
    for (std::size_t k = 0; k < rank.messages.size(); ++k) meetings.add(d, k, rank.messages[k]);
    common = std::min(common, steps);
  }
  result.messages = meetings.verify(run, common);
  result.checkpoint_step = verify_checkpoints(run, expected, receipts, common);
  return result;
}

}  // namespace carousel
