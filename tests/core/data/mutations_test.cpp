// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

// Data sets that were changed anywhere, of every kind: all samples are read, or one is refused, and
// nothing worse. CAROUSEL_MUTATIONS says how many there are.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/base/check.hpp"
#include "core/base/descriptor.hpp"
#include "core/base/random.hpp"
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
void read_all(const std::string& path, const AugmentConfig& config) {
  const Dataset dataset(path);
  const ImageSource source(dataset, config, 1);
  const std::unique_ptr<SourceReader> reader = source.reader({});
  std::vector<std::byte> image(static_cast<std::size_t>(source.spec().input.bytes()));
  for (const Pass pass : {Pass::training, Pass::evaluation}) {
    for (std::int64_t k = 0; k < source.samples(pass); ++k)
      static_cast<void>(reader->read_input(pass, 0, k, image));
  }
}

TEST(Mutations, AreReadOrRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  testing::SmallDataset().write(path);
  std::vector<std::vector<std::byte>> whole = {read_file(path)};
  testing::SmallDataset{.layout = hdf5::Layout::checked}.write(path);
  whole.push_back(read_file(path));
  whole.push_back(read_file(CAROUSEL_SOURCE "/tests/reference/views.h5"));
  whole.push_back(read_file(testing::input("digits.h5")));
  std::uint64_t refused = 0;
  for (std::uint64_t k = 0; k < mutations(); ++k) {
    Dice dice(k);
    const std::size_t of = k % whole.size();
    const std::vector<std::byte> bytes = mutated(whole[of], dice);
    replace_file(path, bytes, Durability::process);
    const AugmentConfig config =
        of == 2 ? AugmentConfig{.size = 24, .crop = CropKind::resized} : AugmentConfig();
    try {
      read_all(path, config);
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

}  // namespace
}  // namespace carousel
