// Life signs of a link, by a clock that the tests turn.
#include "net/protocol/life.h"

#include <doctest/doctest.h>

using namespace tagflow::net;
using std::chrono::milliseconds;

namespace {

constexpr LifeRules kRules{milliseconds(300), 5};

Time at(int ms) { return Time() + milliseconds(ms); }

}  // namespace

TEST_CASE("smoke: a silent end is asked, and lost after five looks") {
  Life life(at(0), kRules);
  for (int ms = 300; ms < 1500; ms += 300) {
    CHECK(life.next() == at(ms));
    CHECK(life.on_time(at(ms)) == Life::Verdict::kPing);
  }
  CHECK(life.on_time(at(1500)) == Life::Verdict::kLost);
  CHECK(life.on_time(at(1800)) == Life::Verdict::kLost);
}

TEST_CASE("smoke: before its time a look sees nothing") {
  Life life(at(0), kRules);
  CHECK(life.on_time(at(299)) == Life::Verdict::kNothing);
  CHECK(life.next() == at(300));
}

TEST_CASE("smoke: an end that is heard is not asked") {
  Life life(at(0), kRules);
  for (int ms = 300; ms < 6000; ms += 300) {
    life.on_heard();
    CHECK(life.on_time(at(ms)) == Life::Verdict::kNothing);
  }
}

TEST_CASE("smoke: one sign ends a silence") {
  Life life(at(0), kRules);
  for (int round = 0; round < 3; ++round) {
    const int begin = round * 1500;
    for (int look = 1; look <= 4; ++look)
      CHECK(life.on_time(at(begin + look * 300)) == Life::Verdict::kPing);
    life.on_heard();
    CHECK(life.on_time(at(begin + 1500)) == Life::Verdict::kNothing);
  }
}

TEST_CASE("smoke: a process that was stopped misses one look only") {
  Life life(at(0), kRules);
  CHECK(life.on_time(at(10'000)) == Life::Verdict::kPing);
  // What has waited in its socket.
  life.on_heard();
  CHECK(life.next() == at(10'225));
  CHECK(life.on_time(at(10'225)) == Life::Verdict::kNothing);
}

TEST_CASE("smoke: delays of looks at a silent end do not add up") {
  Life life(at(0), kRules);
  for (int ms = 300; ms < 1500; ms += 300) {
    CHECK(life.next() == at(ms));
    CHECK(life.on_time(at(ms + 75)) == Life::Verdict::kPing);
  }
  CHECK(life.on_time(at(1500)) == Life::Verdict::kLost);
}
