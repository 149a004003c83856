// Every stateless random op draws bitwise the same numbers as TensorFlow.
#include <doctest/doctest.h>

#include <set>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

TEST_CASE("stateless random kernels draw the numbers of TensorFlow's") {
  const auto cases = read_recorded_cases("random.txt");
  REQUIRE_MESSAGE(cases.ok(), cases.status().to_string());
  std::set<std::string> ops;
  int refused = 0;
  for (const RecordedCase& recorded : *cases) {
    INFO("random.txt:", recorded.line, ": ", recorded.op);
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
      CHECK_MESSAGE(identical((*outputs)[i], recorded.outputs[i]),
                    difference((*outputs)[i], recorded.outputs[i], 0));
  }
  CHECK(ops.size() == 20);
  CHECK(refused > 30);
}

}  // namespace tagflow::devices
