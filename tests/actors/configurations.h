// Every way in which the same graph may run.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <string>
#include <vector>

#include "actors/session/session.h"

namespace tagflow::actors {

inline constexpr HandOff kHandOffs[] = {HandOff::kDirect, HandOff::kMailbox,
                                        HandOff::kRandom};

// The policies by the workers. With HandOff::kRandom, partitions pass through
// the wire, too.
inline std::vector<SessionOptions> hand_offs_by_workers() {
  std::vector<SessionOptions> all;
  for (const HandOff hand_off : kHandOffs)
    for (const int workers : {1, 2}) {
      SessionOptions& options = all.emplace_back();
      options.hand_off = hand_off;
      options.workers = workers;
      options.through_wire = hand_off == HandOff::kRandom;
    }
  return all;
}

// These, with and without passes.
inline std::vector<SessionOptions> configurations() {
  std::vector<SessionOptions> all;
  for (SessionOptions options : hand_offs_by_workers()) {
    all.push_back(options);
    options.passes = graph::PassSet::none();
    all.push_back(options);
  }
  return all;
}

inline std::string describe(const SessionOptions& options) {
  return fmt::format(
      "policy {}, workers {}, window {}, passes {}, devices {}, scatter {}, "
      "through wire {}",
      int(options.hand_off), options.workers, options.window,
      options.passes.to_string(), options.devices, options.scatter.value_or(0),
      options.through_wire);
}

// How many there are with each window, the passes all, none, or each alone, and
// one device or the nodes scattered over several.
inline constexpr uint64_t kPassSets = graph::kNumPasses + 2;
inline constexpr const char* kDeviceSpecs[] = {
    "cpu:1", "cpu:2", "cpu:5", "cpu:1,stream:1", "cpu:2,stream:2"};
inline constexpr uint64_t kConfigurations =
    24 * kPassSets * std::size(kDeviceSpecs);

inline SessionOptions configuration(uint64_t index) {
  static constexpr int kWindows[] = {1, 2, 8, 32};
  SessionOptions options;
  options.hand_off = kHandOffs[index % 3];
  options.workers = 1 + int(index / 3 % 2);
  options.window = kWindows[index / 6 % 4];
  const uint64_t passes = index / 24 % kPassSets;
  if (passes < graph::kNumPasses) {
    options.passes = graph::PassSet::only(graph::Pass(passes));
  } else if (passes == graph::kNumPasses) {
    options.passes = graph::PassSet::none();
  }
  // Varies fastest, as most can go wrong between devices.
  options.devices = kDeviceSpecs[index % std::size(kDeviceSpecs)];
  options.scatter = index;
  options.seed = index;
  options.through_wire = index / 7 % 2 == 1;
  options.timeout = std::chrono::seconds(60);
  return options;
}

}  // namespace tagflow::actors
