// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/forecast/measured_costs.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "core/base/check.hpp"
#include "core/plan/action.hpp"

namespace carousel {
namespace {

struct Measured {
  ActionKind kind;
  double StageSeconds::*seconds;
  bool by_piece = true;  // where stages are cut
};

constexpr std::array measured_kinds = {
    Measured{ActionKind::load, &StageSeconds::load, false},
    Measured{ActionKind::copy, &StageSeconds::copy},
    Measured{ActionKind::forward, &StageSeconds::forward, false},
    Measured{ActionKind::backward, &StageSeconds::backward, false},
    Measured{ActionKind::accumulate, &StageSeconds::accumulate},
    Measured{ActionKind::measure, &StageSeconds::measure},
    Measured{ActionKind::update, &StageSeconds::update},
};

double median(std::vector<double>& values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Seconds of the recorded actions from one step on, by kind and stage.
class Recordings {
 public:
  Recordings(std::span<const std::vector<ActionRecord>> devices, std::int64_t first_step) {
    for (const std::vector<ActionRecord>& actions : devices) {
      for (const ActionRecord& action : actions) {
        if (action.step >= first_step)
          seconds_[{action.kind, std::max(action.stage, 0)}].push_back(action.end - action.begin);
      }
    }
  }

  /// Null when there is no such action.
  std::vector<double>* of(ActionKind kind, int stage) {
    const auto found = seconds_.find({to_string(kind), stage});
    return found == seconds_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::pair<std::string_view, int>, std::vector<double>> seconds_ = {};
};

}  // namespace

std::vector<StageSeconds> measured_seconds(const std::string& run,
                                           std::span<const std::vector<ActionRecord>> devices,
                                           std::vector<StageSeconds> otherwise, bool cuts_stages) {
  constexpr std::int64_t warm = 2;
  Recordings recordings(devices, warm);
  if (recordings.of(ActionKind::forward, 0) == nullptr) recordings = Recordings(devices, 0);
  for (int j = 0; j < std::ssize(otherwise); ++j) {
    for (const Measured& measured : measured_kinds) {
      if (cuts_stages && measured.by_piece) continue;
      std::vector<double>* seconds = recordings.of(measured.kind, j);
      const bool needed =
          measured.kind == ActionKind::forward || measured.kind == ActionKind::backward;
      if (seconds != nullptr)
        otherwise[j].*measured.seconds = median(*seconds);
      else if (needed)
        fail(ExitCode::bad_data, "{}: no {} of stage {} was recorded; profile.steps says what is",
             run, to_string(measured.kind), j);
    }
  }
  return otherwise;
}

}  // namespace carousel
