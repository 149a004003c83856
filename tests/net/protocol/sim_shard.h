// Shard: what a simulated training has at a worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tagflow::net::simulated {

// A variable, and the random op and the queues beside it.
struct Shard {
  uint64_t value = 0;
  int64_t steps = 0;           // that have updated it
  int64_t runs = 0;            // of its random op
  std::vector<uint64_t> rows;  // that steps have fetched ahead, the next first
  std::vector<uint64_t> log;   // what queue runners have put
  bool operator==(const Shard&) const = default;
};
// By the numbers of variables.
using Shards = std::map<size_t, Shard>;

}  // namespace tagflow::net::simulated
