// Private to devices/kernels/file/*.cpp.
#pragma once

#include <functional>

#include "devices/kernel.h"
#include "graph/status.h"

namespace tagflow::devices {

// What a kernel that opens, writes or renames files takes, at least.
inline constexpr double kFileNanoseconds = 1e6;

// Sets each output of a kernel to what `read` returns for it, several at once.
// `bytes` are those of all. The first error, after which no further output is
// read; Cancelled if the step ends meanwhile.
Status read_outputs(KernelContext& context, double bytes,
                    const std::function<Result<Tensor>(int output)>& read);

}  // namespace tagflow::devices
