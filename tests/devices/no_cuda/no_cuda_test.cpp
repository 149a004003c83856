// A library built without CUDA.
#include <doctest/doctest.h>

#include "devices/cuda_type.h"
#include "devices/kernel_registry.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("a GPU is refused with the reason if the build has no CUDA") {
  const auto specs = parse_device_specs("cuda:1");
  REQUIRE(specs.ok());
  expect_error(make_devices(*specs), Code::kUnimplemented,
               "[cuda] this build has no CUDA: configure it with "
               "-DTAGFLOW_CUDA=ON");
  CHECK_FALSE(KernelRegistry::global().has_op("AddV2", "GPU"));
}

}  // namespace tagflow::devices
