// What record_parsing.py recorded with TensorFlow.
#include <doctest/doctest.h>

#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

TEST_CASE("parsing: recorded cases") {
  const RecordedCounts counts = check_recorded_cases("parsing.txt");
  CHECK(counts.ops.size() == 10);
  CHECK(counts.refused > 100);
}

}  // namespace tagflow::devices
