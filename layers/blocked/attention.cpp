// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "layers/blocked/attention.hpp"

#include <cmath>

#include "core/base/check.hpp"
#include "layers/attention/op.hpp"
#include "layers/blocked/blocked.hpp"
#include "layers/blocked/register_tile.hpp"
#include "layers/blocked/tasks.hpp"
#include "layers/exponential.hpp"

namespace carousel::blocked {
namespace {

/// Queries of a tile: as many as a register tile is wide.
constexpr int queries = tile_vectors * lanes;

/// The channels of one head of one sample: [blocks][tokens][lanes].
template <class Real>
struct Rows {
  Real* data;
  int blocks;
  int tokens;

  [[nodiscard]] std::int64_t plane() const { return std::int64_t{tokens} * lanes; }
  [[nodiscard]] Real* at(int block, int token) const {
    return data + block * plane() + std::int64_t{token} * lanes;
  }
};

/// Where the heads of a layer are.
struct Heads {
  int heads;
  int blocks;  // of a head
  int tokens;
  real scale;

  Heads(const SampleShape& output, int count) : Heads(output, count, output.channels / count) {}

  /// Part `part` of `parts` of the channels: of queries, keys and values.
  template <class Real>
  [[nodiscard]] Rows<Real> rows(Real* data, int parts, int part, int head) const {
    const std::int64_t first = (std::int64_t{head / heads} * parts + part) * heads + head % heads;
    return {data + first * blocks * tokens * lanes, blocks, tokens};
  }
  /// Numbers of the tokens by queries matrix, and of packed queries.
  [[nodiscard]] std::int64_t matrix() const { return std::int64_t{tokens} * queries; }
  [[nodiscard]] std::int64_t packed() const { return std::int64_t{blocks} * lanes * queries; }

 private:
  Heads(const SampleShape& output, int count, int size)
      : heads(count),
        blocks(size / lanes),
        tokens(output.height * output.width),
        scale(static_cast<real>(1 / std::sqrt(static_cast<double>(size)))) {}
};

/// to[c][q] = scale * rows[c][first + q], zero behind the last of `count`.
void pack(const Rows<const real>& rows, const Segment& tile, real scale, real* to) {
  for (int b = 0; b < rows.blocks; ++b) {
    for (int q = 0; q < queries; ++q) {
      const bool exists = q < tile.size;
      const real* from = rows.at(b, tile.first + (exists ? q : 0));
      const real factor = exists ? scale : 0;
      for (int l = 0; l < lanes; ++l) to[(b * lanes + l) * queries + q] = factor * from[l];
    }
  }
}

/// to[t][q] = sum_c rows[c][t] packed[c][q]
void multiply(const Rows<const real>& rows, const real* packed, real* to) {
  const int parts = segments(rows.tokens, tile_rows);
  for (int p = 0; p < parts; ++p) {
    const Segment tokens = segment(rows.tokens, parts, p);
    with_rows<tile_rows>(tokens.size, [&](auto count) {
      RegisterTile<count, tile_vectors> sums;
      sums.clear();
      for (int b = 0; b < rows.blocks; ++b)
        sums.add_rows(lanes, rows.at(b, tokens.first), lanes,
                      packed + std::int64_t{b} * lanes * queries, queries);
      sums.put(to + std::int64_t{tokens.first} * queries, queries, lanes);
    });
  }
}

/// Calls run(first block, registers) so that all blocks of a head are met.
template <class Run>
void for_each_blocks(int blocks, const Run& run) {
  int b = 0;
  for (; b + tile_vectors <= blocks; b += tile_vectors)
    run(b, std::integral_constant<int, tile_vectors>());
  for (; b < blocks; ++b) run(b, std::integral_constant<int, 1>());
}

/// to[c][tile.first + q] = or += sum_t weights[t][q] rows[c][t]
void average(const real* weights, const Rows<const real>& rows, const Segment& tile, bool adds,
             const Rows<real>& to) {
  const int parts = segments(tile.size, tile_rows);
  for (int p = 0; p < parts; ++p) {
    const Segment part = segment(tile.size, parts, p);
    for_each_blocks(rows.blocks, [&](int b, auto vectors) {
      real* first = to.at(b, tile.first + part.first);
      with_rows<tile_rows>(part.size, [&](auto count) {
        RegisterTile<count, vectors> sums;
        if (adds)
          sums.fetch(first, lanes, to.plane());
        else
          sums.clear();
        sums.add_columns(rows.tokens, weights + part.first, queries, rows.at(b, 0), lanes,
                         rows.plane());
        sums.put(first, lanes, to.plane());
      });
    });
  }
}

/// to[c][t] = or += sum_q weights[t][q] rows[c][tile.first + q]
void spread(const real* weights, const Rows<const real>& rows, const Segment& tile, bool adds,
            const Rows<real>& to) {
  const int parts = segments(rows.tokens, tile_rows);
  for (int p = 0; p < parts; ++p) {
    const Segment tokens = segment(rows.tokens, parts, p);
    for_each_blocks(rows.blocks, [&](int b, auto vectors) {
      real* first = to.at(b, tokens.first);
      with_rows<tile_rows>(tokens.size, [&](auto count) {
        RegisterTile<count, vectors> sums;
        if (adds)
          sums.fetch(first, lanes, to.plane());
        else
          sums.clear();
        sums.add_rows(tile.size, weights + std::int64_t{tokens.first} * queries, queries,
                      rows.at(b, tile.first), lanes, rows.plane());
        sums.put(first, lanes, to.plane());
      });
    });
  }
}

/// Scores become probabilities, of each query over the tokens.
void softmax(int tokens, real* scores) {
  real largest[queries];
  real sum[queries] = {};
  for (int q = 0; q < queries; ++q) largest[q] = scores[q];
  for (std::int64_t t = 1; t < tokens; ++t) {
    const real* row = scores + t * queries;
    for (int q = 0; q < queries; ++q) largest[q] = row[q] > largest[q] ? row[q] : largest[q];
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    real* row = scores + t * queries;
    for (int q = 0; q < queries; ++q) {
      row[q] = detail::exponential(row[q] - largest[q]);
      sum[q] += row[q];
    }
  }
  for (real& each : sum) each = 1 / each;
  for (std::int64_t t = 0; t < tokens; ++t) {
    real* row = scores + t * queries;
    for (int q = 0; q < queries; ++q) row[q] *= sum[q];
  }
}

/// d of probabilities becomes d of products of queries and keys.
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

[[nodiscard]] Segment tile_of(int tokens, int number) {
  const int first = number * queries;
  return {first, std::min(queries, tokens - first)};
}

}  // namespace

Attention::Attention(const LayerSpec& spec) : heads_(spec.as<op::Attention>().heads) {
  CAROUSEL_CHECK(spec.input().channels == 3 * spec.output.channels &&
                     spec.output.channels % (heads_ * lanes) == 0,
                 "attention {} of {} heads: {} becomes {}", spec.name, heads_,
                 to_string(spec.input()), to_string(spec.output));
}

void Attention::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::attention_forward";
  const Heads heads(arguments.output.shape, heads_);
  const real* x = arguments.input.data;
  real* y = arguments.output.data;
  for_each_task(exec, label, arguments.input.n * heads_, heads.packed() + heads.matrix(),
                [=](int head, real* scratch) {
                  real* scores = scratch + heads.packed();
                  const auto to = heads.rows(y, 1, 0, head);
                  for (int number = 0; number < segments(heads.tokens, queries); ++number) {
                    const Segment tile = tile_of(heads.tokens, number);
                    pack(heads.rows(x, 3, 0, head), tile, heads.scale, scratch);
                    multiply(heads.rows(x, 3, 1, head), scratch, scores);
                    softmax(heads.tokens, scores);
                    average(scores, heads.rows(x, 3, 2, head), tile, false, to);
                  }
                });
}

void Attention::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::attention_backward";
  if (arguments.d_input.data == nullptr) return;
  const Heads heads(arguments.d_output.shape, heads_);
  const real* x = arguments.input.data;
  const real* d_y = arguments.d_output.data;
  real* d_x = arguments.d_input.data;
  const bool adds = arguments.adds_input;
  for_each_task(exec, label, arguments.input.n * heads_, heads.packed() + 2 * heads.matrix(),
                [=](int head, real* scratch) {
                  real* probabilities = scratch + heads.packed();
                  real* d = probabilities + heads.matrix();
                  const auto q = heads.rows(x, 3, 0, head);
                  const auto k = heads.rows(x, 3, 1, head);
                  const auto v = heads.rows(x, 3, 2, head);
                  const auto d_output = heads.rows(d_y, 1, 0, head);
                  for (int number = 0; number < segments(heads.tokens, queries); ++number) {
                    const Segment tile = tile_of(heads.tokens, number);
                    const bool adds_all = adds || number > 0;
                    pack(q, tile, heads.scale, scratch);
                    multiply(k, scratch, probabilities);
                    softmax(heads.tokens, probabilities);
                    pack(d_output, tile, 1, scratch);
                    multiply(v, scratch, d);
                    spread(probabilities, d_output, tile, adds_all, heads.rows(d_x, 3, 2, head));
                    softmax_gradient(heads.tokens, probabilities, heads.scale, d);
                    average(d, k, tile, adds, heads.rows(d_x, 3, 0, head));
                    spread(d, q, tile, adds_all, heads.rows(d_x, 3, 1, head));
                  }
                });
}

std::unique_ptr<Layer> attention(const LayerSpec& spec) {
  return std::make_unique<Attention>(spec);
}

}  // namespace carousel::blocked
