// Which schedules a test of simulations runs.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "tests/repeats.h"

namespace tagflow::net::simulated {

// `count` seeds from `first` on: as many as repeats() says, from 1, or what
// TAGFLOW_SCHEDULES="COUNT FIRST" says.
struct Schedules {
  explicit Schedules(int count) : count(uint64_t(testing::repeats(count))) {
    if (const char* text = std::getenv("TAGFLOW_SCHEDULES"))
      std::istringstream(text) >> this->count >> first;
    REQUIRE(this->count > 0);
  }
  uint64_t count = 0, first = 1;
};

}  // namespace tagflow::net::simulated
