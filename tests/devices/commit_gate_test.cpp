#include "devices/commit_gate.h"

#include <doctest/doctest.h>

namespace tagflow::devices {

TEST_CASE("a gate knows who is inside, and whether somebody was") {
  int drained = 0;
  CommitGate gate([&] { ++drained; });
  CHECK_FALSE(gate.was_entered());
  {
    const Commit one(&gate);
    const Commit other(&gate);
    CHECK(bool(other));
    CHECK(gate.is_entered());
  }
  CHECK_FALSE(gate.is_entered());
  CHECK(gate.was_entered());
  CHECK(drained == 0);
  CHECK(gate.close());
}

TEST_CASE("a gate that is closed is drained by the last one that leaves it") {
  int drained = 0;
  CommitGate gate([&] { ++drained; });
  {
    const Commit one(&gate);
    CHECK_FALSE(gate.close());
    CHECK_FALSE(bool(Commit(&gate)));
    CHECK(drained == 0);
  }
  CHECK(drained == 1);
}

TEST_CASE("a gate that nobody entered is closed and unused") {
  CommitGate gate([] {});
  CHECK(gate.close());
  CHECK_FALSE(bool(Commit(&gate)));
  CHECK_FALSE(gate.was_entered());
}

}  // namespace tagflow::devices
