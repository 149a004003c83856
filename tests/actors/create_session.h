// Sessions of tests. HandOff::kRandom brings a rendezvous that delays.
#pragma once

#include <memory>
#include <utility>

#include "actors/runtime/engine.h"
#include "actors/session/session.h"
#include "tests/actors/delaying_rendezvous.h"

namespace tagflow::actors {

inline Result<std::unique_ptr<Session>> create_session(SessionOptions options) {
  if (options.hand_off == HandOff::kRandom && options.engine == nullptr) {
    TAGFLOW_ASSIGN(
        options.engine,
        Engine::create(
            {.workers = options.workers,
             .pin_workers = std::exchange(options.pin_workers, false),
             .hand_off = options.hand_off,
             .spawn_rendezvous = spawn_delaying_rendezvous,
             .on_warning = options.on_warning}));
  }
  return Session::create(std::move(options));
}

}  // namespace tagflow::actors
