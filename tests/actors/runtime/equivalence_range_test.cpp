// Random graphs of a range and on devices that environment variables specify:
// tests/random_graphs.sh runs many of them.
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/actors/equivalence.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

// A number of the environment, or `fallback` if there is none.
uint64_t environment_number(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

// TAGFLOW_DEVICES: specs apart by blanks, as they have commas.
Scattering environment_scattering() {
  Scattering scattering;
  const char* devices = std::getenv("TAGFLOW_DEVICES");
  std::istringstream words(devices == nullptr ? "" : devices);
  for (std::string word; words >> word;)
    scattering.devices.push_back(std::move(word));
  scattering.seeds = environment_number("TAGFLOW_SCATTERS", 1);
  return scattering;
}

}  // namespace

TEST_CASE("random graphs of a range give the reference's results") {
  const uint64_t first = environment_number("TAGFLOW_FIRST_GRAPH", 200'000);
  const uint64_t count = environment_number("TAGFLOW_GRAPHS", 20);
  const Scattering scattering = environment_scattering();
  REQUIRE(count > 0);
  REQUIRE(scattering.seeds > 0);
  compare_range(first, count, scattering);
}
