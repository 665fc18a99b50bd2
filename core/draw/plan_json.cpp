// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#include "core/draw/plan_json.hpp"

#include <nlohmann/json.hpp>
#include <numeric>

namespace carousel {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(int device, const Action& action) {
  Json json = {{"time", action.time},
               {"device", device},
               {"kind", to_string(action.kind)},
               {"step", action.step},
               {"micro_batch", action.micro_batch},
               {"stage", action.stage},
               {"version", names_version(action) ? action.version : -1},
               {"peer", action.peer},
               {"bytes", action.bytes}};
  if (action.payload != Payload::none) json["payload"] = to_string(action.payload);
  if (action.direction != Direction::none)
    json["direction"] = action.direction == Direction::send ? "send" : "receive";
  if (action.group >= 0) json["group"] = action.group;
  if (action.buffer >= 0) json["buffer"] = action.buffer;
  if (action.source >= 0) json["source"] = action.source;
  if (action.round.exists()) json["round"] = {action.round.time, action.round.hop};
  return json;
}

Json json_of(const Forecast& forecast) {
  Json links = Json::array();
  for (const LinkLoad& link : forecast.links)
    links.push_back({{"from", link.from}, {"to", link.to}, {"bytes", link.bytes}});
  return {{"seconds_per_step", forecast.seconds.step},
          {"ideal_seconds_per_step", forecast.seconds.ideal_step},
          {"bin_seconds", forecast.bins.width},
          {"computing", forecast.computing},
          {"links", std::move(links)},
          {"activations", forecast.activations}};
}

}  // namespace

std::string plan_json(const Schedule& schedule, const MemoryPlan& memory, std::int64_t steps,
                      const std::optional<Forecast>& simulated) {
  const ParallelConfig& parallel = schedule.parallel();
  Json plan = {{"rule", to_string(parallel.rule)},
               {"placement", to_string(parallel.placement)},
               {"order", to_string(parallel.order)},
               {"reduction", to_string(parallel.reduction)},
               {"N", parallel.micro_batches},
               {"k", parallel.passes},
               {"S", parallel.stages},
               {"slack", schedule.rule().slack()},
               {"predict", parallel.predict},
               {"devices", schedule.devices()},
               {"activation_units", Json::array()},
               {"bytes", Json::object()},
               {"groups", schedule.groups()},
               {"period_time", schedule.period_time()},
               {"actions", Json::array()}};
  for (int d = 0; d < schedule.devices(); ++d) {
    const std::vector<int>& frames = schedule.buffers(d).frames;
    plan["activation_units"].push_back(std::accumulate(frames.begin(), frames.end(), 0));
    for (int c = 0; c < category_count; ++c)
      plan["bytes"][to_string(static_cast<Category>(c))].push_back(memory.devices[d].bytes[c]);
    for (const Action& action : schedule.actions(d, {0, steps}))
      plan["actions"].push_back(json_of(d, action));
  }
  if (simulated) plan["simulation"] = json_of(*simulated);
  return plan.dump() + "\n";
}

}  // namespace carousel
