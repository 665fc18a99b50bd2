// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/run_reader.hpp"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/hdf5.hpp"
#include "core/record/rows.hpp"
#include "core/record/stored_shape.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

/// The type of a tensor of the source.
NumberType read_type(const hdf5::File& file, const char* attribute) {
  const std::string name = file.string("/plan/basis", attribute);
  if (const auto type = find_value<NumberType>(name)) return *type;
  fail(ExitCode::bad_data, "{}: attribute {} of /plan/basis is \"{}\", no type of numbers",
       file.path(), attribute, name);
}

PlanBasis read_basis(const hdf5::File& file) {
  const auto number = [&](const char* name) { return file.integer("/plan/basis", name); };
  const auto small = [&](const char* name) { return read_count(file, "/plan/basis", name); };
  const auto shape = [&](const char* prefix, int channels) {
    return read_extents(file, "/plan/basis", prefix, channels);
  };
  const SampleShape shown = shape("", small("channels"));
  // Files from before there was a choice have images and labels.
  TensorSpec input = {NumberType::uint8, shape("read_", shown.channels)};
  TensorSpec target = label_spec;
  if (file.has("/plan/basis", "target_type")) {
    input.type = read_type(file, "read_type");
    target = {read_type(file, "target_type"), shape("target_", small("target_channels"))};
  }
  // As are those from before targets could be anything else than one label.
  TargetSpec of_loss(small("classes"));
  if (target.type != NumberType::int32) of_loss = TargetSpec::of_numbers(target.shape);
  of_loss.shape = target.shape;
  if (file.has("/plan/basis", "ignored"))
    of_loss.ignored = static_cast<int>(std::clamp<std::int64_t>(number("ignored"), -1, INT_MAX));
  if (file.has("/plan/basis", "has_gaps")) of_loss.has_gaps = number("has_gaps") != 0;
  return {
      .source = {.input = input,
                 .target = target,
                 .shown = shown,
                 .reader_bytes = number("reader_bytes"),
                 .target_reader_bytes = file.has("/plan/basis", "target_reader_bytes")
                                            ? number("target_reader_bytes")
                                            : 0},
      .target = of_loss,
      .train_samples = number("train_samples"),
      .test_samples = number("test_samples"),
      .real_bytes = small("real_bytes"),
      .block = file.has("/plan/basis", "block") ? small("block") : 1,  // files before there was one
      .staged_messages = number("staged_messages") != 0,
      .vendor = static_cast<VendorKernels>(
          file.has("/plan/basis", "vendor") ? std::clamp<std::int64_t>(number("vendor"), 0, 2) : 0),
      .token_bytes = file.has("/plan/basis", "token_bytes") ? small("token_bytes") : 0,
      .copies_input = number("copies_input") != 0,
      .rider_parts = file.has("/plan/basis", "rider_parts") ? small("rider_parts") : 1,
      .targets_everywhere =
          !file.has("/plan/basis", "targets_everywhere") || number("targets_everywhere") != 0};
}

/// Files from before there was a choice have the accuracy.
std::vector<std::string> read_metrics(const hdf5::File& file) {
  const char* const dataset = "/plan/metrics";
  std::vector<std::string> names{"accuracy"};
  if (file.contains(dataset)) names = file.read_strings(dataset);
  if (names.size() > std::size_t{most_metrics})
    fail(ExitCode::bad_data, "{}: {} names {} metrics", file.path(), dataset, names.size());
  return names;
}

PlanRecord read_plan(const hdf5::File& file) {
  PlanRecord plan;
  plan.rule = file.string("/plan", "rule");
  plan.placement = file.string("/plan", "placement");
  plan.order = file.string("/plan", "order");
  plan.devices = read_count(file, "/plan", "devices");
  plan.micro_batches = read_count(file, "/plan", "micro_batches");
  plan.stages = read_count(file, "/plan", "stages");
  plan.messages_per_step = file.read<std::int64_t>("/plan/messages_per_step");
  plan.bytes_per_step = file.read<std::int64_t>("/plan/bytes_per_step");
  plan.stage_layers = file.read_strings("/plan/stage_layers");
  plan.stage_activations = file.read<std::int64_t>("/plan/stage_activations");
  plan.metrics = read_metrics(file);
  if (file.has("/plan", "collective_bytes_per_step"))
    plan.collective_bytes_per_step = file.integer("/plan", "collective_bytes_per_step");
  plan.activation_bytes_together = file.integer("/plan", "activation_bytes_together");
  plan.activation_bytes_accumulate = file.integer("/plan", "activation_bytes_accumulate");
  for (std::size_t c = 0; c < category_count; ++c) {
    const std::string name = to_string(static_cast<Category>(c));
    if (!file.contains("/plan/bytes/" + name)) continue;  // of a file older than the category
    const auto column = file.read<std::int64_t>("/plan/bytes/" + name);
    plan.bytes.resize(std::max(plan.bytes.size(), column.size()));
    for (std::size_t d = 0; d < column.size(); ++d) plan.bytes[d][c] = column[d];
  }
  if (file.contains("/plan/basis")) plan.basis = read_basis(file);
  return plan;
}

MeasuredRecord read_measured(const hdf5::File& file) {
  const std::string group = "/measured";
  MeasuredRecord measured{.messages_sent = file.integer(group, "messages_sent"),
                          .bytes_sent = file.integer(group, "bytes_sent")};
  for (std::size_t c = 0; c < category_count; ++c) {
    const char* name = to_string(static_cast<Category>(c));
    if (file.has(group + "/peak_bytes", name))
      measured.peak_bytes[c] = file.integer(group + "/peak_bytes", name);
  }
  const auto seconds = [&](const char* name) {
    const std::vector<double> values = file.reals(group, name);
    return values.empty() ? 0 : values.front();
  };
  measured.first_step_seconds = seconds("first_step_seconds");
  measured.data_wait = seconds("data_wait");
  return measured;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void read_steps(const hdf5::File& file, RunSummary& run) {
  std::set<std::string> words;  // these records have none
  std::vector<double> images_per_second;
  run.metrics = read_metrics(file);
  run.rows = read_rows<StepRecord>(file, words, run.metrics);
  for (const StepRecord& step : run.rows) images_per_second.push_back(step.images_per_second);
  run.steps = run.first_step() + std::ssize(run.rows);
  run.images_per_second = median(std::move(images_per_second));
  run.evaluations = read_rows<EvaluationRecord>(file, words, run.metrics);
}

/// The parts of a run; files of the first version know of one.
std::vector<PartRecord> read_parts(const hdf5::File& file) {
  std::set<std::string> words;  // these records have none
  if (!file.contains(Columns<PartRecord>::group)) return {PartRecord{}};
  std::vector<PartRecord> parts = read_rows<PartRecord>(file, words);
  if (parts.empty()) fail(ExitCode::bad_data, "{}: /parts has no row", file.path());
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (parts[k].first_step < (k == 0 ? 0 : parts.front().first_step))
      fail(ExitCode::bad_data, "{}: /parts/first_step row {} is {}", file.path(), k,
           parts[k].first_step);
  }
  return parts;
}

/// What a part is, from run.h5 or from the file of its rank 0.
void read_part_info(const hdf5::File& file, const FileFormat& format, RunPart& part) {
  part.info = read_info(file, format);
  if (file.has("/info", "machine")) part.machine = file.string("/info", "machine");
  if (file.has("/info", "job"))
    part.job = {file.string("/info", "job"), static_cast<int>(file.integer("/info", "restarts"))};
  if (file.contains("/plan")) part.plan = read_plan(file);
}

void read_rank(const fs::path& path, RunPart& part) {
  const hdf5::File file = hdf5::File::open_with_reason(path.string());
  if (read_info(file, rank_format).deck != part.info.deck)
    fail(ExitCode::bad_data, "{}: belongs to another run than its folder", path.string());
  if (file.contains("/measured")) part.measured.push_back(read_measured(file));
  if (!file.contains("/receipts")) return;
  for (const std::string& stage : file.children("/receipts")) {
    for (std::size_t s = 0; s < part.receipts.size(); ++s) {
      if (stage == std::to_string(s))
        part.receipts[s] = file.read<std::uint64_t>("/receipts/" + stage);
    }
  }
}

bool is_there(const fs::path& path) {
  std::error_code unknown;  // the file itself will tell
  return fs::status(path, unknown).type() != fs::file_type::not_found;
}

/// By their names, not through the links of run.h5: where one leads nowhere, HDF5 looks for a file
/// of that name in the current folder, which may be of another run.
void read_ranks(const fs::path& folder, RunPart& part) {
  if (!part.plan) return;
  part.receipts.resize(part.plan->stage_layers.size());
  const auto ranks = static_cast<int>(part.plan->messages_per_step.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string name = rank_file_name(rank, part.number);
    if (is_there(folder / name))
      read_rank(folder / name, part);
    else
      part.missing.push_back(name);
  }
  if (std::ssize(part.measured) < ranks) part.measured.clear();
}

/// A part that others went on from.
RunPart read_earlier(const fs::path& folder, const PartRecord& record, int number) {
  RunPart part;
  part.part = record;
  part.number = number;
  const std::string name = rank_file_name(0, number);
  if (!is_there(folder / name)) {
    part.missing.push_back(name);
    return part;
  }
  read_part_info(hdf5::File::open_with_reason((folder / name).string()), rank_format, part);
  read_ranks(folder, part);
  return part;
}

}  // namespace

RunSummary read_run(const std::string& path) {
  std::error_code unknown;  // the files themselves will tell
  const fs::file_status status = fs::status(path, unknown);
  const bool is_file = fs::exists(status) && !fs::is_directory(status);
  RunSummary run;
  run.file = is_file ? path : (fs::path(path) / "run.h5").string();
  fs::path folder = fs::path(run.file).parent_path();
  if (folder.empty()) folder = ".";
  run.folder = folder.string();
  const hdf5::File file = hdf5::File::open_with_reason(run.file);
  read_part_info(file, run_format, run);
  if (fs::exists(folder / "status.json", unknown)) run.status = read_status(folder);
  const std::vector<PartRecord> parts = read_parts(file);
  run.part = parts.back();
  run.number = static_cast<int>(parts.size()) - 1;
  for (int k = 0; k < run.number; ++k) {
    RunPart part = read_earlier(folder, parts[static_cast<std::size_t>(k)], k);
    // One that was killed before it had made its files.
    const bool made_nothing =
        parts[static_cast<std::size_t>(k) + 1].first_step <= part.part.first_step;
    if (part.missing.empty() || !made_nothing) run.earlier.push_back(std::move(part));
  }
  read_steps(file, run);
  read_ranks(folder, run);
  return run;
}

RunHistory read_history(const fs::path& folder, std::int64_t steps) {
  const hdf5::File file = hdf5::File::open_with_reason((folder / "run.h5").string());
  static_cast<void>(read_info(file, run_format));
  std::set<std::string> words;  // these records have none
  const std::vector<std::string> metrics = read_metrics(file);
  RunHistory history{.steps = read_rows<StepRecord>(file, words, metrics),
                     .evaluations = read_rows<EvaluationRecord>(file, words, metrics),
                     .parts = read_parts(file),
                     .metrics = metrics};
  std::erase_if(history.steps, [&](const StepRecord& row) { return row.step >= steps; });
  std::erase_if(history.evaluations, [&](const EvaluationRecord& row) { return row.step > steps; });
  const std::int64_t first = history.parts.front().first_step;
  if (first + std::ssize(history.steps) != steps)
    fail(ExitCode::bad_data, "{}: /steps tells of {} steps from {} on, and {} were made",
         file.path(), history.steps.size(), first, steps);
  return history;
}

std::string read_deck_of(const fs::path& folder) {
  return read_info(hdf5::File::open_with_reason((folder / "run.h5").string()), run_format).deck;
}

std::string missing_files(const RunSummary& run) {
  std::vector<std::string> missing = run.missing;
  for (const RunPart& part : run.earlier)
    missing.insert(missing.end(), part.missing.begin(), part.missing.end());
  if (missing.empty()) return "";
  if (missing.size() == 1) return missing.front() + " is missing";
  return fmt::format("{} and {} more are missing", missing.front(), missing.size() - 1);
}

std::int64_t measured_bytes(const RunSummary& run, Category category) {
  std::int64_t sum = 0;
  for (const MeasuredRecord& rank : run.measured)
    sum += rank.peak_bytes[static_cast<std::size_t>(category)];
  return sum;
}

std::int64_t planned_bytes(const PlanRecord& plan, Category category) {
  std::int64_t sum = 0;
  for (const CategoryBytes& device : plan.bytes) sum += device[static_cast<std::size_t>(category)];
  return sum;
}

}  // namespace carousel
