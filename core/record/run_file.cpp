// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/run_file.hpp"

#include "core/base/check.hpp"
#include "core/record/rows.hpp"
#include "core/record/run_folder.hpp"

namespace carousel {
namespace {

constexpr std::int64_t format_version = 1;

void write_basis(hdf5::File& file, const PlanBasis& basis) {
  const std::string group = "/plan/basis";
  file.create_group(group);
  file.set(group, "channels", std::int64_t{basis.sample.channels});
  file.set(group, "height", std::int64_t{basis.sample.height});
  file.set(group, "width", std::int64_t{basis.sample.width});
  file.set(group, "classes", std::int64_t{basis.classes});
  file.set(group, "train_samples", basis.train_samples);
  file.set(group, "test_samples", basis.test_samples);
  file.set(group, "real_bytes", std::int64_t{basis.real_bytes});
  file.set(group, "block", std::int64_t{basis.block});
  file.set(group, "staged_messages", std::int64_t{basis.staged_messages});
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
  file.write("/plan/stage_activations", plan.stage_activations);
  for (int c = 0; c < category_count; ++c) {
    std::vector<std::int64_t> column;
    for (const CategoryBytes& device : plan.bytes)
      column.push_back(device[static_cast<std::size_t>(c)]);
    file.write(fmt::format("/plan/bytes/{}", to_string(static_cast<Category>(c))), column);
  }
  if (plan.basis) write_basis(file, *plan.basis);
}

void append_segment(hdf5::RowFile& file, const RankSegment& segment) {
  append_rows(file, segment.actions);
  append_rows(file, segment.messages);
  append_rows(file, segment.memory);
  for (const StageReceipts& receipts : segment.receipts)
    file.append<std::uint64_t>(fmt::format("/receipts/{}", receipts.stage), receipts.digests);
  for (const AuditedParameter& parameter : segment.audit)
    file.append<real>("/audit/parameters/" + parameter.name, parameter.values,
                      {parameter.shape.begin(), parameter.shape.end()});
}

void write_measured(hdf5::File& file, const MeasuredRecord& measured) {
  file.create_group("/measured/peak_bytes");
  for (int c = 0; c < category_count; ++c)
    file.set("/measured/peak_bytes", to_string(static_cast<Category>(c)),
             measured.peak_bytes[static_cast<std::size_t>(c)]);
  file.set("/measured", "messages_sent", measured.messages_sent);
  file.set("/measured", "bytes_sent", measured.bytes_sent);
  file.set("/measured", "first_step_seconds", measured.first_step_seconds);
}

}  // namespace

void write_info(hdf5::File& file, std::string_view format, const RunInfo& info,
                const std::string& group) {
  file.create_group(group);
  file.set(group, "format", format);
  file.set(group, "format_version", format_version);
  file.set(group, "program_version", info.program_version);
  file.set(group, "git_hash", info.git_hash);
  file.set(group, "libraries", info.libraries);
  file.set(group, "start_time", info.start_time);
  file.set(group, "seed", info.seed);
  file.set(group, "deck", info.deck);
}

RunInfo read_info(const hdf5::File& file, std::string_view format) {
  if (!file.contains("/info"))
    fail(ExitCode::bad_data, "{}: has no /info; it is no {} file", file.path(), format);
  if (const std::string found = file.string("/info", "format"); found != format)
    fail(ExitCode::bad_data, "{}: this is a '{}', not a '{}'", file.path(), found, format);
  if (const auto version = file.integer("/info", "format_version"); version != format_version)
    fail(ExitCode::bad_data, "{}: format version {}, this program reads version {}", file.path(),
         version, format_version);
  return {.program_version = file.string("/info", "program_version"),
          .git_hash = file.string("/info", "git_hash"),
          .libraries = file.string("/info", "libraries"),
          .start_time = file.string("/info", "start_time"),
          .seed = file.unsigned_integer("/info", "seed"),
          .deck = file.string("/info", "deck")};
}

RunFile::RunFile(const std::filesystem::path& folder, const RunInfo& info)
    : file_((folder / "run.h5").string()), info_(info) {
  append({});
}

void RunFile::link(int ranks, std::span<const StageOwner> stages) {
  ranks_ = ranks;
  stages_.assign(stages.begin(), stages.end());
}

void RunFile::append(const RunSegment& segment) {
  append_rows(file_, segment.steps);
  append_rows(file_, segment.evaluations);
  if (!segment.samples.empty())
    file_.append<std::int64_t>("/audit/samples", segment.samples,
                               {static_cast<hsize_t>(segment.micro_batches),
                                static_cast<hsize_t>(segment.micro_batch_size)});
}

void RunFile::write_rest(hdf5::File& file) const {
  write_info(file, "carousel run", info_);
  if (plan_) write_plan_group(file, *plan_);
  for (int rank = 0; rank < ranks_; ++rank)
    file.link(fmt::format("/ranks/{:04}", rank), rank_file_name(rank), "/");
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const std::string owner = rank_file_name(stages_[s].device);
    const std::string receipts = fmt::format("/receipts/{}", s);
    file.link(receipts, owner, receipts);
    for (const std::string& name : stages_[s].audited)
      file.link("/audit/parameters/" + name, owner, "/audit/parameters/" + name);
  }
}

void RunFile::publish() {
  file_.publish([this](hdf5::File& file) { write_rest(file); });
}

void RunFile::finish() {
  file_.finish([this](hdf5::File& file) { write_rest(file); });
}

RankFile::RankFile(const std::filesystem::path& folder, int rank, const RunInfo& info)
    : file_((folder / rank_file_name(rank)).string()), rank_(rank), info_(info) {
  append_segment(file_, {});
}

void RankFile::append(const RankSegment& segment, const MeasuredRecord& measured) {
  append_segment(file_, segment);
  measured_ = measured;
}

void RankFile::write_rest(hdf5::File& file) const {
  write_info(file, "carousel rank", info_);
  file.set("/info", "rank", std::int64_t{rank_});
  if (measured_) write_measured(file, *measured_);
}

void RankFile::publish() {
  file_.publish([this](hdf5::File& file) { write_rest(file); });
}

void RankFile::finish() {
  file_.finish([this](hdf5::File& file) { write_rest(file); });
}

}  // namespace carousel
