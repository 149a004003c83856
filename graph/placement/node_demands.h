// What the nodes of a program ask of their devices, alone and together: a part
// of the work behind Colocation, and private to this folder.
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

// A node with what it asks for.
struct Member {
  const Node* node = nullptr;
  Demand demand;
};

// The demands of a program's nodes, with those of the functions that they call
// (Note [Groups]), and the constraints that gave way meanwhile.
// Thread-compatible.
class NodeDemands {
 public:
  // All outlive this. REQUIRES: as for Colocation::build().
  NodeDemands(const Program& program, std::span<const DeviceInfo> devices,
              const KernelCatalog& catalog, const ColocationOptions& options,
              DeviceSets& sets);

  // InvalidArgument where a node alone, or the body of a function, has no
  // device; and where a constraint, or a class within a body, is malformed.
  Status find();

  // --- Of what was found. REQUIRES: find() was ok.
  // Of a node of the program's graph. It has a device.
  const Demand& of(const Node& node) const { return of_nodes_[node.id()]; }
  // The devices whose memory the host reads.
  DeviceSets::Id hosts() const { return demands_.hosts(); }
  // Goes on from "they are together because ": of those in a conflict.
  using WhyTogether =
      std::function<std::string(std::span<const Member* const>)>;
  // Where all of them can run; a soft constraint that fits nowhere gives way.
  // InvalidArgument where there is no such device; `why_together` is called
  // only then.
  Result<DeviceSets::Id> common_set(std::span<const Member> members,
                                    const WhyTogether& why_together);
  // What counts of each node's constraint, by node id, in the program's graph
  // or that of a body.
  std::vector<Counting> counting_in(const Graph& graph) const;
  // Which constraints gave way, and why.
  std::vector<std::string> warnings() const { return relaxed_.warnings(); }

 private:
  // The number of the function that it calls.
  std::optional<size_t> body_of(const Node& node) const;
  // With what a call's function needs, beside what the call itself does.
  Demand with_body(const Node& node, Demand demand);
  // By node id. Each has a device.
  Result<std::vector<Demand>> demands_in(const Graph& graph);
  // A node alone: its constraint has to fit, or to give way.
  Status relax(const Node& node, Demand& demand);
  Status find_demands_of_bodies();
  std::vector<Member> members_of_body(size_t body,
                                      std::span<const Demand> demands);
  // `: in function "f", "x" asks for "/cpu:1"`: the nodes because of which a
  // call cannot be everywhere. Nothing for other nodes.
  std::string limits_of_function(const Node& node) const;
  // What of the member counts in a conflict.
  DeviceSets::Id strict(const Member& member) const;
  // Its part in a conflict, with what its function asks for.
  std::string explain(const Member& member) const;
  // Another member that alone rules out what member `i` asks for; where there
  // is none, its neighbour.
  const Member& culprit(std::span<const Member> members, size_t i) const;
  // The last of the members leaves no device. Names another one where these two
  // exclude one another, else those that made the choice smaller.
  Status conflict(std::span<const Member> members,
                  const WhyTogether& why_together) const;
  // The node's constraint counts no longer.
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
  std::vector<Demand> of_bodies_;  // what a call of each asks for
  // Of each body the nodes because of which a call cannot be everywhere.
  std::vector<std::vector<Member>> limits_of_bodies_;
  RelaxedConstraints relaxed_;
  // What they say does not count: Note [What stays on the host].
  std::unordered_set<const Node*> asks_nothing_;
};

}  // namespace tagflow::graph
