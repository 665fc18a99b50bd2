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
  [[nodiscard]] std::int64_t size() const { return blocks * plane(); }
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
  /// Numbers of a head's queries, of the tokens by queries matrix, and of packed queries.
  [[nodiscard]] std::int64_t size() const { return std::int64_t{blocks} * tokens * lanes; }
  [[nodiscard]] std::int64_t matrix() const { return std::int64_t{tokens} * queries; }
  [[nodiscard]] std::int64_t packed() const { return std::int64_t{blocks} * lanes * queries; }

 private:
  Heads(const SampleShape& output, int count, int size)
      : heads(count),
        blocks(size / lanes),
        tokens(output.height * output.width),
        scale(static_cast<real>(1 / std::sqrt(static_cast<double>(size)))) {}
};

/// The channels of a head as full numbers, where they are stored otherwise in scratch memory from
/// `next` on, which it takes.
template <class Stored>
Rows<real> room(const Rows<Stored>& rows, real*& next) {
  if constexpr (std::is_same_v<Stored, real>) {
    return rows;
  } else {
    real* const data = next;
    next += rows.size();
    return {data, rows.blocks, rows.tokens};
  }
}
template <class Stored>
Rows<const real> copied(const Rows<const Stored>& rows, real*& next) {
  if constexpr (std::is_same_v<Stored, real>) {
    return rows;
  } else {
    const Rows<real> copy = room(Rows<Stored>{nullptr, rows.blocks, rows.tokens}, next);
    for (std::int64_t i = 0; i < rows.size(); i += lanes) store(copy.data + i, load(rows.data + i));
    return {copy.data, rows.blocks, rows.tokens};
  }
}
/// Numbers that `count` of them take.
template <class Stored>
std::int64_t copies(std::int64_t count, std::int64_t size) {
  return std::is_same_v<Stored, real> ? 0 : count * size;
}
/// What room() is left with, to where it belongs.
template <class Stored>
void deliver(const Rows<real>& from, const Rows<Stored>& to, bool adds) {
  if constexpr (!std::is_same_v<Stored, real>) {
    for (std::int64_t i = 0; i < to.size(); i += lanes)
      store(to.data + i, adds ? load(to.data + i) + load(from.data + i) : load(from.data + i));
  }
}

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

Attention::Attention(const LayerSpec& spec)
    : type_(spec.output_format.type), heads_(spec.as<op::Attention>().heads) {
  CAROUSEL_CHECK(spec.input().channels == 3 * spec.output.channels &&
                     spec.output.channels % (heads_ * lanes) == 0,
                 "attention {} of {} heads: {} becomes {}", spec.name, heads_,
                 to_string(spec.input()), to_string(spec.output));
}

template <class Stored>
void Attention::average_values(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::attention_forward";
  const Heads heads(arguments.output.shape, heads_);
  const auto* x = reinterpret_cast<const Stored*>(arguments.input.data);
  auto* y = reinterpret_cast<Stored*>(arguments.output.data);
  const std::int64_t numbers = heads.packed() + heads.matrix() + copies<Stored>(4, heads.size());
  for_each_task(exec, label, arguments.input.n * heads_, numbers, [=](int head, real* scratch) {
    real* scores = scratch + heads.packed();
    real* next = scores + heads.matrix();
    const Rows<const real> q = copied(heads.rows(x, 3, 0, head), next);
    const Rows<const real> k = copied(heads.rows(x, 3, 1, head), next);
    const Rows<const real> v = copied(heads.rows(x, 3, 2, head), next);
    const Rows<Stored> output = heads.rows(y, 1, 0, head);
    const Rows<real> to = room(output, next);
    for (int number = 0; number < segments(heads.tokens, queries); ++number) {
      const Segment tile = tile_of(heads.tokens, number);
      pack(q, tile, heads.scale, scratch);
      multiply(k, scratch, scores);
      softmax(heads.tokens, scores);
      average(scores, v, tile, false, to);
    }
    deliver(to, output, false);
  });
}

template <class Stored>
void Attention::differentiate(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::attention_backward";
  if (arguments.d_input.data == nullptr) return;
  const Heads heads(arguments.d_output.shape, heads_);
  const auto* x = reinterpret_cast<const Stored*>(arguments.input.data);
  const auto* d_y = reinterpret_cast<const Stored*>(arguments.d_output.data);
  auto* d_x = reinterpret_cast<Stored*>(arguments.d_input.data);
  const bool adds = arguments.adds_input;
  const bool adds_at_once = adds && std::is_same_v<Stored, real>;
  const std::int64_t numbers =
      heads.packed() + 2 * heads.matrix() + copies<Stored>(7, heads.size());
  for_each_task(exec, label, arguments.input.n * heads_, numbers, [=](int head, real* scratch) {
    real* probabilities = scratch + heads.packed();
    real* d = probabilities + heads.matrix();
    real* next = d + heads.matrix();
    const Rows<const real> q = copied(heads.rows(x, 3, 0, head), next);
    const Rows<const real> k = copied(heads.rows(x, 3, 1, head), next);
    const Rows<const real> v = copied(heads.rows(x, 3, 2, head), next);
    const Rows<const real> d_output = copied(heads.rows(d_y, 1, 0, head), next);
    const Rows<real> d_q = room(heads.rows(d_x, 3, 0, head), next);
    const Rows<real> d_k = room(heads.rows(d_x, 3, 1, head), next);
    const Rows<real> d_v = room(heads.rows(d_x, 3, 2, head), next);
    for (int number = 0; number < segments(heads.tokens, queries); ++number) {
      const Segment tile = tile_of(heads.tokens, number);
      const bool adds_all = adds_at_once || number > 0;
      pack(q, tile, heads.scale, scratch);
      multiply(k, scratch, probabilities);
      softmax(heads.tokens, probabilities);
      pack(d_output, tile, 1, scratch);
      multiply(v, scratch, d);
      spread(probabilities, d_output, tile, adds_all, d_v);
      softmax_gradient(heads.tokens, probabilities, heads.scale, d);
      average(d, k, tile, adds_at_once, d_q);
      spread(d, q, tile, adds_all, d_k);
    }
    deliver(d_q, heads.rows(d_x, 3, 0, head), adds);
    deliver(d_k, heads.rows(d_x, 3, 1, head), adds);
    deliver(d_v, heads.rows(d_x, 3, 2, head), adds);
  });
}

void Attention::forward(const ExecutionSpace& exec, const ForwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() { average_values<Stored>(exec, arguments); });
}

void Attention::backward(const ExecutionSpace& exec, const BackwardArguments& arguments) {
  with_stored(type_, [&]<class Stored>() { differentiate<Stored>(exec, arguments); });
}

std::unique_ptr<Layer> attention(const LayerSpec& spec) {
  return std::make_unique<Attention>(spec);
}

}  // namespace carousel::blocked
