// Devices for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/device_registry.h"
#include "tests/graph/hand_made.h"

namespace tagflow::actors {

// REQUIRES: there are such.
inline std::vector<std::unique_ptr<devices::Device>> make_devices(
    const std::string& specs) {
  return graph::testing::must(devices::make_devices(specs));
}

}  // namespace tagflow::actors
