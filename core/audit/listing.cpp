// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/audit/listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/audit/inspect.hpp"
#include "core/audit/receipts.hpp"
#include "core/base/check.hpp"
#include "core/data/dataset.hpp"
#include "core/data/token_file.hpp"
#include "core/record/columns.hpp"
#include "core/record/run_reader.hpp"
#include "core/state/checkpoint.hpp"

namespace carousel {
namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they are written here

Json to_json(const RunInfo& info) {
  return {{"program_version", info.program_version},
          {"git_hash", info.git_hash},
          {"libraries", info.libraries},
          {"start_time", info.start_time},
          {"seed", info.seed},
          {"deck", info.deck}};
}

Json to_json(const SampleShape& shape) {
  return shape.extents();
}

Json to_json(const RunStatus& status) {
  return {{"state", to_string(status.state)},
          {"exit_code", status.exit_code},
          {"cause", status.cause},
          {"step", status.step},
          {"host", status.host},
          {"job", status.job.id},
          {"restarts", status.job.restarts},
          {"updated", status.updated}};
}

Json to_json(const PlanRecord& plan) {
  return {{"rule", plan.rule},
          {"placement", plan.placement},
          {"order", plan.order},
          {"devices", plan.devices},
          {"micro_batches", plan.micro_batches},
          {"stages", plan.stages},
          {"stage_layers", plan.stage_layers},
          {"stage_activations", plan.stage_activations},
          {"messages_per_step", plan.messages_per_step},
          {"bytes_per_step", plan.bytes_per_step},
          {"activation_bytes_together", plan.activation_bytes_together},
          {"activation_bytes_accumulate", plan.activation_bytes_accumulate}};
}

Json to_json(const RunPart& part) {
  return {{"first_step", part.part.first_step},
          {"epoch", part.part.epoch},
          {"position", part.part.position},
          {"seconds", part.part.seconds},
          {"machine", part.machine},
          {"job", part.job.id},
          {"restarts", part.job.restarts},
          {"info", to_json(part.info)},
          {"plan", part.plan ? to_json(*part.plan) : Json()}};
}

/// A list for each column.
template <class Row>
Json to_json(const std::vector<Row>& rows, MetricNames metrics) {
  Json table = Json::object();
  Columns<Row>::list(metrics, [&](const char* name, auto get) {
    Json& column = table[name] = Json::array();
    for (const Row& row : rows) column.push_back(std::invoke(get, row));
  });
  return table;
}

/// Peak bytes of every device, category by category.
Json peaks(const RunSummary& run) {
  Json all = Json::object();
  for (std::size_t c = 0; c < category_count; ++c) {
    Json& category = all[to_string(static_cast<Category>(c))];
    if (run.plan) {
      for (const CategoryBytes& device : run.plan->bytes) category["planned"].push_back(device[c]);
    }
    for (const MeasuredRecord& device : run.measured)
      category["measured"].push_back(device.peak_bytes[c]);
  }
  return all;
}

Json to_json(const std::optional<InputRecord>& inputs) {
  if (!inputs) return {};
  return {{"shape", to_json(inputs->shape)},
          {"resize", inputs->resize},
          {"class_names", inputs->class_names},
          {"mean", inputs->mean},
          {"std", inputs->std},
          {"target", to_string(inputs->target)},
          {"target_mean", inputs->target_mean},
          {"target_std", inputs->target_std}};
}

Json run_to_json(const std::string& path) {
  const RunSummary run = read_run(path);
  Json json = {{"kind", "run"}, {"path", run.folder}};
  json["status"] = run.status ? to_json(*run.status) : Json();
  json["info"] = to_json(run.info);
  json["plan"] = run.plan ? to_json(*run.plan) : Json();
  json["parts"] = Json::array();
  for (const RunPart& part : run.earlier) json["parts"].push_back(to_json(part));
  json["parts"].push_back(to_json(static_cast<const RunPart&>(run)));
  json["peak_bytes"] = peaks(run);
  json["missing"] = run.missing;
  json["receipts"] = Json::array();  // the last of each stage
  for (const std::vector<std::uint64_t>& stage : receipts_of(run).receipts)
    json["receipts"].push_back(stage.empty() ? Json() : Json(fmt::format("{:016x}", stage.back())));
  json["steps"] = to_json(run.rows, run.metrics);
  json["evaluations"] = to_json(run.evaluations, run.metrics);
  return json;
}

Json dataset_to_json(const std::string& path) {
  const Dataset dataset(path);
  return {{"kind", "data set"},
          {"path", path},
          {"train_samples", dataset.train().samples()},
          {"test_samples", dataset.test().samples()},
          {"shape", dataset.has_one_size() ? to_json(dataset.shape()) : Json()},
          {"keeps", dataset.encoded() ? "files" : "pixels"},
          {"class_names", dataset.class_names()},
          {"mean", dataset.mean()},
          {"std", dataset.std()},
          {"source", dataset.source()},
          {"licence", dataset.licence()}};
}

Json tokens_to_json(const std::string& path) {
  const TokenFile file(path);
  Json json = {{"kind", "tokens"},
               {"path", path},
               {"vocabulary", file.vocabulary()},
               {"tokenizer", to_string(file.tokenizer().kind())},
               {"source", file.source()},
               {"licence", file.licence()}};
  for (const SplitName split : {SplitName::train, SplitName::validation, SplitName::test})
    json[to_string(split)] = file.row(split) != nullptr ? Json(file.row(split)->size()) : Json();
  return json;
}

Json checkpoint_to_json(const std::string& path) {
  const Checkpoint checkpoint(path);
  checkpoint.check();
  const CheckpointPlace& place = checkpoint.place();
  Json json = {{"kind", "checkpoint"},
               {"path", path},
               {"step", place.step},
               {"epoch", place.epoch},
               {"micro_batches", place.micro_batches},
               {"position", place.position},
               {"micro_batch_size", place.micro_batch_size},
               {"inputs", to_json(checkpoint.inputs())},
               {"info", to_json(checkpoint.info())}};
  json["tensors"] = Json::object();
  for (const CheckpointTensor& tensor : checkpoint.tensors())
    json["tensors"][tensor.name] = tensor.shape;
  return json;
}

Json to_json(const std::string& path) {
  switch (kind_of(path)) {
    case FileKind::run:
      return run_to_json(path);
    case FileKind::dataset:
      return dataset_to_json(path);
    case FileKind::tokens:
      return tokens_to_json(path);
    case FileKind::checkpoint:
      return checkpoint_to_json(path);
    case FileKind::weights:
    case FileKind::predictions:
      break;
  }
  fail(ExitCode::usage, "{}: weights and predictions have no JSON; h5py reads them", path);
}

template <class Row>
std::string to_csv(const std::vector<Row>& rows, MetricNames metrics) {
  std::string text;
  const auto add = [&](const auto& value) {
    text += fmt::format("{}{}", text.empty() || text.back() == '\n' ? "" : ",", value);
  };
  Columns<Row>::list(metrics, [&](const char* name, auto /*get*/) { add(name); });
  text += '\n';
  for (const Row& row : rows) {
    Columns<Row>::list(metrics,
                       [&](const char* /*name*/, auto get) { add(std::invoke(get, row)); });
    text += '\n';
  }
  return text;
}

}  // namespace

std::string listed_as_json(std::span<const std::string> paths) {
  Json all = Json::array();
  for (const std::string& path : paths) all.push_back(to_json(path));
  // Texts of damaged or strange files may be no UTF-8.
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string listed_as_csv(const std::string& run, const std::string& table) {
  const RunSummary summary = read_run(run);
  return table == "steps" ? to_csv(summary.rows, summary.metrics)
                          : to_csv(summary.evaluations, summary.metrics);
}

}  // namespace carousel
