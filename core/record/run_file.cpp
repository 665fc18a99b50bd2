// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/run_file.hpp"

#include <utility>

#include "core/base/check.hpp"
#include "core/record/rows.hpp"
#include "core/record/run_folder.hpp"
#include "core/record/stored_shape.hpp"

namespace carousel {
namespace {

void write_basis(hdf5::File& file, const PlanBasis& basis) {
  const std::string group = "/plan/basis";
  file.create_group(group);
  file.set(group, "channels", std::int64_t{basis.source.shown.channels});
  write_extents(file, group, "", basis.source.shown);
  file.set(group, "read_type", to_string(basis.source.input.type));
  write_extents(file, group, "read_", basis.source.input.shape);
  file.set(group, "target_type", to_string(basis.source.target.type));
  file.set(group, "target_channels", std::int64_t{basis.source.target.shape.channels});
  write_extents(file, group, "target_", basis.source.target.shape);
  file.set(group, "reader_bytes", basis.source.reader_bytes);
  file.set(group, "target_reader_bytes", basis.source.target_reader_bytes);
  file.set(group, "classes", std::int64_t{basis.target.classes});
  file.set(group, "ignored", std::int64_t{basis.target.ignored});
  file.set(group, "has_gaps", std::int64_t{basis.target.has_gaps});
  file.set(group, "train_samples", basis.train_samples);
  file.set(group, "test_samples", basis.test_samples);
  file.set(group, "real_bytes", std::int64_t{basis.real_bytes});
  file.set(group, "block", std::int64_t{basis.block});
  file.set(group, "staged_messages", std::int64_t{basis.staged_messages});
  file.set(group, "vendor", static_cast<std::int64_t>(basis.vendor));
  file.set(group, "token_bytes", std::int64_t{basis.token_bytes});
  file.set(group, "copies_input", std::int64_t{basis.copies_input});
  file.set(group, "rider_parts", std::int64_t{basis.rider_parts});
  file.set(group, "targets_everywhere", std::int64_t{basis.targets_everywhere});
}

void write_plan_group(hdf5::File& file, const PlanRecord& plan) {
  file.create_group("/plan");
  file.set("/plan", "rule", plan.rule);
  file.set("/plan", "placement", plan.placement);
  file.set("/plan", "order", plan.order);
  file.set("/plan", "devices", std::int64_t{plan.devices});
  file.set("/plan", "micro_batches", std::int64_t{plan.micro_batches});
  file.set("/plan", "stages", std::int64_t{plan.stages});
  if (plan.collective_bytes_per_step)
    file.set("/plan", "collective_bytes_per_step", *plan.collective_bytes_per_step);
  file.set("/plan", "activation_bytes_together", plan.activation_bytes_together);
  file.set("/plan", "activation_bytes_accumulate", plan.activation_bytes_accumulate);
  file.write("/plan/messages_per_step", plan.messages_per_step);
  file.write("/plan/bytes_per_step", plan.bytes_per_step);
  file.write_strings("/plan/stage_layers", plan.stage_layers);
  file.write_strings("/plan/metrics", plan.metrics);
  file.write("/plan/stage_activations", plan.stage_activations);
  for (int c = 0; c < category_count; ++c) {
    std::vector<std::int64_t> column;
    for (const CategoryBytes& device : plan.bytes)
      column.push_back(device[static_cast<std::size_t>(c)]);
    file.write(fmt::format("/plan/bytes/{}", to_string(static_cast<Category>(c))), column);
  }
  if (plan.basis) write_basis(file, *plan.basis);
}

void append_rows_of(hdf5::RowFile& file, const RankSegment& segment) {
  append_rows(file, segment.actions);
  append_rows(file, segment.messages);
  append_rows(file, segment.memory);
  for (const StageReceipts& receipts : segment.receipts)
    file.append<std::uint64_t>(fmt::format("/receipts/{}", receipts.stage), receipts.digests);
  for (const AuditedTensor& tensor : segment.audit)
    file.append<real>("/audit" + tensor.name, tensor.values,
                      {tensor.shape.begin(), tensor.shape.end()});
  const AuditedSamples& samples = segment.samples;
  if (!samples.samples.empty())
    file.append<std::int64_t>("/audit/samples", samples.samples,
                              {static_cast<hsize_t>(samples.micro_batches),
                               static_cast<hsize_t>(samples.micro_batch_size)});
}

void write_part(hdf5::File& file, const FileFormat& format, const PartInfo& part) {
  write_info(file, format, part.info);
  file.set("/info", "machine", part.machine);
  file.set("/info", "job", part.job.id);
  file.set("/info", "restarts", std::int64_t{part.job.restarts});
  file.set("/info", "part", std::int64_t{part.number});
}

void write_measured(hdf5::File& file, const MeasuredRecord& measured) {
  file.create_group("/measured/peak_bytes");
  for (int c = 0; c < category_count; ++c)
    file.set("/measured/peak_bytes", to_string(static_cast<Category>(c)),
             measured.peak_bytes[static_cast<std::size_t>(c)]);
  file.set("/measured", "messages_sent", measured.messages_sent);
  file.set("/measured", "bytes_sent", measured.bytes_sent);
  file.set("/measured", "first_step_seconds", measured.first_step_seconds);
  file.set("/measured", "data_wait", measured.data_wait);
}

}  // namespace

void write_info(hdf5::File& file, const FileFormat& format, const RunInfo& info,
                const std::string& group) {
  file.create_group(group);
  file.set(group, "format", format.name);
  file.set(group, "format_version", format.version);
  file.set(group, "program_version", info.program_version);
  file.set(group, "git_hash", info.git_hash);
  file.set(group, "libraries", info.libraries);
  file.set(group, "start_time", info.start_time);
  file.set(group, "seed", info.seed);
  file.set(group, "deck", info.deck);
}

RunInfo read_info(const hdf5::File& file, const FileFormat& format) {
  if (!file.contains("/info"))
    fail(ExitCode::bad_data, "{}: has no /info; it is no {} file", file.path(), format.name);
  if (const std::string found = file.string("/info", "format"); found != format.name)
    fail(ExitCode::bad_data, "{}: this is a '{}', not a '{}'", file.path(), found, format.name);
  if (const auto version = file.integer("/info", "format_version"); version != format.version)
    fail(ExitCode::bad_data, "{}: format version {}, this program reads version {}", file.path(),
         version, format.version);
  return {.program_version = file.string("/info", "program_version"),
          .git_hash = file.string("/info", "git_hash"),
          .libraries = file.string("/info", "libraries"),
          .start_time = file.string("/info", "start_time"),
          .seed = file.unsigned_integer("/info", "seed"),
          .deck = file.string("/info", "deck")};
}

RunFile::RunFile(const std::filesystem::path& folder, const PartInfo& part,
                 std::vector<std::string> metrics, const RunHistory& history)
    : file_((folder / "run.h5").string()), part_(part), metrics_(std::move(metrics)) {
  append_rows<PartRecord>(file_, history.parts);
  append(history.steps);
  append_rows<EvaluationRecord>(file_, history.evaluations, metrics_);
}

void RunFile::link(int ranks, std::span<const StageOwner> stages) {
  ranks_ = ranks;
  stages_.assign(stages.begin(), stages.end());
}

void RunFile::append(std::span<const StepRecord> steps) {
  append_rows(file_, steps, metrics_);
}

void RunFile::append(const EvaluationRecord& evaluation) {
  append_rows<EvaluationRecord>(file_, {&evaluation, 1}, metrics_);
}

void RunFile::write_rest(hdf5::File& file) const {
  write_part(file, run_format, part_);
  if (plan_) write_plan_group(file, *plan_);
  const auto name = [&](int rank) { return rank_file_name(rank, part_.number); };
  for (int rank = 0; rank < ranks_; ++rank)
    file.link(fmt::format("/ranks/{:04}", rank), name(rank), "/");
  bool audited = false;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const std::string owner = name(stages_[s].device);
    const std::string receipts = fmt::format("/receipts/{}", s);
    file.link(receipts, owner, receipts);
    for (const std::string& tensor : stages_[s].audited)
      file.link("/audit" + tensor, owner, "/audit" + tensor);
    audited = audited || !stages_[s].audited.empty();
  }
  if (audited) file.link("/audit/samples", name(0), "/audit/samples");
}

void RunFile::publish() {
  file_.publish([this](hdf5::File& file) { write_rest(file); });
}

void RunFile::finish() {
  file_.finish([this](hdf5::File& file) { write_rest(file); });
}

RankFile::RankFile(const std::filesystem::path& folder, int rank, const PartInfo& part)
    : file_((folder / rank_file_name(rank, part.number)).string()), rank_(rank), part_(part) {
  append_rows_of(file_, {});
  append_rows<SegmentRecord>(file_, {});
}

void RankFile::append(const RankSegment& segment, const MeasuredRecord& measured) {
  append_rows_of(file_, segment);
  append_rows<SegmentRecord>(file_, {&segment.segment, 1});
  measured_ = measured;
}

void RankFile::write_rest(hdf5::File& file) const {
  write_part(file, rank_format, part_);
  file.set("/info", "rank", std::int64_t{rank_});
  if (plan_) write_plan_group(file, *plan_);
  if (measured_) write_measured(file, *measured_);
}

void RankFile::publish() {
  file_.publish([this](hdf5::File& file) { write_rest(file); });
}

void RankFile::finish() {
  file_.finish([this](hdf5::File& file) { write_rest(file); });
}

}  // namespace carousel
