// Every array op, in many types and shapes, against what TensorFlow computes
// or refuses.
#include <doctest/doctest.h>

#include <set>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

TEST_CASE("array kernels compute and refuse what TensorFlow's do") {
  const auto cases = read_recorded_cases("array.txt");
  REQUIRE_MESSAGE(cases.ok(), cases.status().to_string());
  std::set<std::string> ops;
  int refused = 0;
  for (const RecordedCase& recorded : *cases) {
    INFO("array.txt:", recorded.line, ": ", recorded.op);
    ops.insert(recorded.op);
    const auto outputs = run_op(recorded.op, recorded.inputs, recorded.attrs);
    if (!recorded.error.empty()) {
      CHECK(code_name(outputs.status().code()) == recorded.error);
      ++refused;
      continue;
    }
    CHECK_MESSAGE(outputs.ok(), outputs.status().to_string());
    if (!outputs.ok()) continue;
    REQUIRE(outputs->size() == recorded.outputs.size());
    for (size_t i = 0; i < outputs->size(); ++i)
      expect_close((*outputs)[i], recorded.outputs[i]);
  }
  CHECK(ops.size() >= 80);
  CHECK(refused > 100);
}

}  // namespace tagflow::devices
