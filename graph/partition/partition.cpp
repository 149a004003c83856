#include "graph/partition/partition.h"

#include <cassert>
#include <limits>

#include "graph/analysis/validate.h"
#include "graph/function_uses.h"
#include "graph/partition/cutter.h"

namespace tagflow::graph {
namespace {

// Copies feeds, fetches and targets; nodes keep their order and ids.
void copy_ends(const Program& from, Program& to) {
  const auto twin = [&](const Endpoint& end) {
    Node* node = to.graph.node(end.node->id());
    return node == nullptr ? Endpoint{} : Endpoint{node, end.port};
  };
  for (const Endpoint& feed : from.feeds) to.feeds.push_back(twin(feed));
  for (const Endpoint& fetch : from.fetches) to.fetches.push_back(twin(fetch));
  for (const Node* target : from.targets)
    if (Node* node = to.graph.node(target->id())) to.targets.push_back(node);
}

// Copies the bodies that a program's calls name, recursively.
class BodyCopier {
 public:
  BodyCopier(const Program& whole, Program& part)
      : whole_(whole), part_(part), index_(whole.bodies.size(), kNone) {}

  Status run() {
    TAGFLOW_RETURN_IF_ERROR(renumber(part_.graph));
    for (size_t i = 0; i < part_.bodies.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(renumber(part_.bodies[i]->graph));
    return {};
  }

 private:
  static constexpr int64_t kNone = -1;

  Status renumber(Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (node->op() != "_Call") continue;
      TAGFLOW_ASSIGN(const auto body, node->attr<int64_t>("body"));
      graph.set_attr(node, "body", index_of(size_t(body)));
    }
    return {};
  }

  int64_t index_of(size_t body) {
    if (index_[body] != kNone) return index_[body];
    index_[body] = int64_t(part_.bodies.size());
    const Program& from = *whole_.bodies[body];
    Program& made = *part_.bodies.emplace_back(std::make_unique<Program>());
    made.name = from.name;
    made.graph = from.graph.clone();
    copy_ends(from, made);
    return index_[body];
  }

  const Program& whole_;
  Program& part_;
  std::vector<int64_t> index_;  // of the copies, by that of the body
};

#ifndef NDEBUG
bool is_valid(const Program& program) {
  // The cut program may have more nodes than the limit.
  const Limits limits{.max_nodes = std::numeric_limits<size_t>::max()};
  return validate(program.graph, limits).ok();
}
#endif

}  // namespace

Result<std::vector<Partition>> partition(Program program,
                                         std::span<const DeviceInfo> devices,
                                         const Placement& placement,
                                         const PartitionOptions& options) {
  Cutter cutter(program, devices, placement, options);
  TAGFLOW_RETURN_IF_ERROR(cutter.run());
  const std::span<Node* const> sends = cutter.sends();
  program.targets.insert(program.targets.end(), sends.begin(), sends.end());
  std::vector<NodeSet> shares(devices.size());
  for (Node* node : program.graph.nodes()) {
    if (!cutter.is_needed(*node)) continue;
    const uint32_t device = cutter.device_of(*node);
    program.graph.set_device(node, cutter.device_name(device));
    shares[device].insert(*node);
  }
  std::vector<Partition> parts;
  for (uint32_t device = 0; device < devices.size(); ++device) {
    if (shares[device].size() == 0) continue;
    Partition& part = parts.emplace_back();
    part.device = device;
    part.program.name = program.name;
    part.program.graph = program.graph.subset(shares[device]);
    copy_ends(program, part.program);
    TAGFLOW_RETURN_IF_ERROR(BodyCopier(program, part.program).run());
    part.program.graph.library() =
        functions_of_kernels(part.program, program.graph.library());
    assert(is_valid(part.program));
  }
  return parts;
}

}  // namespace tagflow::graph
