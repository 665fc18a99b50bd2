// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/audit/inspect.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/audit/receipts.hpp"
#include "core/base/check.hpp"
#include "core/base/text.hpp"
#include "core/data/dataset.hpp"
#include "core/data/token_file.hpp"
#include "core/record/run_reader.hpp"
#include "core/state/checkpoint.hpp"
#include "core/state/checkpoint_link.hpp"

namespace carousel {
namespace {

constexpr std::size_t columns = 80;
constexpr std::size_t indent = 16;

/// Adds "  name  text", the text broken between words into lines that fit a terminal.
void add(std::string& report, std::string_view name, std::string text) {
  while (text.size() > columns - indent) {
    const std::size_t space = text.rfind(' ', columns - indent);
    if (space == std::string::npos) break;
    report += fmt::format("  {:<13} {}\n", name, text.substr(0, space));
    text.erase(0, space + 1);
    name = "";
  }
  report += fmt::format("  {:<13} {}\n", name, text);
}

template <class... Args>
void line(std::string& report, const char* name, fmt::format_string<Args...> format,
          Args&&... args) {
  add(report, name, printable(fmt::format(format, std::forward<Args>(args)...)));
}

void tell_info(std::string& text, const RunInfo& info) {
  line(text, "started", "{}", info.start_time);
  line(text, "program", "Carousel {} ({})", info.program_version, info.git_hash);
  line(text, "libraries", "{}", info.libraries);
  line(text, "seed", "{}", info.seed);
}

/// What the run went on with, part by part, where there is more than one.
void tell_parts(std::string& text, const RunSummary& run) {
  const auto tell = [&](const RunPart& part) {
    std::string fact = fmt::format("{} from step {} on: ", part.number, part.part.first_step);
    if (part.plan)
      fact += fmt::format("{} on {} device{}, ", part.plan->placement, part.plan->devices,
                          part.plan->devices == 1 ? "" : "s");
    fact += fmt::format("{}; Carousel {} ({}), {}", part.machine, part.info.program_version,
                        part.info.git_hash, part.info.start_time);
    if (!part.job.id.empty()) fact += "; job " + to_string(part.job);
    line(text, part.number == 0 ? "parts" : "", "{}", fact);
  };
  if (run.earlier.empty()) return;
  for (const RunPart& part : run.earlier) tell(part);
  tell(run);
}

void tell_plan(std::string& text, const PlanRecord& plan) {
  line(text, "rule", "{}, N = {} micro-batches, S = {} stages", plan.rule, plan.micro_batches,
       plan.stages);
  line(text, "placement", "{} on {} device{}", plan.placement, plan.devices,
       plan.devices == 1 ? "" : "s");
  for (std::size_t s = 0; s < plan.stage_layers.size(); ++s)
    line(text, s == 0 ? "stages" : "", "{}: {}", s, plan.stage_layers[s]);
}

/// The memory of all devices together, category by category, measured beside planned.
void tell_memory(std::string& text, const RunSummary& run) {
  text += fmt::format("  {:<22}{:>12}{:>12}\n", "peak bytes", "measured", "planned");
  for (int c = 0; c < category_count; ++c) {
    const auto category = static_cast<Category>(c);
    const std::int64_t measured = measured_bytes(run, category);
    const std::int64_t planned = run.plan ? planned_bytes(*run.plan, category) : 0;
    if (measured == 0 && planned == 0) continue;
    text += fmt::format("    {:<20}{:>12}{:>12}\n", to_string(category), human_bytes(measured),
                        run.plan ? human_bytes(planned) : "?");
  }
}

/// The longest that a device of the newest part waited for samples, and of its time how much.
void tell_data_wait(std::string& text, const RunSummary& run) {
  if (run.measured.empty() || run.rows.empty()) return;
  const auto longest = std::ranges::max_element(run.measured, {}, &MeasuredRecord::data_wait);
  const double trained = run.rows.back().seconds - run.part.seconds - longest->first_step_seconds;
  if (trained > 0)
    line(text, "data wait", "{:.2g} s, {:.2g}% of the time", longest->data_wait,
         100 * longest->data_wait / trained);
}

void tell_results(std::string& text, const RunSummary& run) {
  if (!run.rows.empty())
    line(text, "training", "{} steps, last loss {:.4g}, {:.0f} images/s (median)", run.steps,
         unsigned_nan(run.rows.back().loss), run.images_per_second);
  if (!run.evaluations.empty()) {
    const EvaluationRecord& last = run.evaluations.back();
    std::string results;
    for (std::size_t k = 0; k < run.metrics.size(); ++k)
      results += fmt::format("{} {:.4f}, ", run.metrics[k], last.metrics[k]);
    line(text, "evaluations", "{}; the last, after {} steps: {}loss {:.4g}", run.evaluations.size(),
         last.step, results, unsigned_nan(last.loss));
  }
  const ReceiptHistory history = receipts_of(run);
  if (history.end() > history.first)
    line(text, "receipts", "{} stages, {} updates; stage 0 ends with {:016x}",
         history.receipts.size(), history.receipts.front().size(), history.receipts.front().back());
}

void tell_checkpoints(std::string& text, const std::string& folder) {
  std::error_code unknown;  // a run that was copied in part
  if (!std::filesystem::is_directory(std::filesystem::path(folder) / "checkpoints", unknown))
    return;
  const std::vector<std::filesystem::path> files = checkpoints_of(folder);
  if (!files.empty())
    line(text, "checkpoints", "{}; the newest is {}", files.size(),
         files.front().filename().string());
}

std::string tell_state(const RunStatus& status) {
  if (status.state != RunState::running)
    return fmt::format("{} after {} steps", to_string(status.state), status.step);
  switch (life_of(status)) {
    case Life::alive:
      return fmt::format("running, {} steps done", status.step);
    case Life::gone:
      return fmt::format("ended without a word, perhaps killed, after {} steps or more",
                         status.step);
    case Life::unknown:
      break;
  }
  return fmt::format("running on {}, {} steps done at {}", status.place(), status.step,
                     status.updated);
}

std::string inspect_run(const std::string& path) {
  const RunSummary run = read_run(path);
  std::string text = fmt::format("Run {}", run.folder);
  if (run.status) {
    text += ": " + tell_state(*run.status);
    if (!run.status->cause.empty())
      text += fmt::format("\n  exit code {}: {}", run.status->exit_code, run.status->cause);
  }
  text += "\n";
  if (run.plan) tell_plan(text, *run.plan);
  tell_parts(text, run);
  tell_results(text, run);
  tell_checkpoints(text, run.folder);
  if (!missing_files(run).empty())
    line(text, "incomplete", "{}; copy the whole folder to see what all devices measured",
         missing_files(run));
  tell_data_wait(text, run);
  if (!run.measured.empty()) tell_memory(text, run);
  if (!run.machine.empty()) line(text, "machine", "{}", run.machine);
  if (!run.job.id.empty()) line(text, "job", "{}", to_string(run.job));
  tell_info(text, run.info);
  return text;
}

/// The first ten names of classes.
std::string list_of(const std::vector<std::string>& names) {
  const std::size_t shown = std::min<std::size_t>(names.size(), 10);
  return fmt::format(
      "{}: {}{}", names.size(),
      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < names.size() ? ", ..." : "");
}

void tell_inputs(std::string& text, const std::optional<InputRecord>& inputs) {
  if (!inputs) return;
  const TargetSpec& target = inputs->target;
  const bool is_class = target.has_labels() && target.pixels() == 1;
  line(text, "inputs", "{}{} [c, h, w]", is_class ? "images of " : "", to_string(inputs->shape));
  if (is_class)
    line(text, "classes", "{}", list_of(inputs->class_names));
  else
    line(text, "targets", "{}", to_string(target));
  line(text, "mean", "{:.4g}", fmt::join(inputs->mean, ", "));
  line(text, "std", "{:.4g}", fmt::join(inputs->std, ", "));
  if (inputs->target_mean.empty()) return;
  line(text, "of targets", "mean {:.4g}; std {:.4g}", fmt::join(inputs->target_mean, ", "),
       fmt::join(inputs->target_std, ", "));
}

std::string inspect_dataset(const std::string& path) {
  const Dataset dataset(path);
  std::string text = fmt::format("Data set {}\n", path);
  line(text, "samples", "{} train, {} test", dataset.train().samples(), dataset.test().samples());
  line(text, "images", "{}{}", dataset.encoded() ? "files of pictures of " : "uint8 ",
       dataset.has_one_size() ? to_string(dataset.shape()) + " [c, h, w]" : "several sizes");
  line(text, "classes", "{}", list_of(dataset.class_names()));
  line(text, "mean", "{:.4f}", fmt::join(dataset.mean(), ", "));
  line(text, "std", "{:.4f}", fmt::join(dataset.std(), ", "));
  line(text, "source", "{}", dataset.source());
  line(text, "licence", "{}", dataset.licence());
  return text;
}

std::string inspect_tokens(const std::string& path) {
  const TokenFile file(path);
  std::string text = fmt::format("Tokens {}\n", path);
  for (const SplitName split : {SplitName::train, SplitName::validation, SplitName::test})
    if (const TokenRow* const row = file.row(split))
      line(text, to_string(split), "{} tokens of {} bytes", human_count(row->size()),
           row->token_bytes());
  line(text, "vocabulary", "{}", human_count(file.vocabulary()));
  line(text, "tokenizer", "{}", to_string(file.tokenizer().kind()));
  line(text, "source", "{}", file.source());
  line(text, "licence", "{}", file.licence());
  return text;
}

template <class Shape>
void tell_tensor(std::string& text, const std::string& name, const Shape& shape) {
  text += fmt::format("    {:<44} [{}]\n", name, fmt::join(shape, ", "));
}

std::string inspect_checkpoint(const std::string& path) {
  const Checkpoint checkpoint(path);
  checkpoint.check();
  const CheckpointPlace& place = checkpoint.place();
  std::string text = fmt::format("Checkpoint {}: whole, every checksum is right\n", path);
  line(text, "place", "{} steps done, epoch {}, {} micro-batches of {} samples", place.step,
       place.epoch, place.micro_batches, place.micro_batch_size);
  tell_inputs(text, checkpoint.inputs());
  tell_info(text, checkpoint.info());
  text += "  tensors\n";
  for (const CheckpointTensor& tensor : checkpoint.tensors())
    tell_tensor(text, tensor.name, tensor.shape);
  return text;
}

std::string inspect_weights(const std::string& path) {
  const hdf5::File file = hdf5::File::open(path);
  std::string text = fmt::format("Weights {}: by PyTorch's names\n", path);
  line(text, "place", "{} steps done", file.integer("/", "step"));
  tell_inputs(text, read_inputs(file, "/"));
  text += "  tensors\n";
  for (const std::string& name : file.children("/")) tell_tensor(text, name, file.info(name).shape);
  return text;
}

std::string inspect_predictions(const std::string& path) {
  const hdf5::File file = hdf5::File::open(path);
  std::string text = fmt::format("Predictions {}\n", path);
  line(text, "of", "{}, {} steps done", file.string("/info", "checkpoint"),
       file.integer("/info", "step"));
  line(text, "digest", "{}", file.string("/info", "checkpoint_digest"));
  line(text, "data", "{}", file.string("/info", "data"));
  tell_info(text, read_info(file, predictions_format));
  text += "  arrays\n";
  for (const std::string& name : file.children("/"))
    if (!file.is_group("/" + name)) tell_tensor(text, name, file.info("/" + name).shape);
  return text;
}

/// What a file says it is.
std::string format_of(const std::string& path) {
  const hdf5::File file = hdf5::File::open_with_reason(path);
  for (const char* place : {"/info", "/"}) {
    if (file.contains(place) && file.has(place, "format")) return file.string(place, "format");
  }
  fail(ExitCode::bad_data, "{}: an HDF5 file, but not one of Carousel's", path);
}

}  // namespace

FileKind kind_of(const std::string& path) {
  std::error_code unknown;  // the file itself will tell
  if (std::filesystem::is_directory(path, unknown)) return FileKind::run;
  if (!target_of(std::filesystem::path(path)).empty()) return FileKind::checkpoint;
  const std::string format = format_of(path);
  if (format == "carousel run") return FileKind::run;
  if (format == "carousel dataset") return FileKind::dataset;
  if (format == token_format) return FileKind::tokens;
  if (format == "carousel checkpoint") return FileKind::checkpoint;
  if (format == "carousel weights") return FileKind::weights;
  if (format == predictions_format.name) return FileKind::predictions;
  if (format == "carousel rank")
    fail(ExitCode::bad_data, "{}: is the file of one rank; inspect the run folder instead", path);
  fail(ExitCode::bad_data, "{}: '{}' is not a format this program knows", path, format);
}

std::string inspect(const std::string& path) {
  switch (kind_of(path)) {
    case FileKind::run:
      return inspect_run(path);
    case FileKind::dataset:
      return inspect_dataset(path);
    case FileKind::tokens:
      return inspect_tokens(path);
    case FileKind::checkpoint:
      return inspect_checkpoint(path);
    case FileKind::predictions:
      return inspect_predictions(path);
    case FileKind::weights:
      break;
  }
  return inspect_weights(path);
}

}  // namespace carousel
