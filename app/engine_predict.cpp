// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// `carousel predict`, in numbered steps. Ranks take whole batches, in their order, so that no
// number depends on how many there are, and each writes its own rows.

#include <fmt/core.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "app/engine.hpp"
#include "app/evaluated_run.hpp"
#include "app/input_rules.hpp"
#include "app/provenance.hpp"
#include "app/ranks.hpp"
#include "app/requested_run.hpp"
#include "app/state_files.hpp"
#include "core/base/vectors.hpp"
#include "core/base/version.hpp"
#include "core/data/array_set.hpp"
#include "core/data/array_source.hpp"
#include "core/train/predictor.hpp"
#include "layers/factory.hpp"
#include "layers/metrics/largest.hpp"
#include "layers/targets.hpp"
#include "layers/vendor/vendor.hpp"

namespace carousel {
namespace {

/// Where rows of an array lie in a file.
struct Rows {
  std::int64_t offset = -1;  // -1: there is no such array
  std::int64_t bytes = 0;    // of one row

  void write(Descriptor& file, std::int64_t row, std::span<const std::byte> values) const {
    if (offset >= 0) file.write_at(offset + row * bytes, values);
  }
};

/// How many of z, y and x the axes of an array name; none of those that name no axes.
int axes_of_space(const std::string& axes) {
  return static_cast<int>(std::ranges::count_if(
      axes, [](char axis) { return axis == 'z' || axis == 'y' || axis == 'x'; }));
}

/// Of targets of the data of a deck.
int axes_of_targets(const DataConfig& data) {
  return data.kind == DataKind::tokens ? 1 : axes_of_space(data.target.arrays.axes);
}

/// [samples] and the last so many axes of [d, h, w], of one axis h.
hdf5::Shape shape_of(std::int64_t samples, const SampleShape& sample, int axes) {
  hdf5::Shape shape = {static_cast<hsize_t>(samples)};
  if (axes == 3) shape.push_back(static_cast<hsize_t>(sample.depth));
  if (axes >= 1) shape.push_back(static_cast<hsize_t>(sample.height));
  if (axes >= 2) shape.push_back(static_cast<hsize_t>(sample.width));
  return shape;
}

struct Predictions {
  const RunConfig& config;
  const Checkpoint& checkpoint;
  const InputRecord& record;
  const DataSet& dataset;
  Model model;
  std::int64_t samples = 0;
  std::string path;
  bool without_ema = false;

  [[nodiscard]] const TargetSpec& target() const { return record.target; }
  [[nodiscard]] std::int64_t outputs() const { return model.layers.back().input().size(); }
  void create() const;
  void compute(const ExecutionSpace& exec, int rank, int ranks) const;

 private:
  [[nodiscard]] Rows rows_of(const hdf5::File& file, const char* name, std::int64_t number) const;
  void in_their_units(std::span<real> outputs) const;
  void choose(std::span<const real> outputs, std::span<std::int32_t> labels) const;
  void tell_places(hdf5::File& file) const;
};

/// Where samples of arrays come from: the file, the index along n, the first frame of the input.
void Predictions::tell_places(hdf5::File& file) const {
  const auto* const arrays = dynamic_cast<const ArraySet*>(&dataset);
  if (arrays == nullptr) return;
  std::vector<std::string> files;
  std::map<const ArrayFile*, std::int64_t> numbers;  // of files
  std::vector<std::int64_t> places;
  for (std::int64_t k = 0; k < samples; ++k) {
    const SamplePlace place = arrays->split(Pass::evaluation).place(k);
    const auto [number, is_new] = numbers.emplace(place.file, std::ssize(files));
    if (is_new) files.push_back(place.file->path);
    places.insert(places.end(), {number->second, place.frame.sample, place.frame.time});
  }
  file.write_strings("/files", files);
  file.write<std::int64_t>("/places", places, {static_cast<hsize_t>(samples), 3});
}

/// The file with all but the numbers, which have their room.
void Predictions::create() const {
  std::filesystem::remove(path);
  hdf5::File file = hdf5::File::create(path);
  write_info(file, predictions_format, provenance(config));
  file.set("/info", "checkpoint", checkpoint.path());
  file.set("/info", "checkpoint_digest", fmt::format("{:016x}", checkpoint.digest()));
  file.set("/info", "step", checkpoint.place().step);
  file.set("/info", "weights", checkpoint.used_parameters(without_ema));
  file.set("/info", "data", dataset.name());
  // As many axes as the targets have, whatever their extents are.
  const SampleShape shape = target().outputs();
  hdf5::Shape rows = shape_of(samples, shape, axes_of_targets(config.data));
  if (target().has_labels()) static_cast<void>(file.reserve<int>("/labels", rows));
  rows.insert(rows.begin() + 1, static_cast<hsize_t>(shape.channels));
  static_cast<void>(file.reserve<real>("/outputs", rows));
  tell_places(file);
  file.close();
}

Rows Predictions::rows_of(const hdf5::File& file, const char* name, std::int64_t number) const {
  if (!file.contains(name)) return {};
  const hdf5::DatasetInfo info = file.info(name);
  std::int64_t bytes = number;
  for (std::size_t k = 1; k < info.shape.size(); ++k)
    bytes *= static_cast<std::int64_t>(info.shape[k]);
  return {info.offset, bytes};
}

/// Undoes what was done with targets.
void Predictions::in_their_units(std::span<real> outputs) const {
  if (target().has_labels()) return;
  const Transform transform = config.data.target.arrays.transform;
  const std::int64_t pixels = target().pixels();
  for (std::int64_t k = 0; k < std::ssize(outputs); ++k) {
    const auto c = static_cast<std::size_t>(k / pixels % target().channels());
    real& output = outputs[static_cast<std::size_t>(k)];
    output = static_cast<real>(
        restored(transform, output * record.target_std[c] + record.target_mean[c]));
  }
}

/// The class that each pixel is taken for.
void Predictions::choose(std::span<const real> outputs, std::span<std::int32_t> labels) const {
  const std::int64_t pixels = target().pixels();
  for (std::int64_t k = 0; k < std::ssize(labels); ++k) {
    const real* const own = outputs.data() + k / pixels * pixels * target().classes + k % pixels;
    labels[static_cast<std::size_t>(k)] =
        index_of_largest(Strided<real>{own, pixels}, target().classes);
  }
}

void Predictions::compute(const ExecutionSpace& exec, int rank, int ranks) const {
  const hdf5::File made = hdf5::File::open_own(path);
  const Rows outputs_at = rows_of(made, "/outputs", sizeof(real));
  const Rows labels_at = rows_of(made, "/labels", sizeof(std::int32_t));
  Descriptor file = Descriptor::update(path);
  const DataStatistics statistics = dataset.statistics(config.data);
  const std::unique_ptr<Source> source = dataset.source(config.data, config.run.seed);
  const int batch = config.train.micro_batch_size;
  Predictor predictor(exec, {.model = model,
                             .source = source->spec(),
                             .mean = statistics.mean,
                             .std = statistics.std,
                             .largest_batch = batch,
                             .state = used_state(checkpoint, config.train.optimizer, without_ema),
                             .layers = make_layer,
                             .vendor = vendor::handles_for(vendor_for(config.engine))});
  const std::vector<BatchRequest> all = evaluation_requests(samples, batch, 0);
  const auto share = [&](int r) { return static_cast<std::size_t>(std::ssize(all) * r / ranks); };
  const std::span<const BatchRequest> own =
      std::span(all).subspan(share(rank), share(rank + 1) - share(rank));
  Prefetcher prefetcher({.source = *source,
                         .reads = {.inputs = true, .targets = false},
                         .seed = config.run.seed,
                         .largest_batch = batch,
                         .workers = config.data.workers});
  prefetcher.start(own);
  std::vector<real> numbers;
  std::vector<std::int32_t> labels;
  for (const BatchRequest& request : own) {
    numbers.resize(static_cast<std::size_t>(request.count * outputs()));
    predictor.predict(prefetcher.acquire(request.step, request.micro_batch), numbers);
    prefetcher.release();
    if (labels_at.offset >= 0) {
      labels.resize(static_cast<std::size_t>(request.count * target().pixels()));
      choose(numbers, labels);
      labels_at.write(file, request.first, std::as_bytes(std::span(labels)));
    }
    in_their_units(numbers);
    outputs_at.write(file, request.first, std::as_bytes(std::span(numbers)));
  }
  file.sync();
  file.close();
}

}  // namespace

ExitCode predict(const std::string& checkpoint_path, const std::string& dataset_path,
                 const std::string& output, const std::string& split, bool without_ema,
                 const Launcher& launcher, const MpiSession* session) {
  const Ranks ranks(session);
  const int rank = session == nullptr ? 0 : session->rank();
  std::optional<Checkpoint> checkpoint;
  RunConfig config;
  std::unique_ptr<DataSet> dataset;
  std::optional<Predictions> predictions;

  // 1. What has learned, and what it is shown.
  ranks.together([&] {
    checkpoint.emplace(checkpoint_path);
    if (!checkpoint->inputs())
      fail(ExitCode::usage,
           "{}: does not tell how its inputs were made; predict needs a checkpoint of this version",
           checkpoint_path);
    const InputRecord& record = *checkpoint->inputs();
    config = evaluated_run(*checkpoint, dataset_path, split);
    config.data.without_targets = true;
    take_statistics(config, record, checkpoint_path);
    dataset = open_data_set(config.data);
    const SourceSpec source = dataset->source_spec(config.data);
    if (source.shown != record.shape)
      fail(ExitCode::usage, "{}: inputs are {}, and {} was trained with {}", dataset->name(),
           to_string(source.shown), checkpoint_path, to_string(record.shape));
    const PlanBasis basis{.source = source,
                          .target = record.target,
                          .block = vector_block,
                          .vendor = vendor_for(config.engine)};
    predictions.emplace(
        Predictions{.config = config,
                    .checkpoint = *checkpoint,
                    .record = record,
                    .dataset = *dataset,
                    .model = prepare_model(planned_deck(config, TransportKind::local), basis),
                    .samples = dataset->samples(Pass::evaluation),
                    .path = output + ".part",
                    .without_ema = without_ema});
  });

  // 2. The machine.
  std::optional<Kokkos::ScopeGuard> kokkos;
  ranks.together([&] { kokkos.emplace(kokkos_settings(config.engine, launcher, session)); });

  // 3. The file, its rows, and its name.
  ranks.together([&] {
    if (ranks.first()) predictions->create();
  });
  ranks.together([&] {
    const ExecutionSpace exec;
    check_threads(exec);
    predictions->compute(exec, rank, session == nullptr ? 1 : session->size());
  });
  ranks.together([&] {
    if (!ranks.first()) return;
    rename_file(predictions->path, output);
    sync_folder_of(output);
    fmt::print("{}: {} predictions of {} after {} steps{}\n", output, predictions->samples,
               checkpoint_path, checkpoint->place().step, checkpoint->told_averages(without_ema));
  });
  return ExitCode::done;
}

}  // namespace carousel
