// The demands of a program's nodes on their devices, alone and together: a part
// of Colocation, private to this folder.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "graph/placement/colocation.h"
#include "graph/placement/demands.h"
#include "graph/placement/relaxed_constraints.h"

namespace tagflow::graph {

// A node with its demand.
struct Member {
  const Node* node = nullptr;
  Demand demand;
};

// The demands of a program's nodes, including the functions that they call
// (Note [Groups]), and the constraints relaxed so far. Thread-compatible.
class NodeDemands {
 public:
  // All arguments outlive this. REQUIRES: as for Colocation::build().
  NodeDemands(const Program& program, std::span<const DeviceInfo> devices,
              const KernelCatalog& catalog, const ColocationOptions& options,
              DeviceSets& sets);

  // InvalidArgument if a single node, or the body of a function, has no device,
  // or if a constraint, or a class within a body, is malformed.
  Status find();

  // --- Results. REQUIRES: find() was ok.
  // The demand of a node of the program's graph. It has a device.
  const Demand& of(const Node& node) const { return of_nodes_[node.id()]; }
  // The devices whose memory the host can access.
  DeviceSets::Id hosts() const { return demands_.hosts(); }
  // Continues "they are together because ", for the nodes of a conflict.
  using WhyTogether =
      std::function<std::string(std::span<const Member* const>)>;
  // The devices on which all of them can run; a soft constraint that fits
  // nowhere is relaxed. InvalidArgument if there is no such device; only then
  // `why_together` is called.
  Result<DeviceSets::Id> common_set(std::span<const Member> members,
                                    const WhyTogether& why_together);
  // Which part of each node's constraint applies, by node id, in the program's
  // graph or that of a body.
  std::vector<Counting> counting_in(const Graph& graph) const;
  // The relaxed constraints, with reasons.
  std::vector<std::string> warnings() const { return relaxed_.warnings(); }

 private:
  // The number of the function that the node calls.
  std::optional<size_t> body_of(const Node& node) const;
  // Adds the demand of a call's function to that of the call itself.
  Demand with_body(const Node& node, Demand demand);
  // By node id. Each has a device.
  Result<std::vector<Demand>> demands_in(const Graph& graph);
  // For a single node: its constraint must be met, or is relaxed.
  Status relax(const Node& node, Demand& demand);
  Status find_demands_of_bodies();
  std::vector<Member> members_of_body(size_t body,
                                      std::span<const Demand> demands);
  // `: in function "f", "x" asks for "/cpu:1"`: the nodes that restrict the
  // devices of a call. Empty for other nodes.
  std::string limits_of_function(const Node& node) const;
  // The part of the member's demand that applies in a conflict.
  DeviceSets::Id strict(const Member& member) const;
  // Its part in a conflict, with the demand of its function.
  std::string explain(const Member& member) const;
  // A member that alone excludes the demand of member `i`; if there is none,
  // its neighbour.
  const Member& culprit(std::span<const Member> members, size_t i) const;
  // The error if the last of the members leaves no device. Names another member
  // if the two exclude each other, otherwise all that restricted the devices.
  Status conflict(std::span<const Member> members,
                  const WhyTogether& why_together) const;
  // Relaxes the node's constraint.
  void relax(const Node& node, std::string_view reason,
             RelaxedConstraints::Outcome outcome =
                 RelaxedConstraints::Outcome::kWithOthers) {
    relaxed_.add(node, reason, outcome);
  }

  const Program& program_;
  const ColocationOptions& options_;
  DeviceSets& sets_;
  Demands demands_;
  std::vector<Demand> of_nodes_;   // by node id
  std::vector<Demand> of_bodies_;  // the demand of a call of each body
  // For each body, the nodes that restrict the devices of a call.
  std::vector<std::vector<Member>> limits_of_bodies_;
  RelaxedConstraints relaxed_;
  // Their constraints are ignored: Note [What stays on the host].
  std::unordered_set<const Node*> asks_nothing_;
};

}  // namespace tagflow::graph
