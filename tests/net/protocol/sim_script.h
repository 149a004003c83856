// Script: what the parts of a simulated step do, and what must come of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/protocol/ids.h"
#include "tests/net/protocol/sim_shard.h"

namespace tagflow::net::simulated {

class Random;

struct Token {
  uint64_t value = 0;
  uint64_t bytes = 0;
  bool is_dead = false;
};

// One thing that a lane of a part does. A loop is Test (at the lane that
// decides) or a Recv of its flag, ExitUnless, the body, Back.
struct Op {
  enum class Kind : uint8_t {
    kSend,
    kRecv,
    kCompute,
    kQueue,  // waits for something outside of the step
    kUpdate,
    kFail,
    kTest,        // sets the flag: whether there is another iteration
    kExitUnless,  // leaves the loop, to `target`, unless the flag is set
    kBack,        // begins the next iteration, at `target`
    // Of trainings: sim_undisturbed.h.
    kRead,   // takes a row and a random number
    kFetch,  // tells the shard
    kLog,    // a queue runner's
  };
  Kind kind = Kind::kCompute;
  uint32_t transfer = 0;
  size_t peer = 0;  // part
  uint64_t bytes = 0;
  bool is_dead = false;
  bool is_flag = false;  // the token is the flag of the loop
  size_t target = 0;
  Duration time{};
  // Of a training; without one, an update changes nothing.
  size_t variable = SIZE_MAX;
};

struct Part {
  // Each runs by itself, one op after the other.
  std::vector<std::vector<Op>> lanes;
  bool updates = false;
  uint64_t num_updates = 0;  // that a step which succeeds makes
};

struct Script {
  std::vector<Part> parts;
  uint64_t trips = 0;
  size_t parallel = 1;  // Sends of a lane that may be held at a time
  bool restores = false;
  // Of a training.
  int64_t number = 0;  // of its step
  uint64_t seed = 0;
  Shards loaded;  // that a restore sets

  // What must come of it, if nothing happens to the workers.
  bool can_fail = false;  // by one of its kFail
  bool is_stuck = false;  // if it cannot fail
  uint64_t value = 0;     // if it succeeds
  bool updates() const;
  // Pairs of parts that exchange tokens, the smaller first.
  std::vector<std::pair<size_t, size_t>> pairs() const;
};

// The value that a lane sends, and the one that it has after a token.
uint64_t sent_value(uint64_t have, uint32_t transfer, int64_t iteration);
uint64_t value_after(uint64_t have, const Token& token);
uint64_t first_value(size_t part, size_t lane);

Script random_script(Random& random, size_t num_parts, bool updates);
// Updates each part once.
Script restore_script(size_t num_parts);

}  // namespace tagflow::net::simulated
