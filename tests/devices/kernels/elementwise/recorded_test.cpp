// Every element-wise op, in every type, compared with TensorFlow's results.
#include <doctest/doctest.h>

#include <set>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

namespace {

// Both sides approximate: TensorFlow's float functions are good to about 1e-6.
double tolerance_of(DataType t) {
  switch (t) {
    case DataType::kFloat:
    case DataType::kComplex64:
      return 4e-6;
    case DataType::kDouble:
    case DataType::kComplex128:
      return 1e-12;
    default:
      return 0;
  }
}

}  // namespace

TEST_CASE("element-wise kernels compute what TensorFlow's do") {
  const auto cases = read_recorded_cases("elementwise.txt");
  REQUIRE_MESSAGE(cases.ok(), cases.status().to_string());
  std::set<std::string> ops;
  for (const RecordedCase& recorded : *cases) {
    INFO("elementwise.txt:", recorded.line, ": ", recorded.op, " of ",
         recorded.inputs[0].describe());
    ops.insert(recorded.op);
    const auto outputs = run_op(recorded.op, recorded.inputs, recorded.attrs);
    CHECK_MESSAGE(outputs.ok(), outputs.status().to_string());
    if (!outputs.ok()) continue;
    REQUIRE(outputs->size() == recorded.outputs.size());
    for (size_t i = 0; i < outputs->size(); ++i) {
      const Tensor& expected = recorded.outputs[i];
      expect_close((*outputs)[i], expected, tolerance_of(expected.dtype()));
    }
  }
  CHECK(ops.size() > 90);
}

}  // namespace tagflow::devices
