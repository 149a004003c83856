// Parallel calls of a function on the elements of a dataset.
#pragma once

#include "devices/kernels/dataset/function_call.h"

namespace tagflow::devices {

// A stage with the results of `function` for the elements of `input`, whose
// dataset is `elements`, in their order. Up to `calls` calls are open at once;
// a negative number stands for as many as there are workers. If
// `keeps_cardinality`, a function must not end the iteration. `self` owns the
// function.
Result<StagePtr> parallel_map(Segment& segment, const Dataset& self,
                              StagePtr input, const Dataset& elements,
                              const CapturedFunction& function, int64_t calls,
                              bool keeps_cardinality);

// As parallel_map(), of calls of any kind.
StagePtr parallel_calls(Segment& segment, const Dataset& self, StagePtr input,
                        StartCall call, int64_t calls, bool keeps_cardinality);

}  // namespace tagflow::devices
