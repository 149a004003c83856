#include "net/protocol/clock_offset.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>

namespace tagflow::net {
namespace {

constexpr uint64_t kMicrosecond = 1000;

// A peer whose clock is ahead, and goes faster by so many millionths.
struct Peer {
  uint64_t ahead = 0;
  double drift = 0;

  uint64_t at(uint64_t local) const {
    return local + ahead + uint64_t(int64_t(double(local) * drift * 1e-6));
  }
  // A Ping and its Pong, which take so long.
  void answer(ClockOffset& offset, uint64_t sent, uint64_t there,
              uint64_t back) const {
    offset.add(sent, at(sent + there), sent + there + back);
  }
};

uint64_t distance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

}  // namespace

TEST_CASE("before the first Pong nothing is known of a peer's clock") {
  ClockOffset offset;
  CHECK_FALSE(offset.to_local(5).has_value());
  // Made up: it came before its Ping was sent.
  offset.add(100, 5, 99);
  CHECK_FALSE(offset.to_local(5).has_value());
}

TEST_CASE("a clock that is ahead or behind is found, whatever it shows") {
  for (const uint64_t ahead :
       {uint64_t{0}, uint64_t{1'000'000'000}, uint64_t{0} - 700'000'000,
        UINT64_MAX, uint64_t{1} << 63}) {
    const Peer peer{ahead};
    ClockOffset offset;
    peer.answer(offset, 2'000'000'000, 10 * kMicrosecond, 10 * kMicrosecond);
    CHECK(offset.to_local(peer.at(2'500'000'000)).value() == 2'500'000'000);
  }
}

TEST_CASE("the Pong with the shortest round trip says how far a clock is") {
  const Peer peer{123'456'789};
  ClockOffset offset;
  peer.answer(offset, 1'000'000, 900 * kMicrosecond, 5 * kMicrosecond);
  peer.answer(offset, 2'000'000, 11 * kMicrosecond, 10 * kMicrosecond);
  peer.answer(offset, 3'000'000, 5 * kMicrosecond, 400 * kMicrosecond);
  const uint64_t local = 4'000'000;
  CHECK(distance(offset.to_local(peer.at(local)).value(), local) <=
        kMicrosecond);
}

TEST_CASE("the error is half of the shortest round trip, however it is split") {
  std::mt19937_64 random(1);
  const Peer peer{uint64_t{0} - 5'000'000'000};
  ClockOffset offset;
  uint64_t now = 10'000'000'000, shortest = UINT64_MAX;
  for (int i = 0; i < 100; ++i) {
    const uint64_t there = random() % 1'000'000, back = random() % 1'000'000;
    peer.answer(offset, now, there, back);
    now += there + back + 1000;
    shortest = std::min(shortest, there + back);
    // What drift would allow in this time: 200 ms at most.
    CHECK(distance(offset.to_local(peer.at(now)).value(), now) <=
          shortest / 2 + 20'000);
  }
}

TEST_CASE("a clock that drifts is followed by later Pongs that are no better") {
  const Peer peer{50'000, 50};  // millionths
  ClockOffset offset;
  constexpr uint64_t kSecond = 1'000'000'000;
  peer.answer(offset, kSecond, 10 * kMicrosecond, 10 * kMicrosecond);
  for (uint64_t at = 2; at < 1000; ++at) {
    peer.answer(offset, at * kSecond, 15 * kMicrosecond, 15 * kMicrosecond);
    CHECK(distance(offset.to_local(peer.at(at * kSecond)).value(),
                   at * kSecond) <= 70 * kMicrosecond);
  }
}

}  // namespace tagflow::net
