#include "net/control/allowance.h"

#include <doctest/doctest.h>

namespace tagflow::net {
namespace {

using std::chrono::milliseconds;

// How many messages of so many bytes are taken at that time.
uint64_t taken(Allowance& allowance, uint64_t bytes, Time now) {
  uint64_t count = 0;
  while (allowance.take(bytes, now)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a peer may say much at once, and then as much as time gives") {
  const Time begin{};
  Allowance allowance(begin);
  CHECK(taken(allowance, 1, begin) == Allowance::kMost / Allowance::kLeast);
  CHECK(taken(allowance, 1, begin + milliseconds(999)) == 1022);
  CHECK(taken(allowance, uint64_t{256} << 10, begin + milliseconds(2999)) == 8);
  // A rest is worth no more than the most.
  CHECK(taken(allowance, 1, begin + std::chrono::hours(24)) ==
        Allowance::kMost / Allowance::kLeast);
}

TEST_CASE("messages between which hardly any time passes take what it gives") {
  Time now{};
  Allowance allowance(now);
  taken(allowance, 1, now);
  uint64_t count = 0;
  for (int i = 0; i < 40'000; ++i) {
    now += std::chrono::microseconds(100);
    count += taken(allowance, 1, now);
  }
  CHECK(count >= 4000);
  CHECK(count <= 4096);
}

}  // namespace tagflow::net
