// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Users' arrays as samples: windows, splits, statistics, labels, masks, crops, and what is refused.

#include "core/data/array_set.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/data/array_source.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::failure;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int trajectories = 7;
constexpr int times = 6;
constexpr int rows = 4;
constexpr int columns = 5;

/// What /u of file `file` holds at a place.
double value_at(int file, std::int64_t n, std::int64_t t, int c, int y, int x) {
  return 1000 * file + 100.0 * static_cast<double>(n) + 10.0 * static_cast<double>(t) + c +
         0.1 * y + 0.01 * x;
}

class ArraySetTest : public ::testing::Test {
 protected:
  ArraySetTest() {
    config_.kind = DataKind::arrays;
    config_.files = {folder_ / "*.h5"};
    config_.input.arrays.from = {"u"};
    config_.input.arrays.axes = "n t y x c";
    config_.target.arrays.from = {"u"};
    config_.target.arrays.axes = "n t y x c";
    config_.target.ahead = 1;
    config_.test_fraction = 0.25;
    for (int file = 0; file < 2; ++file) write(file);
  }

  [[nodiscard]] std::string path(int file) const {
    return folder_ / fmt::format("{}.h5", "ab"[file]);
  }
  void write(int file, const std::map<std::size_t, double>& changed = {}) const {
    std::vector<double> u;
    std::vector<int> labels;
    std::vector<int> shows;
    for (int n = 0; n < trajectories; ++n)
      for (int t = 0; t < times; ++t)
        for (int y = 0; y < rows; ++y)
          for (int x = 0; x < columns; ++x) {
            for (int c = 0; c < 2; ++c) u.push_back(value_at(file, n, t, c, y, x));
            labels.push_back((n + t + y + x) % 3);
            shows.push_back((n + y + x) % 2);
          }
    for (const auto& [index, value] : changed) u[index] = value;
    hdf5::File made = hdf5::File::create(path(file));
    made.write<double>("/u", u, {trajectories, times, rows, columns, 2});
    made.write<int>("/labels", labels, {trajectories, times, rows, columns});
    made.write<int>("/shows", shows, {trajectories, times, rows, columns});
    const std::vector<double> params(trajectories * 3, 0.5);
    made.write<double>("/params", params, {trajectories, 3});
    made.close();
  }

  [[nodiscard]] std::vector<real> input(const ArraySet& set, Pass pass, std::int64_t index,
                                        std::int64_t epoch = 0) const {
    const std::unique_ptr<Source> source = set.source(config_, 5);
    std::vector<real> values(static_cast<std::size_t>(source->spec().input.shape.size()));
    static_cast<void>(
        source->reader({.targets = false})
            ->read_input(pass, epoch, index, std::as_writable_bytes(std::span(values))));
    return values;
  }
  template <class Number = real>
  [[nodiscard]] std::vector<Number> target(const ArraySet& set, Pass pass, std::int64_t index,
                                           std::int64_t epoch = 0) const {
    const std::unique_ptr<Source> source = set.source(config_, 5);
    std::vector<Number> values(static_cast<std::size_t>(source->spec().target.shape.size()));
    source->reader({.inputs = false})
        ->read_target(pass, epoch, index, std::as_writable_bytes(std::span(values)));
    return values;
  }
  [[nodiscard]] std::string refusal(ExitCode code) const {
    return failure(code, [this] {
      const ArraySet set(config_);
      static_cast<void>(set.source_spec(config_));
    });
  }

  const testing::TemporaryFolder folder_;
  DataConfig config_;
};

int file_of(const SamplePlace& place) {
  return place.file->path.ends_with("a.h5") ? 0 : 1;
}

TEST_F(ArraySetTest, WindowsAreFramesInARow) {
  config_.input.history = 3;
  config_.target.ahead = 2;
  const ArraySet set(config_);
  EXPECT_EQ(set.source_spec(config_).shown, (SampleShape{6, rows, columns}));
  EXPECT_EQ(set.target(config_), TargetSpec::of_numbers({2, rows, columns}));
  for (const Pass pass : {Pass::training, Pass::evaluation}) {
    EXPECT_EQ(set.samples(pass) % (times - 2 - 2), 0);
    for (std::int64_t k = 0; k < set.samples(pass); ++k) {
      const SamplePlace place = set.split(pass).place(k);
      const std::vector<real> input = this->input(set, pass, k);
      const std::vector<real> target = this->target(set, pass, k);
      std::size_t at = 0;
      for (int h = 0; h < 3; ++h)
        for (int c = 0; c < 2; ++c)
          for (int y = 0; y < rows; ++y)
            for (int x = 0; x < columns; ++x, ++at)
              ASSERT_EQ(input[at], static_cast<real>(value_at(file_of(place), place.frame.sample,
                                                              place.frame.time + h, c, y, x)));
      at = 0;
      for (int c = 0; c < 2; ++c)
        for (int y = 0; y < rows; ++y)
          for (int x = 0; x < columns; ++x, ++at)
            ASSERT_EQ(target[at], static_cast<real>(value_at(file_of(place), place.frame.sample,
                                                             place.frame.time + 4, c, y, x)));
    }
  }
}

TEST_F(ArraySetTest, NoTrajectoryIsInTwoSplits) {
  config_.validation_fraction = 0.25;
  for (const SplitUnit unit : {SplitUnit::trajectory, SplitUnit::file}) {
    config_.split = unit;
    if (unit == SplitUnit::file) config_.test_fraction = 0;
    const ArraySet set(config_);
    std::map<std::pair<int, std::int64_t>, std::set<SplitName>> splits;
    std::map<int, std::set<SplitName>> of_files;
    for (const SplitName name : {SplitName::train, SplitName::validation, SplitName::test}) {
      for (std::int64_t k = 0; k < set.split(name).samples(); ++k) {
        const SamplePlace place = set.split(name).place(k);
        splits[{file_of(place), place.frame.sample}].insert(name);
        of_files[file_of(place)].insert(name);
      }
    }
    EXPECT_EQ(splits.size(), 2 * trajectories) << "every trajectory is in one";
    for (const auto& [place, names] : splits) EXPECT_EQ(names.size(), 1);
    if (unit == SplitUnit::file)
      for (const auto& [file, names] : of_files) EXPECT_EQ(names.size(), 1);
    else
      EXPECT_EQ(set.split(SplitName::test).samples(), 4 * (times - 1));
  }
}

TEST_F(ArraySetTest, SplitsFollowTheirSeed) {
  const auto tested = [this] {
    const ArraySet set(config_);
    std::vector<std::pair<int, std::int64_t>> places;
    for (std::int64_t k = 0; k < set.samples(Pass::evaluation); ++k) {
      const SamplePlace place = set.split(Pass::evaluation).place(k);
      places.emplace_back(file_of(place), place.frame.sample);
    }
    return places;
  };
  const auto first = tested();
  EXPECT_EQ(tested(), first);
  config_.split_seed = 2;
  EXPECT_NE(tested(), first);
  config_.test_fraction = 0;
  config_.files = {path(0)};
  config_.validation_files = {path(1)};
  for (const auto& [file, sample] : tested()) EXPECT_EQ(file, 1);
}

TEST_F(ArraySetTest, StatisticsAreThoseOfTheTraining) {
  config_.input.arrays.normalise = Normalise::standard;
  config_.target.arrays.normalise = Normalise::minmax;
  config_.input.arrays.transform = Transform::asinh;
  DataStatistics first;
  for (const int workers : {1, 3}) {
    config_.workers = workers;
    const ArraySet set(config_);
    const DataStatistics found = set.statistics(config_);
    const ArraySplit& train = set.split(SplitName::train);
    for (int c = 0; c < 2; ++c) {
      double sum = 0;
      double squares = 0;
      double count = 0;
      double least = INFINITY;
      double most = -INFINITY;
      for (std::int64_t k = 0; k < train.trajectories(); ++k) {
        const SamplePlace place = train.trajectory(k);
        for (int t = 0; t < times; ++t)
          for (int y = 0; y < rows; ++y)
            for (int x = 0; x < columns; ++x) {
              const double value = value_at(file_of(place), place.frame.sample, t, c, y, x);
              sum += std::asinh(value);
              squares += std::asinh(value) * std::asinh(value);
              count += 1;
              least = std::min(least, value);
              most = std::max(most, value);
            }
      }
      const double mean = sum / count;
      EXPECT_NEAR(found.mean[c], mean, 1e-12 * mean);
      EXPECT_NEAR(found.std[c], std::sqrt(squares / count - mean * mean), 1e-9);
      EXPECT_EQ(found.target_mean[c], least);
      EXPECT_EQ(found.target_std[c], most - least);
    }
    if (workers == 1) first = found;
    EXPECT_EQ(found.mean, first.mean);
    EXPECT_EQ(found.std, first.std);
    const SamplePlace place = set.split(Pass::evaluation).place(3);
    EXPECT_EQ(input(set, Pass::evaluation, 3)[1],
              static_cast<real>((std::asinh(value_at(file_of(place), place.frame.sample,
                                                     place.frame.time, 0, 0, 1)) -
                                 found.mean[0]) /
                                found.std[0]));
  }
  config_.input.arrays.mean = {1, 2};
  config_.input.arrays.std = {3, 4};
  EXPECT_EQ(ArraySet(config_).statistics(config_).mean, (std::vector<double>{1, 2}));
}

TEST_F(ArraySetTest, InputsAndTargetsAreCutAndMirroredAlike) {
  config_.target.arrays.from = {"u"};
  config_.target.ahead = 0;
  config_.augment.size = 3;
  config_.augment.crop = CropKind::random;
  config_.augment.flip = 0.5;
  const ArraySet set(config_);
  EXPECT_EQ(set.source_spec(config_).shown, (SampleShape{2, 3, 3}));
  std::set<real> corners;
  for (std::int64_t k = 0; k < set.samples(Pass::training); ++k) {
    const std::vector<real> seen = input(set, Pass::training, k, 2);
    EXPECT_EQ(seen, target(set, Pass::training, k, 2));
    const SamplePlace place = set.split(Pass::training).place(k);
    corners.insert(std::round(
        100 * (seen.front() - static_cast<real>(value_at(file_of(place), place.frame.sample,
                                                         place.frame.time, 0, 0, 0)))));
  }
  EXPECT_GT(corners.size(), 6) << "places and mirror images differ";
  const SamplePlace place = set.split(Pass::evaluation).place(0);
  EXPECT_EQ(
      input(set, Pass::evaluation, 0).front(),
      static_cast<real>(value_at(file_of(place), place.frame.sample, place.frame.time, 0, 0, 1)))
      << "evaluations see the centre";
}

TEST_F(ArraySetTest, LabelsAreOfPixels) {
  config_.target.arrays.from = {"labels"};
  config_.target.arrays.axes = "n t y x";
  config_.target.classes = 3;
  const ArraySet set(config_);
  EXPECT_EQ(set.target(config_), TargetSpec::of_pixels(3, {1, rows, columns}));
  const SamplePlace place = set.split(Pass::training).place(8);
  const std::vector<std::int32_t> labels = target<std::int32_t>(set, Pass::training, 8);
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x)
      EXPECT_EQ(labels[static_cast<std::size_t>(y * columns + x)],
                (place.frame.sample + place.frame.time + 1 + y + x) % 3);
  config_.target.classes = 2;
  const ArraySet fewer(config_);
  EXPECT_THAT(failure(ExitCode::bad_data,
                      [&] { static_cast<void>(target<std::int32_t>(fewer, Pass::training, 0)); }),
              HasSubstr("is 2, and labels lie between 0 and 1"));
  config_.target.ignore = 2;
  const ArraySet ignoring(config_);
  EXPECT_TRUE(ignoring.target(config_).is_partial());
  EXPECT_EQ(target<std::int32_t>(ignoring, Pass::training, 8), labels);
}

TEST_F(ArraySetTest, AMaskHidesTargets) {
  // Hidden where n + y + x is even, here of n = 0, t = 1: what is no number there is not asked for.
  write(0, {{rows * columns * 2, std::nan("")}});
  config_.target.mask = "shows";
  const ArraySet set(config_);
  EXPECT_TRUE(set.target(config_).has_gaps);
  for (std::int64_t k = 0; k < set.samples(Pass::evaluation); ++k) {
    const SamplePlace place = set.split(Pass::evaluation).place(k);
    const std::vector<real> numbers = target(set, Pass::evaluation, k);
    std::size_t at = 0;
    for (int c = 0; c < 2; ++c)
      for (int y = 0; y < rows; ++y)
        for (int x = 0; x < columns; ++x, ++at)
          EXPECT_EQ(std::isnan(numbers[at]), (place.frame.sample + y + x) % 2 == 0);
  }
}

TEST_F(ArraySetTest, WhatIsNoNumberIsRefusedByItsPlace) {
  const std::size_t at = (((1 * times + 2) * rows + 3) * columns + 4) * 2 + 1;
  for (const double bad : {std::nan(""), double{INFINITY}}) {
    for (const int file : {0, 1}) write(file, {{at, bad}});
    config_.input.arrays.normalise = Normalise::standard;
    const ArraySet set(config_);
    EXPECT_THAT(failure(ExitCode::bad_data, [&] { static_cast<void>(set.statistics(config_)); }),
                HasSubstr("/u[1, 2, 3, 4, 1] is not a finite number"));
  }
  for (const int file : {0, 1}) write(file, {{at, -3}});
  config_.input.arrays.transform = Transform::log1p;
  const ArraySet set(config_);
  EXPECT_THAT(failure(ExitCode::bad_data, [&] { static_cast<void>(set.statistics(config_)); }),
              HasSubstr("/u[1, 2, 3, 4, 1] has no finite log1p"));
}

TEST_F(ArraySetTest, WhatFullNumbersCannotHoldIsRefusedUnlessItIsScaled) {
  if (sizeof(real) == sizeof(double)) return;
  for (const int file : {0, 1}) write(file, {{0, 1e300}});
  config_.target.arrays.from = {"params"};
  config_.target.arrays.axes = "n c";
  config_.target.ahead = -1;
  const ArraySet set(config_);
  std::int64_t of_first = 0;  // a sample that has it
  while (set.split(Pass::training).place(of_first).frame.sample != 0 ||
         set.split(Pass::training).place(of_first).frame.time != 0)
    ++of_first;
  EXPECT_THAT(
      failure(ExitCode::bad_data, [&] { static_cast<void>(input(set, Pass::training, of_first)); }),
      HasSubstr("sample 0 has numbers that float32 cannot hold"));
  config_.input.arrays.transform = Transform::asinh;
  EXPECT_TRUE(std::isfinite(input(set, Pass::training, of_first).front()));
}

TEST_F(ArraySetTest, TheFingerprintFollowsNumbers) {
  const std::uint64_t before = ArraySet(config_).fingerprint();
  EXPECT_EQ(ArraySet(config_).fingerprint(), before);
  write(1, {{17, 3}});
  EXPECT_NE(ArraySet(config_).fingerprint(), before);
}

TEST_F(ArraySetTest, RefusesWhatDoesNotGoTogether) {
  config_.target.ahead = -1;
  EXPECT_THAT(refusal(ExitCode::usage), StartsWith("data.target.ahead is missing"));
  config_.target.ahead = 6;
  EXPECT_THAT(refusal(ExitCode::bad_data), HasSubstr("has 6 times, too few"));
  config_.target.ahead = 1;
  config_.input.arrays.from = {"v"};
  EXPECT_THAT(refusal(ExitCode::bad_data), HasSubstr("/v is missing, which data.input.from names"));
  config_.input.arrays.from = {"params"};
  config_.input.arrays.axes = "n c";
  EXPECT_THAT(refusal(ExitCode::usage), StartsWith("data.target.axes has t"));
  config_.target.arrays = config_.input.arrays;
  EXPECT_THAT(refusal(ExitCode::usage), StartsWith("data.target.ahead = 1 needs"));
  config_.target.ahead = -1;
  config_.target.classes = 2;
  EXPECT_THAT(refusal(ExitCode::usage), StartsWith("data.target.from: labels are one array"));
  config_.target.classes = 0;
  config_.test_fraction = 0;
  EXPECT_THAT(refusal(ExitCode::usage), StartsWith("data.validation_fraction is missing"));
  config_.test_fraction = 0.6;
  config_.validation_fraction = 0.6;
  EXPECT_THAT(refusal(ExitCode::usage), HasSubstr("leave nothing of 14 samples to train with"));
  config_.test_files = {path(0)};
  config_.test_fraction = config_.validation_fraction = 0;
  EXPECT_THAT(refusal(ExitCode::usage), HasSubstr("is named twice"));
  config_.files = {folder_ / "c*.h5"};
  EXPECT_THAT(refusal(ExitCode::input_output), HasSubstr("no such file"));
}

}  // namespace
}  // namespace carousel
