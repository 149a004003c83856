// Kernels on a GPU compute the same as the CPU's, on recorded cases.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/devices/cuda/gpu.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

namespace {

bool is_plain_case(const RecordedCase& recorded) {
  const auto plain = [](const Tensor& tensor) {
    return is_plain(tensor.dtype());
  };
  return std::ranges::all_of(recorded.inputs, plain) &&
         std::ranges::all_of(recorded.outputs, plain);
}

// Both sides approximate.
double tolerance_of(const RecordedCase& recorded) {
  switch (recorded.inputs.empty() ? DataType::kInvalid
                                  : recorded.inputs[0].dtype()) {
    case DataType::kFloat:
      return 4e-6;
    case DataType::kDouble:
      return 1e-12;
    default:
      return 0;
  }
}

// What only a GPU knows is out of range gives zeros there.
bool has_bad_indices(const RecordedCase& recorded) {
  return recorded.op.starts_with("Gather") &&
         !on_cpu(recorded.op, recorded.inputs, recorded.attrs).status.ok();
}

// Runs all cases of the file that GPUs have kernels for; how many of each op.
std::map<std::string, int> compare(Device& gpu, const std::string& file) {
  const auto cases = read_recorded_cases(file);
  REQUIRE_MESSAGE(cases.ok(), cases.status().to_string());
  std::map<std::string, int> compared;
  for (const RecordedCase& recorded : *cases) {
    if (!is_plain_case(recorded) || has_bad_indices(recorded)) continue;
    INFO(file, ":", recorded.line, ": ", recorded.op);
    if (expect_as_on_cpu(gpu, recorded.op, recorded.inputs, recorded.attrs,
                         tolerance_of(recorded)))
      ++compared[recorded.op];
  }
  return compared;
}

}  // namespace

TEST_CASE("element-wise kernels of GPUs give the CPU's results") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  const auto compared = compare(*gpu, "elementwise.txt");
  CHECK(compared.size() > 60);
  CHECK(gpu->memory().in_use == 0);
}

TEST_CASE("array kernels of GPUs give the CPU's results") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  const auto compared = compare(*gpu, "array.txt");
  CHECK(compared.size() > 25);
  CHECK(gpu->memory().in_use == 0);
}

}  // namespace tagflow::devices
