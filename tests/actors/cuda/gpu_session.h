// Sessions with a GPU.
#pragma once

#include <doctest/doctest.h>

#include "devices/device_registry.h"
#include "graph/builder/builder.h"
#include "graph/float16.h"
#include "tests/actors/devices.h"
#include "tests/actors/sessions.h"
#include "tests/skip.h"

namespace tagflow::actors {

// False if this machine has no GPU, and the running test case counts as
// skipped. Fails the case if the GPU does not work.
inline bool has_gpu_or_skip() {
  const auto specs = devices::parse_device_specs("cuda:1");
  const auto made = devices::make_devices(*specs);
  if (made.ok()) return true;
  REQUIRE_MESSAGE(made.status().code() == Code::kNotFound,
                  made.status().to_string());
  skip_test_case(made.status().message());
  return false;
}

// Fails the test case if elements differ by more than that, relatively.
// REQUIRES: they are of a floating type.
inline void expect_near(const Tensor& actual, const Tensor& expected,
                        double tolerance = 1e-3) {
  REQUIRE(actual.describe() == expected.describe());
  const auto number = [](const Tensor& tensor, int64_t i) -> double {
    switch (tensor.dtype()) {
      case DataType::kFloat:
        return tensor.data<float>()[i];
      case DataType::kDouble:
        return tensor.data<double>()[i];
      case DataType::kHalf:
        return float(tensor.data<Half>()[i]);
      case DataType::kBFloat16:
        return float(tensor.data<BFloat16>()[i]);
      default:
        FAIL("numbers are wanted, not ", tensor.describe());
        return 0;
    }
  };
  for (int64_t i = 0; i < actual.num_elements(); ++i) {
    CAPTURE(i);
    CHECK(number(actual, i) ==
          doctest::Approx(number(expected, i)).epsilon(tolerance));
  }
}

}  // namespace tagflow::actors
