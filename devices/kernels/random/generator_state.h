// Private to devices/kernels/random/: the state of a random generator, in a
// variable.
#pragma once

#include "devices/kernels/variable/state_inputs.h"
#include "devices/philox.h"

namespace tagflow::devices {

// The state of Philox: a counter of 128 bits, the low word first, and a key.
// Further words of the variable do not change. Valid while the variable's lock
// is held.
class GeneratorState {
 public:
  static constexpr int64_t kWords = 3;

  // The state in the variable of input 0. FailedPrecondition if it has no
  // value, InvalidArgument if the value is not a vector of at least three
  // words.
  static Result<GeneratorState> of(const KernelContext& context);

  std::span<const int64_t> words() const;
  Philox stream() const;
  // Advances the state: each number has 256 counters, as in TensorFlow.
  Status skip(const KernelContext& context, uint64_t numbers);

 private:
  explicit GeneratorState(Variable* variable) : variable_(variable) {}

  Variable* variable_;
};

}  // namespace tagflow::devices
