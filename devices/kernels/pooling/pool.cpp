#include "devices/kernels/pooling/pool.h"

namespace tagflow::devices {

Result<graph::WindowAttrs> pool_attrs(const KernelInfo& info) {
  const bool is_3d = info.node().op().find("3D") != std::string::npos;
  return graph::window_attrs(info.node(), is_3d ? 5 : 4);
}

Result<graph::WindowAttrs> complete_window(const KernelContext& context,
                                           graph::WindowAttrs window,
                                           int first) {
  if (context.num_inputs() <= first) return window;
  for (int i : {first, first + 1}) {
    const Tensor& tensor = context.input(i);
    if (tensor.rank() != 1)
      return context.fail("input {} is {}, not a vector", i, tensor.describe());
    auto& list = i == first ? window.size : window.stride;
    list.assign(tensor.data<int32_t>(),
                tensor.data<int32_t>() + tensor.num_elements());
    // Otherwise an empty list would count as missing.
    if (list.empty()) return context.fail("input {} is empty", i);
  }
  Status status = window.check();
  if (!status.ok()) return context.fail("{}", status.message());
  return window;
}

Status check_pool_window(const KernelContext& context,
                         const graph::WindowAttrs& window, bool over_channels) {
  const auto channel = size_t(window.channel_dim());
  const auto spans = [&](size_t at) {
    return window.size[at] != 1 || window.stride[at] != 1;
  };
  if (spans(0) || (!over_channels && spans(channel)))
    return error(Code::kUnimplemented,
                 "[{}] the window spans the batch or the channels",
                 context.node().op());
  for (size_t i = 0; i < window.explicit_paddings.size(); ++i)
    if (window.explicit_paddings[i] >= window.size[i / 2] &&
        window.explicit_paddings[i] > 0)
      return context.fail("padding {} is not below the window's size {}",
                          window.explicit_paddings[i], window.size[i / 2]);
  return Status();
}

}  // namespace tagflow::devices
