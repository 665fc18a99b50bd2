// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Data sets and users' arrays that were changed anywhere, of every kind: all samples are read, or
// one is refused, and nothing worse. CAROUSEL_MUTATIONS says how many there are.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/hdf5.hpp"
#include "core/base/random.hpp"
#include "core/data/array_set.hpp"
#include "core/data/dataset.hpp"
#include "core/data/dataset_writer.hpp"
#include "core/data/image_source.hpp"
#include "tests/core/data/small_dataset.hpp"
#include "tests/core/support.hpp"

namespace carousel {
namespace {

using testing::TemporaryFolder;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool own_memory = false;  // the sanitizer keeps what was freed
#else
constexpr bool own_memory = true;
#endif

std::uint64_t mutations() {
  const char* asked = std::getenv("CAROUSEL_MUTATIONS");
  return asked == nullptr ? 240 : std::stoull(asked);
}

/// Numbers of one mutation, one after the other.
class Dice {
 public:
  explicit Dice(std::uint64_t number) : number_(number) {}
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(static_cast<double>(count) *
                                    uniform01(random_key(3, "mutations"), number_, thrown_++));
  }

 private:
  std::uint64_t number_;
  std::uint64_t thrown_ = 0;
};

std::vector<std::byte> mutated(std::vector<std::byte> bytes, Dice& dice) {
  const std::size_t at = dice.below(bytes.size());
  const std::size_t length = std::min(1 + dice.below(32), bytes.size() - at);
  switch (dice.below(5)) {
    case 0:  // bits here and there
      for (std::size_t k = 0; k <= dice.below(8); ++k)
        bytes[dice.below(bytes.size())] ^= static_cast<std::byte>(1 << dice.below(8));
      break;
    case 1:  // noise
      for (std::size_t k = 0; k < length; ++k)
        bytes[at + k] = static_cast<std::byte>(dice.below(256));
      break;
    case 2:  // cut
      bytes.resize(at);
      break;
    case 3:  // moved
      std::rotate(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                  bytes.begin() + static_cast<std::ptrdiff_t>(at + length / 2),
                  bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
      break;
    default:  // extremes, at the begin, where HDF5 keeps most of what it knows
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at * 2048 / bytes.size()), 4,
                  static_cast<std::byte>(dice.below(2) * 255));
  }
  return bytes;
}

/// Reads all samples as training and evaluation do.
void read_all(const Source& source) {
  const std::unique_ptr<SourceReader> reader = source.reader({});
  std::vector<std::byte> input(static_cast<std::size_t>(source.spec().input.bytes()));
  std::vector<std::byte> target(static_cast<std::size_t>(source.spec().target.bytes()));
  for (const Pass pass : {Pass::training, Pass::evaluation}) {
    for (std::int64_t k = 0; k < source.samples(pass); ++k) {
      static_cast<void>(reader->read_input(pass, 0, k, input));
      reader->read_target(pass, 0, k, target);
    }
  }
}

/// A file as it was, and how it is read.
struct Whole {
  std::vector<std::byte> bytes;
  std::function<void(const std::string& path)> read;
};

void check_mutations(const std::vector<Whole>& files) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  std::uint64_t refused = 0;
  for (std::uint64_t k = 0; k < mutations(); ++k) {
    Dice dice(k);
    const Whole& whole = files[k % files.size()];
    replace_file(path, mutated(whole.bytes, dice), Durability::process);
    try {
      whole.read(path);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ExitCode::bad_data || error.code() == ExitCode::usage)
          << k << ": " << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, mutations() / 4);
  rusage use = {};
  getrusage(RUSAGE_SELF, &use);
  if (own_memory) {
    EXPECT_LT(use.ru_maxrss, 100 * 1024) << "KiB";
  }
}

TEST(Mutations, AreReadOrRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  const auto read_as = [](const AugmentConfig& config) {
    return [config](const std::string& changed) {
      const Dataset dataset(changed);
      read_all(ImageSource(dataset, config, 1));
    };
  };
  std::vector<Whole> files;
  for (const hdf5::Layout layout : {hdf5::Layout::contiguous, hdf5::Layout::checked}) {
    testing::SmallDataset{.layout = layout}.write(path);
    files.push_back({read_file(path), read_as({})});
  }
  files.push_back({read_file(CAROUSEL_SOURCE "/tests/reference/views.h5"),
                   read_as({.size = 24, .crop = CropKind::resized})});
  files.push_back({read_file(testing::input("digits.h5")), read_as({})});
  check_mutations(files);
}

/// Volumes and numbers of 12 samples, packed by filters: s shuffle, d deflate, f fletcher32.
void write_arrays(const std::string& path, const std::string& filters) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const auto write = [&](const char* name, const std::vector<hsize_t>& shape, hid_t kept) {
    hsize_t count = 1;
    for (const hsize_t extent : shape) count *= extent;
    std::vector<float> numbers;
    for (hsize_t k = 0; k < count; ++k)
      numbers.push_back(static_cast<float>(uniform01(random_key(5, name), 0, k)));
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, kept, H5P_DEFAULT);
    ASSERT_GE(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()), 0);
    H5Dclose(set);
    H5Sclose(space);
  };
  const hid_t kept = H5Pcreate(H5P_DATASET_CREATE);
  const std::vector<hsize_t> chunk = {2, 1, 2, 4, 6};
  if (!filters.empty()) H5Pset_chunk(kept, static_cast<int>(chunk.size()), chunk.data());
  for (const char filter : filters) {
    if (filter == 's') H5Pset_shuffle(kept);
    if (filter == 'd') H5Pset_deflate(kept, 4);
    if (filter == 'f') H5Pset_fletcher32(kept);
  }
  write("u", {12, 2, 3, 4, 6}, kept);
  write("v", {12, 3}, H5P_DEFAULT);
  H5Pclose(kept);
  H5Fclose(file);
}

void read_arrays(const std::string& path) {
  DataConfig config;
  config.kind = DataKind::arrays;
  config.files = {path};
  config.validation_fraction = 0.25;
  config.input.arrays.from = {"u"};
  config.input.arrays.axes = "n c z y x";
  config.input.arrays.normalise = Normalise::standard;
  config.target.arrays.from = {"v"};
  const ArraySet set(config);
  static_cast<void>(set.fingerprint());
  read_all(*set.source(config, 1));
}

TEST(Mutations, OfArraysAreReadOrRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  std::vector<Whole> files;
  for (const char* filters : {"", "d", "sd", "sdf", "f"}) {
    write_arrays(path, filters);
    read_arrays(path);
    files.push_back({read_file(path), read_arrays});
  }
  check_mutations(files);
}

}  // namespace
}  // namespace carousel
