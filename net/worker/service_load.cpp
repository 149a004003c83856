// What a worker says of itself to those who ask for the status of the cluster,
// and to whoever watches the process.
#include <string>
#include <utility>
#include <vector>

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
  load.has_master = master_ != nullptr;
  for (LinkFigures& link : links())
    load.links.push_back({std::move(link.peer), link.traffic.round_trip_ns,
                          link.traffic.bytes_in, link.traffic.bytes_out});
  return load;
}

std::vector<LinkFigures> Service::links() const {
  std::vector<LinkFigures> links;
  if (master_ != nullptr)
    links.push_back({master_->name(), master_->traffic()});
  for (const auto& [id, sessions] : sessions_)
    if (const PeerSession& last = *sessions.back().session; last.lost().ok())
      links.push_back({id.first, last.traffic()});
  return links;
}

void Service::add_to(WorkerFigures& figures) {
  const std::lock_guard lock(mutex_);
  figures.has_master = master_ != nullptr;
  figures.executables = executables_.count();
  figures.links = links();
}

}  // namespace tagflow::net
