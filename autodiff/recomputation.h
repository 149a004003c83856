// Recomputation: a function that recomputes nodes of a graph for their
// gradient.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autodiff/backprop.h"
#include "graph/function.h"

namespace tagflow::autodiff {

// Note [Recomputation]
// The gradient of values that are not kept is a call of a function, which
// consists of a copy of the nodes that compute them and of the copy's gradient:
//
//   arguments  what comes in from outside, what ran once, and the gradients of
//              what comes out
//   body       the copy, and its gradient
//   results    the gradients of what came in
//
// The body begins with Identities of the inputs, which wait for the gradients.
// So nothing is computed before it is needed, and no pass merges the copy with
// the original. Inside the function, the copy's values are kept as usual, and
// for a gradient of higher order the call is lowered like any call.
//
// A node that runs once is not copied (Stateful in autodiff/blocks.h): its
// outputs are arguments. Within a loop, they are in a list with an element for
// each trip. If a gradient leads through such a node, an IdentityN of its
// outputs and inputs stands for it, and the rule of its op is applied to that
// (RuleContext).
//
// One object makes one function, in this order: arguments for the gradients,
// copy(), the gradient, finish(), call().
class Recomputation {
 public:
  // `members` are in the frame `around` or in loops within it. All arguments
  // outlive this.
  Recomputation(Differentiation& all, FrameId around, const NodeFlags& members);

  // Adds an argument of that type, with the shape of a tensor of the graph
  // around (a scalar for a variant), and returns its tensor in the scope. The
  // inputs of the copy wait for it.
  Output add_argument(const Endpoint& like, DataType type);
  // Does the same for an argument that nothing waits for.
  Output add_plain_argument(const Endpoint& like, DataType type);
  // Restricts the copy to a segment of a loop of the frame: the trips [first,
  // last), which are both arguments of the function, as are the initial values
  // of the loop's variables. REQUIRES: before copy().
  struct Segment {
    Output first, last;
  };
  Segment set_segment(const Loop& loop);

  // Copies what leads to the tensors.
  Status copy(std::span<const Endpoint> tensors);
  // The tensor's counterpart in the copy, or null.
  Endpoint twin(const Endpoint& tensor) const;
  // The counterparts of the tensors that are taken for constants.
  std::vector<Endpoint> stops() const;
  const graph::Scope& scope() const { return scope_; }
  // The initial value of a variable of the segment, and its value after the
  // last trip. REQUIRES: it was copied.
  Output state(const LoopVariable& variable) const;
  Output state_at_end(const LoopVariable& variable);

  // Makes the function with these results, tensors of the scope, and with the
  // arguments that they need.
  Status finish(std::span<const Output> results);
  // Whether the results need the argument, or the variable's. REQUIRES: after
  // finish().
  bool needs(const Output& argument) const;
  bool needs(const LoopVariable& variable) const;
  // Makes a node in `s` that calls the function. Inputs of the copy get their
  // values from the region; `values` are the other arguments. REQUIRES: after
  // finish().
  Result<graph::OpResult> call(
      const graph::Scope& s, Region& region,
      const std::vector<std::pair<Output, Output>>& values);

 private:
  struct Argument {
    std::string name;
    DataType type = DataType::kInvalid;
    PartialShape shape = {};
    Endpoint outside = {};  // null: call() gets the value
    bool is_flow = false;
    bool is_gated = true;  // read through an Identity that waits
  };

  // The number of a trip, in all trips and in those that go on.
  struct Numbers {
    std::string all;
    std::string going_on;
  };

  Analysis& analysis() { return all_.analysis; }
  std::string fresh(std::string_view name);
  Output add_placeholder(std::string_view name, DataType type,
                         PartialShape shape);
  bool is_state(const Node& enter) const;
  bool runs_once(const Node& node);
  bool leads_on(const Node& node) const;
  bool is_guarded(const Endpoint& tensor);
  FrameId frame_of(const Endpoint& tensor) const;

  // Marks what is needed, from the tensors backwards.
  Status need(const Endpoint& tensor);
  Status need_inputs(const Node& node);
  void need_control(const Node& node);
  // The copied members that the node waits for besides its inputs. If one of
  // these or the node runs once, those that it has waited for and read.
  std::vector<const Node*> waits_of(const Node& node);
  Status need_kept(const Endpoint& tensor);
  Status need_number(FrameId frame);
  void add_state(const Node& enter);
  Status find_needed(std::span<const Endpoint> tensors);

  // Definitions of the copy.
  std::string put(std::string name, std::string_view op,
                  std::vector<std::string> inputs, AttrMap attrs = {});
  const std::string& argument(const Endpoint& tensor);
  std::string text_of(const Endpoint& tensor);
  std::string entered(const std::string& tensor, FrameId from, FrameId frame);
  const Numbers& numbers_of(FrameId frame);
  std::string kept_text(const Endpoint& tensor);
  void define(const Node& node);
  void define_stand_in(const Node& node);
  void define_arguments();
  void take_shapes();

  Differentiation& all_;
  const FrameId around_;
  const NodeFlags& members_;
  Stateful stateful_;
  graph::Graph graph_;
  graph::Scope scope_;
  std::vector<Argument> arguments_;
  std::vector<std::string> awaited_;
  const Loop* segment_ = nullptr;
  std::string first_, last_;                             // of a segment
  std::unordered_map<const Node*, std::string> states_;  // by their Enters
  std::vector<const Argument*> used_;
  std::vector<Output> results_;
  std::string function_;
  bool is_stateful_ = false;
  std::unordered_map<Endpoint, size_t, graph::EndpointHash> argument_of_;
  std::unordered_set<std::string> names_;
  std::vector<graph::NodeDef> defs_;

  std::vector<const Node*> open_;
  std::vector<const Node*> needed_;
  std::unordered_set<const Node*> is_needed_;
  std::unordered_set<const Node*> passed_;  // run once; awaited
  std::unordered_set<Endpoint, graph::EndpointHash> kept_;
  std::unordered_map<const Node*, bool> runs_once_;
  // By a value that is kept in a loop: the list that leaves the loop.
  std::unordered_map<Endpoint, Endpoint, graph::EndpointHash> lists_;
  std::unordered_map<std::string, std::string> entered_;
  std::unordered_set<FrameId> numbered_;
  std::unordered_map<FrameId, Numbers> numbers_;
  std::unordered_map<Endpoint, std::string, graph::EndpointHash> kept_texts_;
};

}  // namespace tagflow::autodiff
