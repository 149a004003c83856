#include "actors/session/backend.h"

#include <iterator>
#include <utility>

#include "actors/plan/compile.h"
#include "actors/shared_state.h"
#include "devices/kernel_catalog.h"

namespace tagflow::actors {

LocalBackend::LocalBackend(std::shared_ptr<SharedState> state,
                           std::shared_ptr<DeviceSet> devices,
                           std::shared_ptr<const devices::HostAccess> host)
    : state_(std::move(state)),
      devices_(std::move(devices)),
      host_(std::move(host)) {}

const graph::KernelCatalog& LocalBackend::kernels() const {
  static const devices::RegisteredKernels kernels;
  return kernels;
}

Result<Backend::Made> LocalBackend::make(
    std::vector<graph::Partition> partitions, std::vector<std::string> fetches,
    const SessionOptions& options, graph::Budget* budget) {
  return make_local(std::move(partitions), std::move(fetches), options,
                    devices_, host_, std::nullopt, budget);
}

Result<Backend::Made> make_local(
    std::vector<graph::Partition> partitions, std::vector<std::string> fetches,
    const SessionOptions& options, const std::shared_ptr<DeviceSet>& devices,
    std::shared_ptr<const devices::HostAccess> host, std::optional<Peers> peers,
    graph::Budget* budget) {
  TAGFLOW_ASSIGN(auto plans, compile(std::move(partitions), options,
                                     devices->devices(), budget));
  Backend::Made made;
  for (const auto& plan : plans)
    made.warnings.insert(made.warnings.end(), plan->warnings.begin(),
                         plan->warnings.end());
  made.executable = std::make_shared<LocalExecutable>(
      devices,
      RunSettings{options.max_call_depth, options.max_open_calls,
                  options.hand_off},
      std::move(plans), std::move(fetches), std::move(host), std::move(peers));
  return made;
}

Status LocalBackend::reset(const std::vector<std::string>& containers) {
  state_->resources().reset(containers);
  return {};
}

}  // namespace tagflow::actors
