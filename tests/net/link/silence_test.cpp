#include "net/link/silence.h"

#include <doctest/doctest.h>

namespace tagflow::net {
namespace {

using Action = Silence::Action;

TEST_CASE("a link on which both sides speak sends no pings") {
  Silence silence(5);
  for (int i = 0; i < 100; ++i) {
    silence.hear();
    CHECK(silence.end_interval(true) == Action::kNothing);
  }
}

TEST_CASE("a side that has nothing to send pings, since it is heard by that") {
  Silence silence(5);
  for (int i = 0; i < 100; ++i) {
    silence.hear();
    CHECK(silence.end_interval(false) == Action::kPing);
  }
}

TEST_CASE("a silent peer is asked, and given up after as many intervals") {
  Silence silence(3);
  CHECK(silence.end_interval(true) == Action::kNothing);
  CHECK(silence.end_interval(true) == Action::kPing);
  CHECK(silence.end_interval(true) == Action::kPing);
  CHECK(silence.end_interval(true) == Action::kGiveUp);
}

TEST_CASE("one byte is enough to be heard again") {
  Silence silence(3);
  silence.end_interval(true);
  silence.end_interval(true);
  CHECK(silence.end_interval(true) == Action::kPing);
  silence.hear();
  CHECK(silence.end_interval(true) == Action::kNothing);
  CHECK(silence.end_interval(true) == Action::kPing);
}

}  // namespace
}  // namespace tagflow::net
