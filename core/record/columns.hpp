// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The columns of every record, in the order and by the names of run files: one table per record,
// which writer, reader and judge share. A column more is a line more here. Files it does not know.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/train/records.hpp"

namespace carousel {

/// The metrics of a run, each of which is a column of its steps and evaluations.
using MetricNames = std::span<const std::string>;

/// The value of one metric in a record.
struct MetricOf {
  std::size_t metric = 0;
  auto& operator()(auto& record) const { return record.metrics[metric]; }
};

/// `group` is where a record's rows are in its file. `list` names every column to `column`, with
/// what std::invoke takes to get its value from a row.
template <class Row>
struct Columns;

template <>
struct Columns<StepRecord> {
  static constexpr const char* group = "/steps";
  static constexpr void list(MetricNames metrics, auto&& column) {
    column("step", &StepRecord::step);
    column("epoch", &StepRecord::epoch);
    column("loss", &StepRecord::loss);
    for (std::size_t k = 0; k < metrics.size(); ++k) column(metrics[k].c_str(), MetricOf{k});
    column("learning_rate", &StepRecord::learning_rate);
    column("seconds", &StepRecord::seconds);
    column("images_per_second", &StepRecord::images_per_second);
  }
};

template <>
struct Columns<EvaluationRecord> {
  static constexpr const char* group = "/evaluations";
  static constexpr void list(MetricNames metrics, auto&& column) {
    column("step", &EvaluationRecord::step);
    column("epoch", &EvaluationRecord::epoch);
    column("loss", &EvaluationRecord::loss);
    for (std::size_t k = 0; k < metrics.size(); ++k) column(metrics[k].c_str(), MetricOf{k});
  }
};

template <>
struct Columns<PartRecord> {
  static constexpr const char* group = "/parts";
  static constexpr void list(MetricNames /*metrics*/, auto&& column) {
    column("first_step", &PartRecord::first_step);
    column("epoch", &PartRecord::epoch);
    column("position", &PartRecord::position);
    column("devices", &PartRecord::devices);
    column("seconds", &PartRecord::seconds);
  }
};

template <>
struct Columns<SegmentRecord> {
  static constexpr const char* group = "/segments";
  static constexpr void list(MetricNames /*metrics*/, auto&& column) {
    column("first", &SegmentRecord::first);
    column("last", &SegmentRecord::last);
  }
};

template <>
struct Columns<ActionRecord> {
  static constexpr const char* group = "/actions";
  static constexpr std::string_view newer = "piece";
  static constexpr void list(MetricNames /*metrics*/, auto&& column) {
    column("kind", &ActionRecord::kind);
    column("step", &ActionRecord::step);
    column("micro_batch", &ActionRecord::micro_batch);
    column("stage", &ActionRecord::stage);
    column("piece", &ActionRecord::piece);
    column("version", &ActionRecord::version);
    column("begin", &ActionRecord::begin);
    column("end", &ActionRecord::end);
  }
};

template <>
struct Columns<MessageRecord> {
  static constexpr const char* group = "/messages";
  static constexpr std::string_view newer = "piece";
  static constexpr void list(MetricNames /*metrics*/, auto&& column) {
    column("kind", &MessageRecord::kind);
    column("direction", &MessageRecord::direction);
    column("step", &MessageRecord::step);
    column("stage", &MessageRecord::stage);
    column("piece", &MessageRecord::piece);
    column("micro_batch", &MessageRecord::micro_batch);
    column("peer", &MessageRecord::peer);
    column("bytes", &MessageRecord::bytes);
    column("posted", &MessageRecord::posted);
    column("completed", &MessageRecord::completed);
    column("waited", &MessageRecord::waited);
  }
};

/// The bytes of one category in a record of memory.
struct BytesOf {
  std::size_t category = 0;
  auto& operator()(auto& record) const { return record.bytes[category]; }
};

template <>
struct Columns<MemoryRecord> {
  static constexpr const char* group = "/memory";
  static constexpr void list(MetricNames /*metrics*/, auto&& column) {
    column("seconds", &MemoryRecord::seconds);
    column("action", &MemoryRecord::action);
    for (std::size_t c = 0; c < category_count; ++c)
      column(to_string(static_cast<Category>(c)), BytesOf{c});
  }
};

/// What a column holds.
template <class Row, class Get>
using ColumnValue = std::remove_cvref_t<std::invoke_result_t<Get, Row&>>;

template <class Row>
[[nodiscard]] std::string dataset_of(const char* column) {
  return std::string(Columns<Row>::group) + "/" + column;
}

/// Whether files of earlier versions do not have the column.
template <class Row>
[[nodiscard]] bool is_newer([[maybe_unused]] std::string_view column) {
  if constexpr (requires { Columns<Row>::newer; }) return column == Columns<Row>::newer;
  return false;
}

}  // namespace carousel
