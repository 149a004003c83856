#include "actors/shared_state.h"

#include <random>
#include <utility>

namespace tagflow::actors {

SharedState::SharedState(std::shared_ptr<DeviceSet> devices)
    : devices_(std::move(devices)) {
  std::random_device source;
  seed_ = uint64_t(source()) << 32 | source();
}

}  // namespace tagflow::actors
