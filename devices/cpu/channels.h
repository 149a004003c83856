// Tensors whose channels are one of their dimensions.
#pragma once

#include <cstdint>

#include "devices/cpu/reduction/plan.h"

namespace tagflow::devices {

// A tensor as [outer, channels, inner].
struct Channels {
  int64_t outer = 1, count = 0, inner = 1;
};

// Whether the attribute data_format says that channels are dimension 1, not
// the last one.
Result<bool> channels_first(const KernelInfo& info);

// InvalidArgument for fewer than two dimensions. Of a tensor without elements
// only `count` has a meaning.
Result<Channels> split_channels(const KernelContext& context,
                                const Tensor& value, bool first);

// The sum over all but the channels of a tensor of so many elements.
ReductionPlan channel_sums(const Channels& channels, int64_t num_elements);

}  // namespace tagflow::devices
