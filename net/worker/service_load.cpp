// What a worker says of itself when the cluster is asked for its status.
#include <string>
#include <utility>

#include "net/worker/service.h"

namespace tagflow::net {

Load Service::load() {
  Load load;
  load.incarnation = incarnation();
  for (const auto& device : devices_->devices())
    load.tensor_bytes += uint64_t(device->memory().in_use);
  const std::lock_guard lock(mutex_);
  load.steps_running = running_.size();
  load.steps_finished = num_finished_;
  load.executables = executables_.count();
  const auto add = [&load](std::string peer, const Traffic& traffic) {
    load.links.push_back({std::move(peer), traffic.round_trip_ns,
                          traffic.bytes_in, traffic.bytes_out});
  };
  load.has_master = master_ != nullptr;
  if (load.has_master) add(master_->name(), master_->traffic());
  for (const auto& [id, sessions] : sessions_)
    if (sessions.back()->lost().ok()) add(id.first, sessions.back()->traffic());
  return load;
}

}  // namespace tagflow::net
