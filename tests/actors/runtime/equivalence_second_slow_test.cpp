#include "tests/actors/equivalence.h"

using namespace tagflow;
using namespace tagflow::actors;

TEST_CASE("random graphs 2,500 to 3,749 give the reference's results") {
  compare_range(2500, 1250);
}
TEST_CASE("random graphs 3,750 to 4,999 give the reference's results") {
  compare_range(3750, 1250);
}
