// The messages that summary ops output.
#pragma once

#include <limits>

#include "devices/kernel.h"
#include "graph/proto/summary.pb.h"

namespace tagflow::devices {

// Sets output 0 to its bytes. ResourceExhausted if it has 2 GiB or more, which
// no message can have.
inline Status set_message(KernelContext& context,
                          const tensorflow::Summary& summary) {
  const size_t bytes = summary.ByteSizeLong();
  if (bytes > size_t(std::numeric_limits<int32_t>::max()))
    return error(Code::kResourceExhausted,
                 "[{}] a summary of {} bytes is too large for a message",
                 context.node().op(), bytes);
  context.set_output(0, Tensor::scalar(summary.SerializeAsString()));
  return {};
}

}  // namespace tagflow::devices
