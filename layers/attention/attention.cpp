// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/attention/attention.hpp"

#include "core/base/check.hpp"
#include "core/base/range.hpp"

namespace carousel {
namespace {

/// The channels of one head in one sample.
template <class Real>
struct Rows {
  Real* data;
  int channel_stride;
  int token_stride;

  [[nodiscard]] KOKKOS_FUNCTION Real& at(int channel, int token) const {
    return data[std::int64_t{channel} * channel_stride + std::int64_t{token} * token_stride];
  }
};

/// Where heads are, and the product of two of their columns.
struct Heads {
  int heads;
  int size;  // channels of a head
  int tokens;
  bool causal;
  bool features_last;  // side by side, token by token
  real scale;          // 1 / sqrt(size)

  Heads(const SampleShape& output, const op::Attention& attributes, bool is_last)
      : heads(attributes.heads),
        size(output.channels / attributes.heads),
        tokens(static_cast<int>(output.pixels())),
        causal(attributes.causal),
        features_last(is_last),
        scale(static_cast<real>(1 / Kokkos::sqrt(static_cast<double>(size)))) {}

  /// Part `part` of `parts` of the channels: of queries, keys and values.
  template <class Real>
  [[nodiscard]] KOKKOS_FUNCTION Rows<Real> rows(Real* data, int parts, int part, int head) const {
    const int features = parts * heads * size;
    const int first = (part * heads + head % heads) * size;
    Real* const sample = data + std::int64_t{head / heads} * tokens * features;
    if (features_last) return {sample + first, 1, features};
    return {sample + std::int64_t{first} * tokens, tokens, 1};
  }
  /// Query i reads the keys before this one.
  [[nodiscard]] KOKKOS_FUNCTION int end_of_keys(int i) const { return causal ? i + 1 : tokens; }
  /// Key j is read by this query and all behind it.
  [[nodiscard]] KOKKOS_FUNCTION int first_query(int j) const { return causal ? j : 0; }
  [[nodiscard]] KOKKOS_FUNCTION real product(const Rows<const real>& a, int i,
                                             const Rows<const real>& b, int j) const {
    real sum = 0;
    for (int c = 0; c < size; ++c) sum += a.at(c, i) * b.at(c, j);
    return sum;
  }
};

/// The logarithm of sum_j exp(q_i k_j scale).
KOKKOS_FUNCTION real logarithm_of_sum(const Heads& heads, const Rows<const real>& q,
                                      const Rows<const real>& k, int i) {
  const int keys = heads.end_of_keys(i);
  real largest = -Kokkos::Experimental::infinity_v<real>;
  for (int j = 0; j < keys; ++j)
    largest = Kokkos::fmax(largest, heads.product(q, i, k, j) * heads.scale);
  double sum = 0;
  for (int j = 0; j < keys; ++j)
    sum += Kokkos::exp(heads.product(q, i, k, j) * heads.scale - largest);
  return largest + static_cast<real>(Kokkos::log(sum));
}

/// A token of a head, and what backward reads of that head.
struct HeadRows {
  int head;
  int token;
  Rows<const real> q;
  Rows<const real> k;
  Rows<const real> v;
  Rows<const real> d;
};

struct Gradient {
  Heads heads;
  std::int64_t queries;  // of all heads, and as many keys
  const real* x;
  const real* d_y;
  real* d_x;
  bool adds;
  real* log_sums;  // [queries]
  real* means;     // [queries]

  [[nodiscard]] KOKKOS_FUNCTION HeadRows at(std::int64_t number) const {
    const int head = static_cast<int>(number / heads.tokens);
    return {head,
            static_cast<int>(number % heads.tokens),
            heads.rows(x, 3, 0, head),
            heads.rows(x, 3, 1, head),
            heads.rows(x, 3, 2, head),
            heads.rows(d_y, 1, 0, head)};
  }
};

/// Leaves the logarithm of its sum and the mean gradient of every query.
void query_gradients(const ExecutionSpace& exec, const Gradient& gradient) {
  static const std::string label = "carousel::layers::attention_backward_query";
  Kokkos::parallel_for(
      label, pieces(exec, gradient.queries), KOKKOS_LAMBDA(std::int64_t number) {
        const Heads& heads = gradient.heads;
        const HeadRows at = gradient.at(number);
        const int i = at.token;
        const int keys = heads.end_of_keys(i);
        const auto d_q = heads.rows(gradient.d_x, 3, 0, at.head);
        const real log_sum = logarithm_of_sum(heads, at.q, at.k, i);
        const auto probability = [&](int j) {
          return Kokkos::exp(heads.product(at.q, i, at.k, j) * heads.scale - log_sum);
        };
        real mean = 0;
        for (int j = 0; j < keys; ++j) mean += probability(j) * heads.product(at.d, i, at.v, j);
        gradient.log_sums[number] = log_sum;
        gradient.means[number] = mean;
        for (int c = 0; c < heads.size && !gradient.adds; ++c) d_q.at(c, i) = 0;
        for (int j = 0; j < keys; ++j) {
          const real d_score =
              probability(j) * (heads.product(at.d, i, at.v, j) - mean) * heads.scale;
          for (int c = 0; c < heads.size; ++c) d_q.at(c, i) += d_score * at.k.at(c, j);
        }
      });
}

/// After query_gradients(): of keys and values.
void key_gradients(const ExecutionSpace& exec, const Gradient& gradient) {
  static const std::string label = "carousel::layers::attention_backward_key";
  Kokkos::parallel_for(
      label, pieces(exec, gradient.queries), KOKKOS_LAMBDA(std::int64_t number) {
        const Heads& heads = gradient.heads;
        const HeadRows at = gradient.at(number);
        const int j = at.token;
        const auto d_k = heads.rows(gradient.d_x, 3, 1, at.head);
        const auto d_v = heads.rows(gradient.d_x, 3, 2, at.head);
        for (int c = 0; c < heads.size && !gradient.adds; ++c) d_k.at(c, j) = d_v.at(c, j) = 0;
        for (int i = heads.first_query(j); i < heads.tokens; ++i) {
          const std::int64_t query = std::int64_t{at.head} * heads.tokens + i;
          const real p =
              Kokkos::exp(heads.product(at.q, i, at.k, j) * heads.scale - gradient.log_sums[query]);
          const real d_score =
              p * (heads.product(at.d, i, at.v, j) - gradient.means[query]) * heads.scale;
          for (int c = 0; c < heads.size; ++c) {
            d_k.at(c, j) += d_score * at.q.at(c, i);
            d_v.at(c, j) += p * at.d.at(c, i);
          }
        }
      });
}

}  // namespace

Attention::Attention(const LayerSpec& spec, const Engine& engine)
    : attributes_(spec.as<op::Attention>()),
      features_last_(spec.output_format.block > 1),
      scores_(reinterpret_cast<real*>(engine.workspace.data())) {
  CAROUSEL_CHECK(spec.input().channels == 3 * spec.output.channels &&
                     spec.output.channels % attributes_.heads == 0,
                 "attention {} of {} heads: {} becomes {}", spec.name, attributes_.heads,
                 to_string(spec.input()), to_string(spec.output));
}

void Attention::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::attention_forward";
  const Heads heads(arguments.output.shape, attributes_, features_last_);
  const real* x = arguments.input.data;
  real* y = arguments.output.data;
  const std::int64_t queries = std::int64_t{arguments.input.n} * heads.heads * heads.tokens;
  Kokkos::parallel_for(
      label, pieces(exec, queries), KOKKOS_LAMBDA(std::int64_t number) {
        const int head = static_cast<int>(number / heads.tokens);
        const int i = static_cast<int>(number % heads.tokens);
        const auto q = heads.rows(x, 3, 0, head);
        const auto k = heads.rows(x, 3, 1, head);
        const auto v = heads.rows(x, 3, 2, head);
        const auto to = heads.rows(y, 1, 0, head);
        const real log_sum = logarithm_of_sum(heads, q, k, i);
        for (int c = 0; c < heads.size; ++c) to.at(c, i) = 0;
        for (int j = 0; j < heads.end_of_keys(i); ++j) {
          const real p = Kokkos::exp(heads.product(q, i, k, j) * heads.scale - log_sum);
          for (int c = 0; c < heads.size; ++c) to.at(c, i) += p * v.at(c, j);
        }
      });
}

/// With dp_ij = dy_i v_j and d_i = sum_j p_ij dp_ij: the gradient of a score is p_ij (dp_ij - d_i).
void Attention::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  if (arguments.d_input.data == nullptr) return;
  const Heads heads(arguments.d_output.shape, attributes_, features_last_);
  const std::int64_t size = std::int64_t{arguments.input.n} * heads.heads * heads.tokens;
  const Gradient gradient{heads,
                          size,
                          arguments.input.data,
                          arguments.d_output.data,
                          arguments.d_input.data,
                          arguments.adds_input,
                          scores_,
                          scores_ + size};
  query_gradients(exec, gradient);
  key_gradients(exec, gradient);
}

}  // namespace carousel
