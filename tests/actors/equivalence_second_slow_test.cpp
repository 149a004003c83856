#include "tests/actors/equivalence.h"

using namespace tagflow;
using namespace tagflow::actors;

TEST_CASE("random graphs 5,000 to 7,499 give the reference's results") {
  compare_range(5000, 2500);
}
TEST_CASE("random graphs 7,500 to 9,999 give the reference's results") {
  compare_range(7500, 2500);
}
