// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of attention.hpp, for the sources that compile it for a kind of products.

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "layers/blocked/attention.hpp"
#include "layers/blocked/register_tile.hpp"
#include "layers/blocked/tasks.hpp"
#include "layers/blocked/transpose.hpp"

namespace carousel::blocked {
namespace head {

/// Queries of a tile: as many as a register tile is wide.
inline constexpr int queries = tile_vectors * lanes;

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

/// The keys that a tile of queries meets: the first `count`, of which its query q does not read
/// those from own + q + 1 on.
struct Keys {
  int count;
  int own;
};

/// Where the heads of a layer are.
struct Heads {
  int heads;
  int blocks;  // of a head
  int tokens;
  bool causal;
  real scale;

  Heads(const SampleShape& output, const op::Attention& attributes)
      : Heads(output, attributes, output.channels / attributes.heads) {}

  /// Part `part` of `parts` of the channels: of queries, keys and values.
  template <class Real>
  [[nodiscard]] Rows<Real> rows(Real* data, int parts, int part, int head) const {
    const std::int64_t first = (std::int64_t{head / heads} * parts + part) * heads + head % heads;
    return {data + first * blocks * tokens * lanes, blocks, tokens};
  }
  [[nodiscard]] int tiles() const { return segments(tokens, queries); }
  /// The tile that is the turn of `turn`. The first one meets all keys, so that sums over tiles
  /// begin there.
  [[nodiscard]] Segment tile(int turn) const {
    const int first = (causal ? tiles() - 1 - turn : turn) * queries;
    return {first, std::min(queries, tokens - first)};
  }
  [[nodiscard]] Keys keys_of(const Segment& tile) const {
    if (!causal) return {tokens, tokens};
    return {tile.first + tile.size, tile.first};
  }
  /// Numbers of the tokens by queries matrix.
  [[nodiscard]] std::int64_t matrix() const { return std::int64_t{tokens} * queries; }

 private:
  Heads(const SampleShape& output, const op::Attention& attributes, int size)
      : heads(attributes.heads),
        blocks(size / lanes),
        tokens(static_cast<int>(output.pixels())),
        causal(attributes.causal),
        scale(static_cast<real>(1 / std::sqrt(static_cast<double>(size)))) {}
};

/// Hands out the memory of a task; without any it counts what would be handed out.
class Room {
 public:
  explicit Room(real* memory = nullptr) : memory_(memory) {}

  template <class Number>
  [[nodiscard]] Number* take(std::int64_t numbers) {
    real* const from = memory_ == nullptr ? nullptr : memory_ + taken_;
    taken_ += in_reals<Number>(numbers);
    return reinterpret_cast<Number*>(from);
  }
  [[nodiscard]] std::int64_t taken() const { return taken_; }

 private:
  real* memory_;
  std::int64_t taken_ = 0;
};

/// What products of a kind read of a head, and how.
template <class Products>
struct Operands {
  using Number = StoredBy<Products>;
  static constexpr int together = Products::together;

  /// Sums over channels read tokens where they lie, or here if they are stored otherwise.
  template <class Stored>
  static Rows<Number> room_for(const Rows<const Stored>& rows, Room& room) {
    if constexpr (std::is_same_v<Stored, Number>)
      return {nullptr, rows.blocks, rows.tokens};
    else
      return {room.take<Number>(rows.size()), rows.blocks, rows.tokens};
  }
  template <class Stored>
  static Rows<const Number> read(const Rows<const Stored>& rows, const Rows<Number>& copy) {
    if constexpr (std::is_same_v<Stored, Number>) {
      return rows;
    } else {
      for (std::int64_t i = 0; i < rows.size(); i += lanes)
        store(copy.data + i, load(rows.data + i));
      return {copy.data, rows.blocks, rows.tokens};
    }
  }

  /// Sums over tokens read those that are multiplied together side by side:
  /// [blocks][tokens / together][lanes][together], zeros behind the last.
  struct ByTokens {
    const Number* data;
    std::int64_t plane;
  };
  static int steps(int tokens) { return segments(tokens, together); }
  static std::int64_t plane(int tokens) { return std::int64_t{steps(tokens)} * together * lanes; }
  static Number* room_by_tokens(int blocks, int tokens, Room& room) {
    return together == 1 ? nullptr : room.take<Number>(blocks * plane(tokens));
  }
  static ByTokens by_tokens(const Rows<const Number>& rows, [[maybe_unused]] Number* copy) {
    if constexpr (together == 1) {
      return {rows.data, rows.plane()};
    } else {
      Number* to = copy;
      for (int b = 0; b < rows.blocks; ++b) {
        for (int t = 0; t < rows.tokens; t += 2, to += 2 * lanes) {
          Words first;
          Words second = {};
          widen(first, rows.at(b, t));
          if (t + 1 < rows.tokens) widen(second, rows.at(b, t + 1));
          put_pairs(to, first, second);
        }
      }
      return {copy, plane(rows.tokens)};
    }
  }

  /// to[c / together][q][together] = rows[c][first + q], zero behind the last of the tile.
  static void pack(const Rows<const Number>& rows, const Segment& tile, Number* to) {
    static const Number zeros[lanes] = {};
    for (int b = 0; b < rows.blocks; ++b, to += std::int64_t{queries} * lanes) {
      for (int first = 0; first < queries; first += lanes) {
        const auto at = [&](int l) {
          const int q = first + l;
          return q < tile.size ? rows.at(b, tile.first + q) : zeros;
        };
        turn<Products>(at, to + first * together, std::int64_t{queries} * together);
      }
    }
  }
};

/// A matrix of tokens by queries as products read it: [tokens][queries] for sums over queries and
/// [tokens / together][queries][together] for sums over tokens. Full numbers have it once.
template <class Products>
struct Weights {
  using Number = StoredBy<Products>;
  using Operands = head::Operands<Products>;
  static constexpr int together = Products::together;

  static Number* room(int tokens, Room& room) {
    return together == 1 ? nullptr : room.take<Number>(Operands::steps(tokens) * row);
  }
  static const Number* over_queries(int tokens, const real* matrix, [[maybe_unused]] Number* copy) {
    if constexpr (together == 1) {
      return matrix;
    } else {
      for (std::int64_t i = 0; i < std::int64_t{tokens} * queries; i += lanes)
        store(copy + i, load(matrix + i));
      return copy;
    }
  }
  static const Number* over_tokens(int tokens, const real* matrix, [[maybe_unused]] Number* copy) {
    if constexpr (together == 1) {
      return matrix;
    } else {
      Number* to = copy;
      for (int t = 0; t < tokens; t += 2) {
        for (int q = 0; q < queries; q += lanes, to += 2 * lanes) {
          const real* from = matrix + std::int64_t{t} * queries + q;
          Words first;
          Words second = {};
          put_halves(first, load(from));
          if (t + 1 < tokens) put_halves(second, load(from + queries));
          put_pairs(to, first, second);
        }
      }
      return copy;
    }
  }

 private:
  static constexpr std::int64_t row = std::int64_t{queries} * together;
};

/// to[t][q] = sum_c rows[c][t] packed[c][q] for the first `count` tokens
template <class Products>
void multiply(const Rows<const StoredBy<Products>>& rows, int count,
              const StoredBy<Products>* packed, real* to) {
  constexpr int together = Products::together;
  const int parts = segments(count, tile_rows);
  for (int p = 0; p < parts; ++p) {
    const Segment tokens = segment(count, parts, p);
    with_rows<tile_rows>(tokens.size, [&](auto height) {
      RegisterTile<height, tile_vectors> sums;
      sums.clear();
      for (int b = 0; b < rows.blocks; ++b)
        sums.template add_rows<Products>(lanes / together, rows.at(b, tokens.first), lanes,
                                         packed + std::int64_t{b} * lanes * queries,
                                         together * queries);
      sums.put(to + std::int64_t{tokens.first} * queries, queries, lanes);
    });
  }
}

/// Sums of some tokens, for all blocks of a head, in registers: add(sums, tokens, first block)
/// makes them, which must not be a call.
template <class Stored, class Add>
void sum_tokens(const Segment& all, bool adds, const Rows<Stored>& to, const Add& add) {
  const int parts = segments(all.size, tile_rows);
  for (int p = 0; p < parts; ++p) {
    const Segment part = segment(all.size, parts, p);
    const Segment tokens = {all.first + part.first, part.size};
    const auto run = [&](int b, auto vectors) {
      with_rows<tile_rows>(tokens.size, [&](auto count) {
        Stored* first = to.at(b, tokens.first);
        RegisterTile<count, vectors> sums;
        if (adds)
          sums.fetch(first, lanes, to.plane());
        else
          sums.clear();
        add(sums, tokens, b);
        sums.put(first, lanes, to.plane());
      });
    };
    int b = 0;
    for (; b + tile_vectors <= to.blocks; b += tile_vectors)
      run(b, std::integral_constant<int, tile_vectors>());
    for (; b < to.blocks; ++b) run(b, std::integral_constant<int, 1>());
  }
}

/// to[c][tile.first + q] = or += sum_t weights[t][q] rows[c][t], over the first `count` tokens
template <class Products, class Stored>
void average(const StoredBy<Products>* weights, const typename Operands<Products>::ByTokens& rows,
             int count, const Segment& tile, bool adds, const Rows<Stored>& to) {
  constexpr int together = Products::together;
  const auto add = [&](auto& sums, const Segment& tokens, int b) __attribute__((always_inline)) {
    sums.template add_columns<Products>(
        Operands<Products>::steps(count),
        weights + std::int64_t{tokens.first - tile.first} * together, together * queries,
        rows.data + b * rows.plane, together * lanes, rows.plane);
  };
  sum_tokens(tile, adds, to, add);
}

/// to[c][t] = or += sum_q weights[t][q] rows[c][tile.first + q] for the first `count` tokens
template <class Products>
void spread(const StoredBy<Products>* weights, const typename Operands<Products>::ByTokens& rows,
            int count, const Segment& tile, bool adds, const Rows<real>& to) {
  constexpr int together = Products::together;
  const auto add = [&](auto& sums, const Segment& tokens, int b) __attribute__((always_inline)) {
    sums.template add_rows<Products>(Operands<Products>::steps(tile.size),
                                     weights + std::int64_t{tokens.first} * queries, queries,
                                     rows.data + b * rows.plane + std::int64_t{tile.first} * lanes,
                                     together * lanes, rows.plane);
  };
  sum_tokens({0, count}, adds, to, add);
}

/// Products of queries and keys, times `scale`, become probabilities of each query over the keys.
void softmax(const Keys& keys, real scale, real* scores);
/// d of probabilities becomes d of products of queries and keys.
void softmax_gradient(int tokens, const real* probabilities, real scale, real* d);

/// Sums over all tiles, in full: where they belong, or in memory of the task.
template <class Stored>
Rows<real> sums_of(const Rows<Stored>& to, Room& room) {
  if constexpr (std::is_same_v<Stored, real>)
    return to;
  else
    return {room.take<real>(to.size()), to.blocks, to.tokens};
}
template <class Stored>
void deliver(const Rows<real>& from, const Rows<Stored>& to, bool adds) {
  if constexpr (!std::is_same_v<Stored, real>) {
    for (std::int64_t i = 0; i < to.size(); i += lanes)
      store(to.data + i, adds ? load(to.data + i) + load(from.data + i) : load(from.data + i));
  }
}

}  // namespace head

template <class Products, class Stored>
void AttentionKernels<Products, Stored>::forward(const ExecutionSpace& exec,
                                                 const op::Attention& attributes,
                                                 const ForwardArguments& arguments) {
  static const std::string label = "carousel::layers::attention_forward";
  using Number = StoredBy<Products>;
  using Operands = head::Operands<Products>;
  using Weights = head::Weights<Products>;
  const head::Heads heads(arguments.output.shape, attributes);
  const auto* x = reinterpret_cast<const Stored*>(arguments.input.data);
  auto* y = reinterpret_cast<Stored*>(arguments.output.data);
  const auto work = [=](int head, head::Room room) {
    const auto from = [&](int part) { return heads.rows(x, 3, part, head); };
    const auto to = heads.rows(y, 1, 0, head);
    Number* packed = room.take<Number>(std::int64_t{heads.blocks} * lanes * head::queries);
    real* scores = room.take<real>(heads.matrix());
    Number* weights = Weights::room(heads.tokens, room);
    Number* pairs = Operands::room_by_tokens(heads.blocks, heads.tokens, room);
    const auto q_room = Operands::room_for(from(0), room);
    const auto k_room = Operands::room_for(from(1), room);
    const auto v_room = Operands::room_for(from(2), room);
    if (packed == nullptr) return room.taken();
    const ZeroSubnormals zero(Products::together > 1);
    const auto q = Operands::read(from(0), q_room);
    const auto k = Operands::read(from(1), k_room);
    const auto v = Operands::by_tokens(Operands::read(from(2), v_room), pairs);
    for (int turn = 0; turn < heads.tiles(); ++turn) {
      const Segment tile = heads.tile(turn);
      const head::Keys keys = heads.keys_of(tile);
      Operands::pack(q, tile, packed);
      head::multiply<Products>(k, keys.count, packed, scores);
      head::softmax(keys, heads.scale, scores);
      head::average<Products>(Weights::over_tokens(keys.count, scores, weights), v, keys.count,
                              tile, false, to);
    }
    return room.taken();
  };
  for_each_task(exec, label, arguments.input.n * heads.heads, work(0, head::Room()),
                [=](int head, real* scratch) { work(head, head::Room(scratch)); });
}

template <class Products, class Stored>
void AttentionKernels<Products, Stored>::backward(const ExecutionSpace& exec,
                                                  const op::Attention& attributes,
                                                  const BackwardArguments& arguments) {
  static const std::string label = "carousel::layers::attention_backward";
  using Number = StoredBy<Products>;
  using Operands = head::Operands<Products>;
  using Weights = head::Weights<Products>;
  if (arguments.d_input.data == nullptr) return;
  const head::Heads heads(arguments.d_output.shape, attributes);
  const auto* x = reinterpret_cast<const Stored*>(arguments.input.data);
  const auto* d_y = reinterpret_cast<const Stored*>(arguments.d_output.data);
  auto* d_x = reinterpret_cast<Stored*>(arguments.d_input.data);
  const bool adds = arguments.adds_input;
  const bool adds_at_once = adds && std::is_same_v<Stored, real>;
  const auto work = [=](int head, head::Room room) {
    const auto from = [&](int part) { return heads.rows(x, 3, part, head); };
    const auto to = [&](int part) { return heads.rows(d_x, 3, part, head); };
    const auto from_output = heads.rows(d_y, 1, 0, head);
    Number* packed = room.take<Number>(std::int64_t{heads.blocks} * lanes * head::queries);
    real* probabilities = room.take<real>(heads.matrix());
    real* d = room.take<real>(heads.matrix());
    Number* weights = Weights::room(heads.tokens, room);
    const auto pairs = [&] { return Operands::room_by_tokens(heads.blocks, heads.tokens, room); };
    Number* q_pairs = pairs();
    Number* k_pairs = pairs();
    Number* d_pairs = pairs();
    const auto q_room = Operands::room_for(from(0), room);
    const auto k_room = Operands::room_for(from(1), room);
    const auto v_room = Operands::room_for(from(2), room);
    const auto d_room = Operands::room_for(from_output, room);
    const auto d_k = head::sums_of(to(1), room);
    const auto d_v = head::sums_of(to(2), room);
    if (packed == nullptr) return room.taken();
    const ZeroSubnormals zero(Products::together > 1);
    const auto q = Operands::read(from(0), q_room);
    const auto k = Operands::read(from(1), k_room);
    const auto v = Operands::read(from(2), v_room);
    const auto d_output = Operands::read(from_output, d_room);
    const auto q_tokens = Operands::by_tokens(q, q_pairs);
    const auto k_tokens = Operands::by_tokens(k, k_pairs);
    const auto d_tokens = Operands::by_tokens(d_output, d_pairs);
    for (int turn = 0; turn < heads.tiles(); ++turn) {
      const Segment tile = heads.tile(turn);
      const head::Keys keys = heads.keys_of(tile);
      const int count = keys.count;
      const bool adds_all = adds_at_once || turn > 0;
      Operands::pack(q, tile, packed);
      head::multiply<Products>(k, count, packed, probabilities);
      head::softmax(keys, heads.scale, probabilities);
      Operands::pack(d_output, tile, packed);
      head::multiply<Products>(v, count, packed, d);
      head::spread<Products>(Weights::over_queries(count, probabilities, weights), d_tokens, count,
                             tile, adds_all, d_v);
      head::softmax_gradient(count, probabilities, heads.scale, d);
      head::average<Products>(Weights::over_tokens(count, d, weights), k_tokens, count, tile, adds,
                              to(0));
      head::spread<Products>(Weights::over_queries(count, d, weights), q_tokens, count, tile,
                             adds_all, d_k);
    }
    head::deliver(d_k, to(1), adds);
    head::deliver(d_v, to(2), adds);
    return room.taken();
  };
  for_each_task(exec, label, arguments.d_output.n * heads.heads, work(0, head::Room()),
                [=](int head, real* scratch) { work(head, head::Room(scratch)); });
}

}  // namespace carousel::blocked
