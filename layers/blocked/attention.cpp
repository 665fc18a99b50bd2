// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/attention.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "layers/blocked/attention_kernels.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/exponential.hpp"
#include "layers/stored.hpp"

namespace carousel::blocked {
namespace head {

void softmax(const Keys& keys, real scale, real* scores) {
  // To what a query does not read it pays no attention: exponentials of this are 0.
  constexpr real hidden = -1e30;
  for (std::int64_t t = keys.own + 1; t < keys.count; ++t)
    std::fill_n(scores + t * queries, t - keys.own, hidden);
  real largest[queries];
  real sum[queries] = {};
  for (int q = 0; q < queries; ++q) largest[q] = scores[q];
  for (std::int64_t t = 1; t < keys.count; ++t) {
    const real* row = scores + t * queries;
    for (int q = 0; q < queries; ++q) largest[q] = row[q] > largest[q] ? row[q] : largest[q];
  }
  for (std::int64_t t = 0; t < keys.count; ++t) {
    real* row = scores + t * queries;
    for (int q = 0; q < queries; ++q) {
      row[q] = detail::exponential(scale * (row[q] - largest[q]));
      sum[q] += row[q];
    }
  }
  for (real& each : sum) each = 1 / each;
  for (std::int64_t t = 0; t < keys.count; ++t) {
    real* row = scores + t * queries;
    for (int q = 0; q < queries; ++q) row[q] *= sum[q];
  }
}

void softmax_gradient(int tokens, const real* probabilities, real scale, real* d) {
  real mean[queries] = {};
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int q = 0; q < queries; ++q)
      mean[q] += probabilities[t * queries + q] * d[t * queries + q];
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int q = 0; q < queries; ++q) {
      const std::int64_t i = t * queries + q;
      d[i] = probabilities[i] * (d[i] - mean[q]) * scale;
    }
  }
}

}  // namespace head

template struct AttentionKernels<FullProducts, real>;
template struct AttentionKernels<FullProducts, Bfloat16>;
template struct AttentionKernels<PairProducts, Bfloat16>;

Attention::Attention(const LayerSpec& spec)
    : type_(spec.output_format.type),
      products_(spec.products),
      attributes_(spec.as<op::Attention>()) {
  CAROUSEL_CHECK(spec.input().channels == 3 * spec.output.channels &&
                     spec.output.channels % (attributes_.heads * lanes) == 0,
                 "attention {} of {} heads: {} becomes {}", spec.name, attributes_.heads,
                 to_string(spec.input()), to_string(spec.output));
}

template <class Run>
void Attention::with_kinds(const Run& run) const {
  if (type_ == DataType::full) return run.template operator()<FullProducts, real>();
  if (products_ == ProductOrder::tiles) return run.template operator()<FullProducts, Bfloat16>();
  with_pair_products([&]<class Products>(std::type_identity<Products>) {
    run.template operator()<Products, Bfloat16>();
  });
}

void Attention::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_kinds([&]<class Products, class Stored>() {
    AttentionKernels<Products, Stored>::forward(exec, attributes_, arguments);
  });
}

void Attention::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  with_kinds([&]<class Products, class Stored>() {
    AttentionKernels<Products, Stored>::backward(exec, attributes_, arguments);
  });
}

std::unique_ptr<Layer> attention(const LayerSpec& spec) {
  return std::make_unique<Attention>(spec);
}

}  // namespace carousel::blocked
