#include "graph/placement/device_info.h"

namespace tagflow::graph {

bool in_one_task(const DeviceName& a, const DeviceName& b) {
  return a.task == b.task && a.replica == b.replica && a.job == b.job;
}

bool share_memory(const DeviceInfo& a, const DeviceInfo& b) {
  return a.host_memory && b.host_memory && in_one_task(a.name, b.name);
}

}  // namespace tagflow::graph
