// Test cases that this machine cannot run.
#pragma once

#include <string_view>

namespace tagflow {

// Says that the running test case is not run, and why. A test binary all of
// whose selected cases were skipped exits with 77, which CTest counts as
// skipped. Thread-compatible.
void skip_test_case(std::string_view why);

}  // namespace tagflow
