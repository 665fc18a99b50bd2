// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/io/run_reader.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

PlanBasis read_basis(const hdf5::File& file) {
  const auto number = [&](const char* name) { return file.integer("/plan/basis", name); };
  return {.sample = {.channels = static_cast<int>(number("channels")),
                     .height = static_cast<int>(number("height")),
                     .width = static_cast<int>(number("width"))},
          .classes = static_cast<int>(number("classes")),
          .train_samples = number("train_samples"),
          .test_samples = number("test_samples"),
          .real_bytes = static_cast<int>(number("real_bytes")),
          .staged_messages = number("staged_messages") != 0};
}

PlanRecord read_plan(const hdf5::File& file) {
  PlanRecord plan;
  plan.rule = file.string("/plan", "rule");
  plan.placement = file.string("/plan", "placement");
  plan.order = file.string("/plan", "order");
  plan.devices = static_cast<int>(file.integer("/plan", "devices"));
  plan.micro_batches = static_cast<int>(file.integer("/plan", "micro_batches"));
  plan.stages = static_cast<int>(file.integer("/plan", "stages"));
  plan.messages_per_step = file.read<std::int64_t>("/plan/messages_per_step");
  plan.bytes_per_step = file.read<std::int64_t>("/plan/bytes_per_step");
  plan.stage_layers = file.read_strings("/plan/stage_layers");
  plan.stage_activations = file.read<std::int64_t>("/plan/stage_activations");
  plan.activation_bytes_together = file.integer("/plan", "activation_bytes_together");
  plan.activation_bytes_accumulate = file.integer("/plan", "activation_bytes_accumulate");
  for (std::size_t c = 0; c < category_count; ++c) {
    const std::string name = to_string(static_cast<Category>(c));
    const auto column = file.read<std::int64_t>("/plan/bytes/" + name);
    plan.bytes.resize(std::max(plan.bytes.size(), column.size()));
    for (std::size_t d = 0; d < column.size(); ++d) plan.bytes[d][c] = column[d];
  }
  if (file.contains("/plan/basis")) plan.basis = read_basis(file);
  return plan;
}

MeasuredRecord read_measured(const hdf5::File& file, const std::string& rank) {
  const std::string group = rank + "/measured";
  MeasuredRecord measured{.messages_sent = file.integer(group, "messages_sent"),
                          .bytes_sent = file.integer(group, "bytes_sent")};
  for (std::size_t c = 0; c < category_count; ++c)
    measured.peak_bytes[c] =
        file.integer(group + "/peak_bytes", to_string(static_cast<Category>(c)));
  const std::vector<double> seconds = file.reals(group, "first_step_seconds");
  measured.first_step_seconds = seconds.empty() ? 0 : seconds.front();
  return measured;
}

std::vector<EvaluationRecord> read_evaluations(const hdf5::File& file) {
  const auto step = file.read<std::int64_t>("/evaluations/step");
  const auto epoch = file.read<std::int64_t>("/evaluations/epoch");
  const auto loss = file.read<double>("/evaluations/loss");
  const auto accuracy = file.read<double>("/evaluations/accuracy");
  const std::size_t rows = std::min({step.size(), epoch.size(), loss.size(), accuracy.size()});
  std::vector<EvaluationRecord> evaluations;
  for (std::size_t k = 0; k < rows; ++k)
    evaluations.push_back({step[k], epoch[k], loss[k], accuracy[k]});
  return evaluations;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void read_steps(const hdf5::File& file, RunSummary& run) {
  run.losses = file.read<double>("/steps/loss");
  run.learning_rates = file.read<double>("/steps/learning_rate");
  run.steps = std::ssize(run.losses);
  run.images_per_second = median(file.read<double>("/steps/images_per_second"));
}

/// Whatever the ranks wrote; a rank that died early may have left nothing.
void read_ranks(const hdf5::File& file, RunSummary& run) {
  if (file.contains("/ranks")) {
    for (const std::string& rank : file.children("/ranks")) {
      if (file.contains("/ranks/" + rank + "/measured"))
        run.measured.push_back(read_measured(file, "/ranks/" + rank));
    }
  }
  if (file.contains("/receipts")) {
    run.receipts.resize(file.children("/receipts").size());
    for (std::size_t s = 0; s < run.receipts.size(); ++s) {
      const std::string receipts = fmt::format("/receipts/{}", s);
      if (file.contains(receipts)) run.receipts[s] = file.read<std::uint64_t>(receipts);
    }
  }
}

}  // namespace

RunSummary read_run(const std::string& path) {
  fs::path folder = fs::is_regular_file(path) ? fs::path(path).parent_path() : fs::path(path);
  if (folder.empty()) folder = ".";
  const std::string main = (folder / "run.h5").string();
  const Descriptor readable = Descriptor::open(main);
  const hdf5::File file = hdf5::File::open(main);
  RunSummary run;
  run.folder = folder.string();
  run.info = read_info(file, "carousel run");
  if (fs::exists(folder / "status.json")) run.status = read_status(folder);
  if (file.contains("/plan")) run.plan = read_plan(file);
  read_steps(file, run);
  run.evaluations = read_evaluations(file);
  read_ranks(file, run);
  return run;
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
