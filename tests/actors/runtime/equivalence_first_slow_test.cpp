// Half of the random graphs. There are two files, so that two cores share them.
// tests/random_graphs.sh compares as many more as one likes.
#include "tests/actors/equivalence.h"

using namespace tagflow;
using namespace tagflow::actors;

TEST_CASE("random graphs 0 to 1,249 give the reference's results") {
  compare_range(0, 1250);
}
TEST_CASE("random graphs 1,250 to 2,499 give the reference's results") {
  compare_range(1250, 1250);
}
