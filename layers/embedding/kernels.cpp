// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0

#include "core/base/check.hpp"
#include "core/base/range.hpp"
#include "core/engine/layer.hpp"
#include "layers/tokens.hpp"

namespace carousel::kernels {
namespace {

using carousel::detail::TokenRows;

/// The row of a table that a token names; -1 where it names none.
KOKKOS_FUNCTION int row_of(real token, int rows) {
  if (!(token >= 0 && token < static_cast<real>(rows))) return -1;
  const int row = static_cast<int>(token);
  return static_cast<real>(row) == token ? row : -1;
}

struct Table {
  TokenRows tokens;
  std::int64_t count;  // tokens of all samples
  int rows;
  const real* numbers;  // [count], which rows they name
};

/// Tokens that name no row are no numbers, so that the loss is none either.
template <class Stored, class Weight>
void look_up(const ExecutionSpace& exec, const Table& table, const Weight* weights, Stored* y) {
  static const std::string label = "carousel::layers::embedding_forward";
  const int pieces = table.tokens.pieces();
  Kokkos::parallel_for(
      label, range(exec, table.count * pieces), KOKKOS_LAMBDA(std::int64_t i) {
        const int piece = static_cast<int>(i % pieces);
        const int together = table.tokens.together();
        const int row = row_of(table.numbers[i / pieces], table.rows);
        Stored* const to = y + table.tokens.piece_offset(i / pieces, piece);
        const Weight* const from =
            weights + std::int64_t{row} * table.tokens.channels() + piece * together;
        for (int l = 0; l < together; ++l)
          put(to[l], row < 0 ? Kokkos::Experimental::quiet_NaN_v<real> : full(from[l]));
      });
}

/// Tokens of a micro-batch that are the same, as a list for each.
struct Occurrences {
  int* next;   // [count] the next one; count: there is none
  int* first;  // [count] whether there is none before
};

void find_occurrences(const ExecutionSpace& exec, const Table& table, const Occurrences& found) {
  static const std::string label = "carousel::layers::embedding_backward_list";
  const real* const numbers = table.numbers;
  const auto count = static_cast<int>(table.count);
  Kokkos::parallel_for(
      label, range(exec, count), KOKKOS_LAMBDA(std::int64_t i) {
        const real token = numbers[i];
        auto next = static_cast<int>(i) + 1;
        while (next < count && numbers[next] != token) ++next;
        auto before = static_cast<int>(i) - 1;
        while (before >= 0 && numbers[before] != token) --before;
        found.next[i] = next;
        found.first[i] = before < 0 ? 1 : 0;
      });
}

/// Whose tokens have a gradient in the order in which they come, whatever the threads.
template <class Stored>
void add_up(const ExecutionSpace& exec, const Table& table, const Occurrences& found,
            const Stored* d_y, real* d_weights) {
  static const std::string zero_label = "carousel::layers::embedding_backward_zeros";
  static const std::string label = "carousel::layers::embedding_backward";
  const int channels = table.tokens.channels();
  Kokkos::parallel_for(
      zero_label, range(exec, std::int64_t{table.rows} * channels),
      KOKKOS_LAMBDA(std::int64_t i) { d_weights[i] = 0; });
  const int pieces = table.tokens.pieces();
  Kokkos::parallel_for(
      label, range(exec, table.count * pieces), KOKKOS_LAMBDA(std::int64_t i) {
        const int piece = static_cast<int>(i % pieces);
        const int together = table.tokens.together();
        const int row = row_of(table.numbers[i / pieces], table.rows);
        if (row < 0 || found.first[i / pieces] == 0) return;
        real* const sums = d_weights + std::int64_t{row} * channels + piece * together;
        for (std::int64_t at = i / pieces; at < table.count; at = found.next[at]) {
          const Stored* const from = d_y + table.tokens.piece_offset(at, piece);
          for (int l = 0; l < together; ++l) sums[l] += full(from[l]);
        }
      });
}

/// Parameters: weight [rows, c].
class Embedding final : public Layer {
 public:
  Embedding(const LayerSpec& spec, const Engine& engine)
      : rows_(static_cast<int>(spec.parameters.front().shape.front())),
        learns_(!spec.is_frozen()),
        format_(spec.output_format),
        weight_(spec.parameters.front().type),
        lists_(reinterpret_cast<int*>(engine.workspace.data())) {
    CAROUSEL_CHECK(spec.parameter_size() == std::int64_t{rows_} * spec.output.channels,
                   "{} has {} parameters", spec.label(), spec.parameter_size());
  }

  void forward(const ExecutionSpace& exec, const ForwardArguments& arguments) override {
    const Table table = table_of(arguments.input, arguments.output.shape);
    with_stored(format_.type, [&]<class Stored>() {
      with_stored(weight_, [&]<class Weight>() {
        look_up(exec, table, reinterpret_cast<const Weight*>(arguments.parameters),
                reinterpret_cast<Stored*>(arguments.output.data));
      });
    });
  }

  void backward(const ExecutionSpace& exec, const BackwardArguments& arguments) override {
    if (!learns_) return;
    const Table table = table_of(arguments.input, arguments.d_output.shape);
    const Occurrences found = {lists_, lists_ + table.count};
    find_occurrences(exec, table, found);
    with_stored(format_.type, [&]<class Stored>() {
      add_up(exec, table, found, reinterpret_cast<const Stored*>(arguments.d_output.data),
             arguments.d_parameters);
    });
  }

 private:
  [[nodiscard]] Table table_of(const ConstTensor& tokens, const SampleShape& output) const {
    return {TokenRows(output, format_), tokens.size(), rows_, tokens.data};
  }

  int rows_;
  bool learns_;
  TensorFormat format_;
  DataType weight_;
  int* lists_;
};

}  // namespace

std::unique_ptr<Layer> embedding(const LayerSpec& spec, int /*samples*/, const Engine& engine) {
  return std::make_unique<Embedding>(spec, engine);
}

}  // namespace carousel::kernels
