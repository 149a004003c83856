// Half of the random graphs. There are two files, so that two cores share them.
#include "tests/actors/equivalence.h"

using namespace tagflow;
using namespace tagflow::actors;

TEST_CASE("random graphs 0 to 2,499 give the reference's results") {
  compare_range(0, 2500);
}
TEST_CASE("random graphs 2,500 to 4,999 give the reference's results") {
  compare_range(2500, 2500);
}
