// Tensors with a channel dimension.
#pragma once

#include <cstdint>

#include "devices/kernels/reduction/plan.h"

namespace tagflow::devices {

// A tensor as [outer, channels, inner].
struct Channels {
  int64_t outer = 1, count = 0, inner = 1;
};

// Whether the attribute data_format says that channels are dimension 1 instead
// of the last one.
Result<bool> channels_first(const KernelInfo& info);

// InvalidArgument for fewer than two dimensions. For a tensor without elements
// only `count` is valid.
Result<Channels> split_channels(const KernelContext& context,
                                const Tensor& value, bool first);

// The plan that sums `count` elements over all dimensions but the channels.
ReductionPlan channel_sums(const Channels& channels, int64_t num_elements);

}  // namespace tagflow::devices
