// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of records to run files and back, column by column of their table. It judges nothing but
// that the columns are of equal length.

#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/hdf5.hpp"
#include "core/base/row_file.hpp"
#include "core/record/columns.hpp"

namespace carousel {

template <class Row>
void append_rows(hdf5::RowFile& file, std::span<const Row> rows, MetricNames metrics = {}) {
  Columns<Row>::list(metrics, [&](const char* name, auto get) {
    using Value = ColumnValue<Row, decltype(get)>;
    std::vector<Value> column;
    column.reserve(rows.size());
    for (const Row& row : rows) column.push_back(std::invoke(get, row));
    if constexpr (std::is_same_v<Value, const char*>)
      file.append_strings(dataset_of<Row>(name), column);
    else
      file.append<Value>(dataset_of<Row>(name), column);
  });
}

/// Rows point at `words`, which must outlive them; what an earlier version did not write stays as
/// rows are made. Error(bad_data) when the columns are of different length.
template <class Row>
[[nodiscard]] std::vector<Row> read_rows(const hdf5::File& file, std::set<std::string>& words,
                                         MetricNames metrics = {}) {
  std::vector<Row> rows;
  bool first = true;
  const auto assign = [&](const std::string& dataset, const auto& values, auto&& set) {
    if (first) rows.resize(values.size());
    first = false;
    if (values.size() != rows.size())
      fail(ExitCode::bad_data, "{}: {} has {} rows, the columns beside it have {}", file.path(),
           dataset, values.size(), rows.size());
    for (std::size_t k = 0; k < values.size(); ++k) set(rows[k], values[k]);
  };
  Columns<Row>::list(metrics, [&](const char* name, auto get) {
    using Value = ColumnValue<Row, decltype(get)>;
    const std::string dataset = dataset_of<Row>(name);
    if (is_newer<Row>(name) && !file.contains(dataset)) return;
    if constexpr (std::is_same_v<Value, const char*>) {
      assign(dataset, file.read_strings(dataset), [&](Row& row, const std::string& word) {
        std::invoke(get, row) = words.insert(word).first->c_str();
      });
    } else {
      assign(dataset, file.read<Value>(dataset),
             [&](Row& row, const Value& value) { std::invoke(get, row) = value; });
    }
  });
  return rows;
}

}  // namespace carousel
