// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/record/metrics_log.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/record/columns.hpp"

namespace carousel {
namespace {

namespace fs = std::filesystem;

/// Whether a line of metrics.jsonl tells of the updates before `step`, or of an evaluation of what
/// they made.
bool is_before(const std::string& line, std::int64_t step, bool evaluates) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer())
    return false;
  const std::int64_t number = json["step"];
  const bool evaluation = json.value("kind", "") == "evaluation" && !evaluates;
  return evaluation ? number <= step : number < step;
}

/// One line of JSON of bounded length, on the stack.
class Line {
 public:
  explicit Line(const char* kind) { add("{{\"kind\":\"{}\"", kind); }

  void number(const char* name, std::int64_t value) { add(",\"{}\":{}", name, value); }
  void number(const char* name, double value) {
    if (std::isfinite(value))
      add(",\"{}\":{}", name, value);
    else
      add(",\"{}\":null", name);
  }
  std::span<const std::byte> finish() {
    add("}}\n");
    return std::as_bytes(std::span(text_).first(size_));
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    const std::size_t room = text_.size() - size_;
    const auto result =
        fmt::format_to_n(text_.data() + size_, room, format, std::forward<Args>(args)...);
    CAROUSEL_CHECK(result.size <= room, "a line of metrics.jsonl is too long");
    size_ += result.size;
  }

  std::array<char, 1024> text_;
  std::size_t size_ = 0;
};

template <class Row>
Line line_of(const char* kind, const Row& row, MetricNames metrics) {
  Line line(kind);
  Columns<Row>::list(metrics,
                     [&](const char* name, auto get) { line.number(name, std::invoke(get, row)); });
  return line;
}

}  // namespace

MetricsLog::MetricsLog(const fs::path& folder, std::vector<std::string> metrics)
    : metrics_(std::move(metrics)),
      file_(Descriptor::create((folder / "metrics.jsonl").string())) {}

MetricsLog::MetricsLog(const fs::path& folder, std::vector<std::string> metrics, std::int64_t step,
                       bool evaluates)
    : metrics_(std::move(metrics)) {
  const std::string path = (folder / "metrics.jsonl").string();
  std::ifstream former(path);
  std::string line;
  std::int64_t kept = 0;
  while (std::getline(former, line) && !former.eof() && is_before(line, step, evaluates))
    kept += std::ssize(line) + 1;
  file_ = Descriptor::append(path);
  file_.resize(kept);
}

void MetricsLog::write(const StepRecord& step) {
  file_.write(line_of("step", step, metrics_).finish());
}

void MetricsLog::write(const EvaluationRecord& evaluation) {
  file_.write(line_of("evaluation", evaluation, metrics_).finish());
}

}  // namespace carousel
