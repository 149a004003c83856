// Every array op, in many types and shapes, compared with TensorFlow's results
// and errors.
#include <doctest/doctest.h>

#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

TEST_CASE("array kernels compute and refuse what TensorFlow's do") {
  const RecordedCounts counts = check_recorded_cases("array.txt");
  CHECK(counts.ops.size() >= 80);
  CHECK(counts.refused > 100);
}

}  // namespace tagflow::devices
