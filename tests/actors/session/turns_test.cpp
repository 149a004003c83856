#include "actors/session/turns.h"

#include <doctest/doctest.h>

#include <optional>

namespace tagflow::actors {

TEST_CASE(
    "who waits for a turn asks its budget without the lock of the turns") {
  Turns turns;
  auto first = turns.begin(nullptr);
  REQUIRE(first.ok());
  int num_looks = 0;
  graph::Budget budget({.is_cancelled = [&] {
    ++num_looks;
    // Takes the lock.
    first->reset();
    return false;
  }});
  CHECK(turns.begin(&budget).ok());
  CHECK(num_looks == 1);
}

TEST_CASE("a wait for a turn ends with its budget, and the turn stays taken") {
  Turns turns;
  auto first = turns.begin(nullptr);
  REQUIRE(first.ok());
  graph::Budget budget({.is_cancelled = [] { return true; }});
  for (int i = 0; i < 2; ++i)
    CHECK(turns.begin(&budget).status().code() == Code::kCancelled);
  first->reset();
  CHECK(turns.begin(nullptr).ok());
}

}  // namespace tagflow::actors
