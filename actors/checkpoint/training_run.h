// TrainingRun: what the loop of a training asks for, between two losses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "graph/status.h"

namespace tagflow::actors {

// A session with a saver, behind an interface, so that simulations run the
// same loop in virtual time. Its functions are called by one thread, one after
// the other.
class TrainingRun {
 public:
  virtual ~TrainingRun() = default;
  // Restores the newest checkpoint, and returns its step; nothing if there is
  // none.
  virtual Result<std::optional<int64_t>> restore() = 0;
  // Gives the variables their first values.
  virtual Status init() = 0;
  virtual Status step(int64_t number) = 0;
  // As those of Saver.
  virtual Status save(int64_t step) = 0;
  virtual Status save_if_due(int64_t step) = 0;
  virtual Status wait() = 0;
  virtual std::optional<int64_t> saved_step() const = 0;
  virtual Status close() = 0;
};

// Restores the newest checkpoint, or initializes; runs the steps after it, up
// to the one of number `steps`; saves when that is due, and at the end.
// `on_failed_save` may be null, and is told of a checkpoint that could not be
// written, which ends the run only if it is the one before the first step, or
// after the last. Errors of the run's functions.
Status run_steps(TrainingRun& run, int64_t steps,
                 const std::function<void(const Status&)>& on_failed_save);

}  // namespace tagflow::actors
