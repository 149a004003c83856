// Backprop: the walk from ys to xs, over the nodes of one region.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "autodiff/blocks.h"
#include "autodiff/loop_region.h"
#include "autodiff/paths.h"

namespace tagflow::autodiff {

struct RuleEntry;  // autodiff/rule.h
struct SavePlan;   // autodiff/save_plan.h

// What the walks over all regions of one graph share.
struct Differentiation {
  Analysis& analysis;
  const Paths& paths;
  const Blocks& blocks;
  const Paths::Set& stops;  // taken for constants
  std::string prefix;       // of the names of nodes added to the graph's loops
  std::unordered_map<FrameId, std::unique_ptr<ForwardLoop>> loops = {};

  ForwardLoop& forward_loop(FrameId frame);
};

// Note [The walk]
// A node is visited after all nodes that read it. By then all partial gradients
// of its outputs are there, and the gradient of an output is their sum. The
// node's rule gives gradients for its inputs, and so on to the xs. A loop is
// visited as a whole (loop_backprop.cpp). Control flow has duals instead of
// rules (conditional.cpp):
//
//   Switch a Merge of the gradients of its outputs Merge a Switch of its
//   output's gradient, by what chose the input loop a loop: Enter <-> Exit,
//   NextIteration <-> Identity
//
// A block that is recomputed is visited as a whole, too (Note [Blocks]).
//
// Invariants:
//   1. The gradient of a tensor t is live exactly where t is, wherever y is
//      live. So if a reader of t is live in fewer cases, as in a branch,
//      zeros take the place of its gradient in the other cases.
//   2. A sum never has both live and dead terms: by 1, all are as live as t.
//   3. Every gradient is computed from that of y.
class Backprop {
 public:
  Backprop(Differentiation& all, Region& region) : all_(all), region_(region) {}

  // Adds a partial gradient of `tensor`. REQUIRES: before run().
  void seed(const Endpoint& tensor, const Gradient& gradient) {
    partials_[tensor].push_back(gradient);
    seeds_.push_back(tensor);
  }
  // Sets the initial value of the gradient of `outside`, which is dense. A loop
  // that has `outside` as a constant adds to it. REQUIRES: before run().
  void begin_sum(const Endpoint& outside, const Gradient& sum) {
    sums_[outside] = sum;
  }
  // Walks back from the seeds; errors are kept by the scope.
  void run();
  // Turns the sums that no loop has taken into ordinary partial gradients.
  // REQUIRES: after run().
  void end_sums() {
    for (const auto& [outside, sum] : sums_) partials_[outside].push_back(sum);
    sums_.clear();
  }
  // The sum of all partial gradients of a tensor of the frame. REQUIRES: no
  // more of them will be added.
  Gradient total(const Endpoint& tensor);
  // The gradients of all tensors that have one.
  const std::unordered_map<Endpoint, Gradient, graph::EndpointHash>& totals()
      const {
    return totals_;
  }
  // The gradient of `like` as a dense tensor.
  Output dense(const Endpoint& like, const Gradient& gradient);

 private:
  // A node, a loop that is a child of the frame, or a block.
  struct Unit {
    Node* node = nullptr;
    FrameId loop = FrameId::kRoot;
    const Block* block = nullptr;

    bool operator==(const Unit&) const = default;
  };
  struct UnitHash {
    size_t operator()(const Unit& unit) const {
      if (unit.block != nullptr) return std::hash<const Block*>()(unit.block);
      return unit.node != nullptr ? unit.node->id() : ~size_t(unit.loop);
    }
  };

  const graph::Scope& scope() const { return region_.scope(); }
  Analysis& analysis() { return all_.analysis; }
  bool is_source(const Endpoint& tensor);
  Unit unit_of(const Endpoint& tensor);
  // The tensors on paths that the unit reads.
  std::vector<Endpoint> inputs_of(const Unit& unit);
  std::vector<Unit> order();
  void visit(Node& node);
  void visit_by_rule(Node& node, std::vector<Gradient> grads);
  // Adds a partial gradient of `tensor` that is live under `live`.
  void add(const Endpoint& tensor, Conditions::Set live,
           const Gradient& gradient);
  Gradient sum(const Endpoint& tensor, std::vector<Gradient> partials);

  // conditional.cpp
  void visit_switch(Node& node, std::vector<Gradient> grads);
  void visit_merge(Node& node, const Gradient& grad);
  // Zeros that are as live as `tensor`, sparse or dense as `like` is.
  Gradient zeros(const Endpoint& tensor, const Gradient& like);
  // The gradient where the guards hold, and zeros elsewhere.
  Gradient lifted(const Endpoint& tensor, const Gradient& gradient,
                  const std::vector<Guard>& guards);
  std::vector<Gradient> switched(const Gradient& gradient,
                                 const Output& predicate, int ports);
  Gradient merged(const Endpoint& tensor, std::vector<Gradient> inputs);

  // block_backprop.cpp
  void visit_block(const Block& block);

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
      partials_;
  std::unordered_map<Endpoint, Gradient, graph::EndpointHash> totals_, sums_;
};

}  // namespace tagflow::autodiff
