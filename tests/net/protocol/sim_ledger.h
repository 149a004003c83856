// Ledger: the updates that simulated workers have made.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "net/protocol/ids.h"

namespace tagflow::net::simulated {

// One update of a script: the part, the lane, its op, the iteration.
using UpdateKey = std::tuple<size_t, size_t, size_t, int64_t>;

struct Ledger {
  struct Entry {
    StepId step{};
    Incarnation incarnation{};
    UpdateKey key;
    Time time;
  };
  std::vector<Entry> entries;

  uint64_t count(StepId step, Incarnation incarnation) const {
    uint64_t count = 0;
    for (const Entry& entry : entries)
      count += entry.step == step && entry.incarnation == incarnation;
    return count;
  }
};

}  // namespace tagflow::net::simulated
