// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file of a run whose rows are checked. The first wrong row throws an Error that names it. What
// is right is the caller's knowledge.

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/hdf5.hpp"
#include "core/record/rows.hpp"

namespace carousel {

class JudgedFile {
 public:
  /// Error(input_output) when it is not there.
  explicit JudgedFile(const std::string& path) : file_(hdf5::File::open_with_reason(path)) {}

  [[nodiscard]] const hdf5::File& hdf5() const { return file_; }

  /// A dataset that must have `rows` values; T is std::int64_t, std::uint64_t, double or
  /// std::string.
  template <class T>
  [[nodiscard]] std::vector<T> column(const std::string& dataset, std::size_t rows) const {
    if (!file_.contains(dataset)) wrong("{} is missing", dataset);
    std::vector<T> values;
    if constexpr (std::is_same_v<T, std::string>)
      values = file_.read_strings(dataset);
    else
      values = file_.read<T>(dataset);
    if (values.size() != rows)
      wrong("{} has {} rows, should have {}", dataset, values.size(), rows);
    return values;
  }

  /// The rows of a record, of which there must be `count`; they point at `words`.
  template <class Row>
  [[nodiscard]] std::vector<Row> rows(std::size_t count, std::set<std::string>& words,
                                      MetricNames metrics = {}) const {
    Columns<Row>::list(metrics, [&](const char* name, auto) {
      const std::string dataset = dataset_of<Row>(name);
      const bool exists = file_.contains(dataset);
      if (!exists && is_newer<Row>(name)) return;
      if (!exists) wrong("{} is missing", dataset);
      const hdf5::Shape shape = file_.info(dataset).shape;
      if (shape != hdf5::Shape{count})
        wrong("{} has {} rows, should have {}", dataset, shape.empty() ? 0 : shape.front(), count);
    });
    return read_rows<Row>(file_, words, metrics);
  }

  /// Demands of a row all that is no time, metric or other measured number: its words and integers.
  template <class Row>
  void demand_row(std::size_t row, const Row& found, const Row& wanted) const {
    Columns<Row>::list({}, [&](const char* name, auto get) {
      using Value = ColumnValue<Row, decltype(get)>;
      if constexpr (std::is_same_v<Value, const char*>) {
        const std::string_view word(std::invoke(get, found));
        if (word != std::invoke(get, wanted))
          demand(dataset_of<Row>(name), row, word, std::string_view(std::invoke(get, wanted)));
      } else if constexpr (std::is_integral_v<Value>) {
        if (std::invoke(get, found) != std::invoke(get, wanted))
          demand(dataset_of<Row>(name), row, std::invoke(get, found), std::invoke(get, wanted));
      }
    });
  }

  template <class Found, class Wanted>
  void demand(const std::string& dataset, std::size_t row, const Found& found,
              const Wanted& wanted) const {
    if (found != wanted) wrong("{} row {} is {}, should be {}", dataset, row, found, wanted);
  }

  /// For times: low <= value <= high, which is false for NaN.
  void demand_within(const std::string& dataset, std::size_t row, double value, double low,
                     double high) const {
    if (!(value >= low && value <= high))
      wrong("{} row {} is {}, should lie between {} and {}", dataset, row, value, low, high);
  }

  template <class Found, class Wanted>
  void demand_attribute(const std::string& object, const std::string& name, const Found& found,
                        const Wanted& wanted) const {
    if (found != wanted)
      wrong("attribute {} of {} is {}, should be {}", name, object, found, wanted);
  }

  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ExitCode::bad_data, "{}: {}", file_.path(),
         fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  hdf5::File file_;
};

}  // namespace carousel
