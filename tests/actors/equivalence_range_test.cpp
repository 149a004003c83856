// Random graphs of a range that the environment names: tests/random_graphs.sh
// runs many of them.
#include <cstdlib>

#include "tests/actors/equivalence.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

// A number of the environment, or `fallback` where there is none.
uint64_t environment_number(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("random graphs of a range give the reference's results") {
  const uint64_t first = environment_number("TAGFLOW_FIRST_GRAPH", 200'000);
  const uint64_t count = environment_number("TAGFLOW_GRAPHS", 20);
  REQUIRE(count > 0);
  compare_range(first, count);
}
