// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Mean and deviation of the training samples. Frames are measured by themselves and joined in their
// order, by the formula of Chan et al. (1983), so that no number depends on the threads.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/shared_work.hpp"
#include "core/data/array_source.hpp"

namespace carousel {
namespace {

// Trajectories that are measured by one thread, one after the other.
constexpr std::int64_t group_size = 256;

/// Of the numbers of one channel.
struct Spread {
  double count = 0;
  double mean = 0;
  double squares = 0;  // of deviations from the mean
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void join(const Spread& other) {
    if (other.count == 0) return;
    const double all = count + other.count;
    const double step = other.mean - mean;
    mean += step * other.count / all;
    squares += other.squares + step * step * count * other.count / all;
    count = all;
    least = std::min(least, other.least);
    most = std::max(most, other.most);
  }
};

/// Of what is not NaN.
Spread spread_of(std::span<const double> numbers) {
  Spread spread;
  double sum = 0;
  for (const double number : numbers) {
    if (std::isnan(number)) continue;
    sum += number;
    spread.count += 1;
    spread.least = std::min(spread.least, number);
    spread.most = std::max(spread.most, number);
  }
  if (spread.count == 0) return spread;
  spread.mean = sum / spread.count;
  for (const double number : numbers)
    if (!std::isnan(number)) spread.squares += (number - spread.mean) * (number - spread.mean);
  return spread;
}

/// Adds all frames of a trajectory to the spreads of its channels.
void add_trajectory(FrameReader& reader, const SamplePlace& first, bool targets,
                    std::vector<Spread>& channels) {
  const ArrayFile& file = *first.file;
  const SampleShape& shape = targets ? file.target : file.input;
  const DataArray& array = targets ? file.targets.front() : file.inputs.front();
  FramePlace place = first.frame;
  for (place.time = 0; place.time < array.extent(ArrayAxis::t); ++place.time) {
    const std::span<const double> frame = reader.read(file, place, FramePart::whole(shape));
    const std::size_t plane = frame.size() / channels.size();
    for (std::size_t c = 0; c < channels.size(); ++c)
      channels[c].join(spread_of(frame.subspan(c * plane, plane)));
  }
}

std::vector<Spread> spreads_of(const ArraySet& set, const ArrayConfig& config, bool targets,
                               int threads) {
  const ArraySplit& split = set.split(SplitName::train);
  const ArrayFile& file = set.first_file();
  const auto channels = static_cast<std::size_t>((targets ? file.target : file.input).channels);
  const std::int64_t groups = (split.trajectories() + group_size - 1) / group_size;
  std::vector<std::vector<Spread>> of_groups(static_cast<std::size_t>(groups));
  share_work(groups, threads, [&](int /*thread*/) {
    FrameReader own_reader(file, set.room(targets), config.transform, targets);
    return [&, reader = std::move(own_reader)](std::int64_t g) mutable {
      std::vector<Spread> own(channels);
      const std::int64_t end = std::min((g + 1) * group_size, split.trajectories());
      for (std::int64_t k = g * group_size; k < end; ++k)
        add_trajectory(reader, split.trajectory(k), targets, own);
      of_groups[static_cast<std::size_t>(g)] = std::move(own);
    };
  });
  std::vector<Spread> all(channels);
  for (const std::vector<Spread>& group : of_groups)
    for (std::size_t c = 0; c < channels; ++c) all[c].join(group[c]);
  return all;
}

/// What normalise makes of them. A channel that is always the same becomes 0.
void fill(const std::vector<Spread>& spreads, Normalise normalise, std::vector<double>& mean,
          std::vector<double>& std) {
  mean.clear();
  std.clear();
  for (const Spread& spread : spreads) {
    const bool by_bounds = normalise == Normalise::minmax;
    const double width = by_bounds ? spread.most - spread.least
                                   : std::sqrt(spread.squares / std::max(spread.count, 1.0));
    mean.push_back(by_bounds ? spread.least : spread.mean);
    std.push_back(width > 0 ? width : 1);
  }
}

}  // namespace

void measure(const ArraySet& set, const DataConfig& config, int threads, DataStatistics& result) {
  const ArrayConfig& inputs = config.input.arrays;
  const ArrayConfig& targets = config.target.arrays;
  if (inputs.needs_statistics())
    fill(spreads_of(set, inputs, false, threads), inputs.normalise, result.mean, result.std);
  if (config.target.classes == 0 && targets.needs_statistics())
    fill(spreads_of(set, targets, true, threads), targets.normalise, result.target_mean,
         result.target_std);
}

}  // namespace carousel
