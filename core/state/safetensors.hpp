// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files of tensors in the format of Hugging Face's safetensors: the length of a header, the header
// in JSON, and the numbers of all tensors behind each other. Which tensors a model needs is not
// known here.
//
// Format: https://huggingface.co/docs/safetensors

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/real.hpp"

namespace carousel {

/// A tensor of a file, whose bytes are borrowed.
struct SafeTensor {
  std::string name;
  std::string type;  // "F32", "BF16", as the format calls them
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  /// Whether it holds real numbers, which values() reads: of 8, 4 or 2 bytes, or bfloat16.
  [[nodiscard]] bool has_reals() const;
  /// Its numbers, rounded to this build's precision.
  [[nodiscard]] std::vector<real> values() const;
};

struct SafeTensors {
  std::vector<SafeTensor> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
};

/// Whether a file begins as such files do, and not as HDF5 does.
[[nodiscard]] bool is_safetensors(std::span<const std::byte> image);

/// What a file holds, whose bytes are `image`. Every length in it is compared with those bytes
/// before anything is made of it: tensors must fill them, without gaps and overlaps.
/// Error(bad_data), beginning with `path`, for anything else.
[[nodiscard]] SafeTensors read_safetensors(const std::string& path,
                                           std::span<const std::byte> image);

/// A tensor to write, whose numbers are borrowed.
struct WrittenTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const real> values;
};

/// The bytes of a file: what is written is read back to the bit.
[[nodiscard]] std::vector<std::byte> write_safetensors(
    std::span<const WrittenTensor> tensors, const std::map<std::string, std::string>& metadata);

}  // namespace carousel
