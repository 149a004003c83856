// Sessions with a GPU.
#pragma once

#include <doctest/doctest.h>

#include "devices/device_registry.h"
#include "graph/builder/builder.h"
#include "tests/actors/devices.h"
#include "tests/actors/sessions.h"
#include "tests/skip.h"

namespace tagflow::actors {

// False where this machine has no GPU, and the running test case counts as
// skipped. Fails the case where the GPU does not work.
inline bool has_gpu_or_skip() {
  const auto specs = devices::parse_device_specs("cuda:1");
  const auto made = devices::make_devices(*specs);
  if (made.ok()) return true;
  REQUIRE_MESSAGE(made.status().code() == Code::kNotFound,
                  made.status().to_string());
  skip_test_case(made.status().message());
  return false;
}

// Elements of float or double, or tensors of another type that are equal.
inline void expect_near(const Tensor& actual, const Tensor& expected,
                        double tolerance = 1e-3) {
  REQUIRE(actual.describe() == expected.describe());
  for (int64_t i = 0; i < actual.num_elements(); ++i) {
    CAPTURE(i);
    if (actual.dtype() == DataType::kFloat) {
      CHECK(actual.data<float>()[i] ==
            doctest::Approx(expected.data<float>()[i]).epsilon(tolerance));
    } else if (actual.dtype() == DataType::kDouble) {
      CHECK(actual.data<double>()[i] ==
            doctest::Approx(expected.data<double>()[i]).epsilon(tolerance));
    } else {
      REQUIRE(actual.dtype() == DataType::kInt32);
      CHECK(actual.data<int32_t>()[i] == expected.data<int32_t>()[i]);
    }
  }
}

}  // namespace tagflow::actors
