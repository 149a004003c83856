// Backprop: the walk from ys to xs, over the nodes of one region.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "autodiff/loop_region.h"
#include "autodiff/parts.h"
#include "autodiff/paths.h"

namespace tagflow::autodiff {

struct RuleEntry;  // autodiff/rule.h
struct SavePlan;   // autodiff/save_plan.h

// What the walks over all regions of one graph share.
struct Differentiation {
  Analysis& analysis;
  const Paths& paths;
  const Parts& parts;
  const Paths::Set& stops;  // taken for constants
  std::string prefix;  // of the names of what is added to the graph's loops
  std::unordered_map<FrameId, std::unique_ptr<ForwardLoop>> loops = {};

  ForwardLoop& forward_loop(FrameId frame);
};

// Note [The walk]
// Nodes are visited after all nodes that read them: then the gradients that
// came for each output are all there, and their sum is the output's. The node's
// rule gives gradients for its inputs, and so on to the xs. A loop is visited
// as a whole (loop_backprop.cpp). Control flow has duals in place of rules
// (conditional.cpp):
//
//   Switch   a Merge of its outputs' gradients
//   Merge    a Switch of its output's, by what chose the input
//   loop     a loop: Enter <-> Exit, NextIteration <-> Identity
//
// What is computed again is visited as a whole, too (Note [Parts]).
//
// Invariants:
//   1. The gradient of a tensor t is live exactly where t is, wherever y is
//      live. So where t is read by what is live in fewer cases, as a branch is,
//      zeros stand in for what does not come otherwise.
//   2. A sum never has both live and dead parts: by 1 all are as live as t.
//   3. Every gradient is computed from that of y.
class Backprop {
 public:
  Backprop(Differentiation& all, Region& region) : all_(all), region_(region) {}

  // A part of the gradient of `tensor`. Before run().
  void seed(const Endpoint& tensor, const Gradient& gradient) {
    parts_[tensor].push_back(gradient);
    seeds_.push_back(tensor);
  }
  // What the gradient of `outside` begins with, dense: a loop of which it is a
  // constant adds to that. Before run().
  void begin_sum(const Endpoint& outside, const Gradient& sum) {
    sums_[outside] = sum;
  }
  // Walks back from the seeds; an error is that of the scope.
  void run();
  // Sums that no loop has taken are parts as all. After run().
  void end_sums() {
    for (const auto& [outside, sum] : sums_) parts_[outside].push_back(sum);
    sums_.clear();
  }
  // The sum of the gradients that came for a tensor of the frame. REQUIRES: no
  // more will come.
  Gradient total(const Endpoint& tensor);
  // Of all tensors that have one.
  const std::unordered_map<Endpoint, Gradient, graph::EndpointHash>& totals()
      const {
    return totals_;
  }
  // Of a gradient of `like`: itself, or what it says of all rows.
  Output dense(const Endpoint& like, const Gradient& gradient);

 private:
  // A node, a loop that is a child of the frame, or a part.
  struct Unit {
    Node* node = nullptr;
    FrameId loop = FrameId::kRoot;
    const Part* part = nullptr;

    bool operator==(const Unit&) const = default;
  };
  struct UnitHash {
    size_t operator()(const Unit& unit) const {
      if (unit.part != nullptr) return std::hash<const Part*>()(unit.part);
      return unit.node != nullptr ? unit.node->id() : ~size_t(unit.loop);
    }
  };

  const graph::Scope& scope() const { return region_.scope(); }
  Analysis& analysis() { return all_.analysis; }
  bool is_source(const Endpoint& tensor);
  Unit unit_of(const Endpoint& tensor);
  // The tensors on paths that it reads.
  std::vector<Endpoint> inputs_of(const Unit& unit);
  std::vector<Unit> order();
  void visit(Node& node);
  void visit_by_rule(Node& node, std::vector<Gradient> grads);
  // Takes a part of the gradient of `tensor`, computed where what is live under
  // `live` is.
  void add(const Endpoint& tensor, Conditions::Set live,
           const Gradient& gradient);
  Gradient sum(const Endpoint& tensor, std::vector<Gradient> parts);

  // conditional.cpp
  void visit_switch(Node& node, std::vector<Gradient> grads);
  void visit_merge(Node& node, const Gradient& grad);
  // Zeros that are as live as `tensor`, of the kind of `like`.
  Gradient zeros(const Endpoint& tensor, const Gradient& like);
  // The gradient, which is live under the guards, or else zeros.
  Gradient lifted(const Endpoint& tensor, const Gradient& gradient,
                  const std::vector<Guard>& guards);
  std::vector<Gradient> switched(const Gradient& gradient,
                                 const Output& predicate, int ports);
  Gradient merged(const Endpoint& tensor, std::vector<Gradient> inputs);

  // part_backprop.cpp
  void visit_part(const Part& part);

  // loop_backprop.cpp
  void visit_loop(FrameId frame);
  struct LoopWork;
  struct LoopConstant;
  void end_gradients(LoopWork& work);
  std::vector<graph::Leaf> begin_gradients(LoopWork& work,
                                           graph::WhileOptions& options);
  void run_backward(LoopWork& work);
  std::vector<graph::Leaf> backward_body(LoopWork& work, const graph::Scope& in,
                                         const graph::Outputs& vars,
                                         const graph::structure::AddVariable&);
  static void add_to_sum(LoopConstant& constant, Backprop& outer,
                         Backprop& walk, BodyRegion& region, size_t first);
  std::vector<graph::Leaf> begin_sums(LoopConstant& constant,
                                      const Gradient& grad);
  static std::vector<graph::Leaf> next_sums(
      const graph::Scope& in, const std::vector<graph::Leaf>& sums,
      const graph::Outputs& before, const Gradient& grad);
  void hand_out(LoopWork& work, const graph::Outputs& results);

  // segment_backprop.cpp
  class Segments;
  void run_segments(LoopWork& work, const SavePlan& plan);

  Differentiation& all_;
  Region& region_;
  std::vector<Endpoint> seeds_;
  std::unordered_map<Endpoint, std::vector<Gradient>, graph::EndpointHash>
      parts_;
  std::unordered_map<Endpoint, Gradient, graph::EndpointHash> totals_, sums_;
};

}  // namespace tagflow::autodiff
