#include "graph/placement/scatter.h"

#include <random>

#include "graph/placement/colocation.h"

namespace tagflow::graph {

Result<Placement> scatter(const Program& program,
                          std::span<const DeviceInfo> devices,
                          const KernelCatalog& catalog, uint64_t seed,
                          bool soft) {
  TAGFLOW_ASSIGN(const Colocation groups,
                 Colocation::build(program, devices, catalog, {soft}));
  // The distributions of the standard library differ between machines.
  std::mt19937_64 random(seed);
  std::vector<uint32_t> drawn(groups.size());
  for (uint32_t group = 0; group < drawn.size(); ++group) {
    const auto choice = groups.devices_of(group);
    drawn[group] = choice[random() % choice.size()];
  }
  Placement placement;
  placement.device_of.resize(program.graph.end_id());
  for (const Node* node : program.graph.nodes())
    placement.device_of[node->id()] = drawn[groups.group_of(*node)];
  return placement;
}

}  // namespace tagflow::graph
