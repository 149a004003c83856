#include "graph/ops/convolution_window.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tagflow::graph {
namespace {

// Larger values could cause overflow in sums of sizes, strides and paddings.
constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

Status check_list(const char* what, const std::vector<int64_t>& list, int rank,
                  bool may_be_empty) {
  if (list.empty() && may_be_empty) return Status();
  if (int(list.size()) != rank)
    return invalid_argument("{} has {} values, not {}", what, list.size(),
                            rank);
  for (int64_t value : list)
    if (value < 1 || value > kLargest)
      return invalid_argument("{} contains {}, which must be positive", what,
                              value);
  return Status();
}

template <class T>
Status read_if_there(const Node& node, const char* name, T& value) {
  if (!node.attrs().contains(name)) return Status();
  TAGFLOW_ASSIGN(value, node.attr<T>(name));
  return Status();
}

}  // namespace

Result<Positions> slide(const WindowDim& window, int64_t input,
                        Padding padding) {
  if (window.size < 0 || window.stride < 1 || window.dilation < 1)
    return invalid_argument(
        "a window of size {}, stride {}, dilation {} is not positive",
        window.size, window.stride, window.dilation);
  if (input > kLargest || window.size > kLargest / window.dilation)
    return invalid_argument(
        "a window of size {}, dilation {} over {} elements "
        "is too large",
        window.size, window.dilation, input);
  const int64_t extent = (window.size - 1) * window.dilation + 1;
  Positions positions;
  if (padding == Padding::kSame) {
    positions.count = (input + window.stride - 1) / window.stride;
    const int64_t covered = (positions.count - 1) * window.stride + extent;
    positions.pad_before = std::max<int64_t>(covered - input, 0) / 2;
    return positions;
  }
  if (padding == Padding::kExplicit) {
    positions.pad_before = window.pad_before;
    input += window.pad_before + window.pad_after;
  }
  positions.count = (input - extent + window.stride) / window.stride;
  if (input - extent + window.stride < 0)
    return invalid_argument(
        "a window over {} elements does not fit into {} with stride {}", extent,
        input, window.stride);
  return positions;
}

Result<int64_t> inferred_count(const WindowDim& window, int64_t input,
                               Padding padding) {
  TAGFLOW_ASSIGN(const Positions positions, slide(window, input, padding));
  if (padding == Padding::kSame) return positions.count;
  const int64_t padded = padding == Padding::kExplicit
                             ? input + window.pad_before + window.pad_after
                             : input;
  const int64_t extent = (window.size - 1) * window.dilation + 1;
  if (extent > padded)
    return invalid_argument("a window over {} elements does not fit into {}",
                            extent, padded);
  return positions.count;
}

WindowDim WindowAttrs::spatial(int i, int64_t filter_size) const {
  const auto at = size_t(spatial_dim(i));
  WindowDim window;
  window.size = filter_size;
  if (!stride.empty()) window.stride = stride[at];
  if (!dilation.empty()) window.dilation = dilation[at];
  if (!explicit_paddings.empty()) {
    window.pad_before = explicit_paddings[2 * at];
    window.pad_after = explicit_paddings[2 * at + 1];
  }
  return window;
}

Status WindowAttrs::check() const {
  TAGFLOW_RETURN_IF_ERROR(check_list("ksize", size, rank, true));
  TAGFLOW_RETURN_IF_ERROR(check_list("strides", stride, rank, true));
  TAGFLOW_RETURN_IF_ERROR(check_list("dilations", dilation, rank, true));
  if (padding != Padding::kExplicit) {
    if (!explicit_paddings.empty())
      return invalid_argument(
          "explicit_paddings are given but the padding is not EXPLICIT");
    return Status();
  }
  if (int(explicit_paddings.size()) != 2 * rank)
    return invalid_argument("explicit_paddings has {} values, not {}",
                            explicit_paddings.size(), 2 * rank);
  for (int i = 0; i < 2 * rank; ++i) {
    const int64_t value = explicit_paddings[size_t(i)];
    if (value < 0 || value > kLargest)
      return invalid_argument("explicit_paddings contains {}", value);
    if (value != 0 && (i / 2 == 0 || i / 2 == channel_dim()))
      return invalid_argument(
          "explicit_paddings pads the batch or the channels");
  }
  return Status();
}

Result<WindowAttrs> window_attrs(const Node& node, int rank) {
  WindowAttrs window;
  window.rank = rank;
  std::string format, padding;
  TAGFLOW_RETURN_IF_ERROR(read_if_there(node, "data_format", format));
  window.channels_first = format == "NCHW" || format == "NCDHW";
  TAGFLOW_RETURN_IF_ERROR(read_if_there(node, "padding", padding));
  window.padding = padding == "SAME"    ? Padding::kSame
                   : padding == "VALID" ? Padding::kValid
                                        : Padding::kExplicit;
  for (const auto& [name, list] :
       {std::pair("ksize", &window.size), std::pair("strides", &window.stride),
        std::pair("dilations", &window.dilation)}) {
    TAGFLOW_RETURN_IF_ERROR(read_if_there(node, name, *list));
    // An empty list would be treated as a missing one.
    if (list->empty() && node.attrs().contains(name))
      return invalid_argument("{} has 0 values, not {}", name, rank);
  }
  TAGFLOW_RETURN_IF_ERROR(
      read_if_there(node, "explicit_paddings", window.explicit_paddings));
  Status status = window.check();
  if (!status.ok())
    return std::move(status).with_prefix(
        fmt::format("[{}] node \"{}\": ", node.op(), node.name()));
  return window;
}

}  // namespace tagflow::graph
