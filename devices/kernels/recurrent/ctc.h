// The common part of the ops on sequences without alignment: logits of shape
// [steps, batch, classes], of which each row of the batch uses the first ones.
#pragma once

#include "devices/kernel.h"

namespace tagflow::devices {

struct CtcSizes {
  int64_t steps = 0, batch = 0, classes = 0;
  const int32_t* lengths = nullptr;  // of the rows, each at most `steps`

  // Where the logits of one step of a row begin.
  int64_t at(int64_t step, int64_t row) const {
    return (step * batch + row) * classes;
  }
};

// Input 0, the logits, and the lengths in input `lengths`. InvalidArgument if
// they do not fit; FailedPrecondition, as in TensorFlow's decoders, if there is
// another number of lengths and `is_decoder`.
Result<CtcSizes> ctc_sizes(const KernelContext& context, int lengths,
                           bool is_decoder);

// log(exp(a) + exp(b)).
template <class T>
T log_add(T a, T b);

// The logarithm of the sum of all classes' exponentials.
template <class T>
T log_sum(const T* logits, int64_t classes);

}  // namespace tagflow::devices
