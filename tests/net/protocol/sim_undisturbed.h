// Undisturbed: what a simulated training does, and what must come of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/net/protocol/sim_script.h"
#include "tests/net/protocol/sim_shard.h"

namespace tagflow::net::simulated {

// The row of that step.
uint64_t row_of(size_t variable, int64_t step);
// Before the first step.
Shards first_shards(size_t num_variables, uint64_t seed);
// The value that the lane of a variable begins a step with: takes a row, and a
// random number.
uint64_t read_shard(Shard& shard, size_t variable, uint64_t seed);
// What the step makes of it, with the lane's value at its end.
void update_shard(Shard& shard, size_t variable, uint64_t value);

// Each variable has a lane at its part. All of these scripts have the same
// result wherever the variables are.
//
// A step: each variable takes a row and a random number, exchanges values with
// its neighbours, and is updated.
Script training_script(size_t num_variables, size_t num_parts, int64_t number,
                       uint64_t seed);
// Sets all shards.
Script load_script(const Shards& shards, size_t num_parts);
// Fetches all shards: an answer's `fetched`.
Script fetch_script(size_t num_variables, size_t num_parts);
// A queue runner's: puts an element into the log of a variable.
Script log_script(size_t num_parts, size_t variable, uint64_t element);

// A training that nobody disturbs.
class Undisturbed {
 public:
  Undisturbed(size_t num_variables, uint64_t seed)
      : num_variables_(num_variables),
        seed_(seed),
        shards_{first_shards(num_variables, seed)},
        values_{0} {}

  // After the step, without logs.
  const Shards& shards(int64_t step);
  // What the step returns.
  uint64_t value(int64_t step);

 private:
  void run_to(int64_t step);

  const size_t num_variables_;
  const uint64_t seed_;
  std::vector<Shards> shards_;    // by step
  std::vector<uint64_t> values_;  // by step
};

}  // namespace tagflow::net::simulated
