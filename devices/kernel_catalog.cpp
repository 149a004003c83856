#include "devices/kernel_catalog.h"

#include <algorithm>
#include <array>

namespace tagflow::devices {
namespace {

bool is_performed_by_engine(const graph::Node& node) {
  constexpr std::array<std::string_view, 5> kOps = {
      "_Send", "_Recv", "_HostSend", "_HostRecv", "_Call"};
  return node.is_switch() || node.is_merge() || node.is_enter() ||
         node.is_exit() || node.is_next_iteration() || node.is_loop_cond() ||
         node.is_control_trigger() ||
         std::find(kOps.begin(), kOps.end(), node.op()) != kOps.end();
}

}  // namespace

bool RegisteredKernels::has_kernel(const graph::Node& node,
                                   std::string_view type) const {
  if (is_performed_by_engine(node)) return !registry_.is_excluded(node, type);
  return registry_.has_kernel(node, type);
}

}  // namespace tagflow::devices
