// Lowering: the implementation of lower_functions(), internal to this folder.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/functions/instance.h"
#include "graph/functions/lower.h"
#include "graph/functions/traits.h"
#include "graph/hash_index.h"
#include "graph/limits.h"
#include "graph/passes/rewriting.h"
#include "graph/program.h"

namespace tagflow::graph {

// Lowers one graph: the program's, or that of a body. Works in rounds: each
// replaces all present functional nodes, and the replacements may contain
// others, for the next round.
class Lowering {
 public:
  // The bodies, made on demand; shared by all graphs of one program.
  class Bodies;

  // The graph is the body of `function`, or the program's if that is null.
  Lowering(Program& program, Bodies& bodies, const FunctionDef* function);

  Status run();

 private:
  // The functions that are being expanded, from the innermost outwards.
  struct Origin {
    const FunctionDef* function;
    const Origin* outer;  // null for the graph's own nodes
  };

  // A result as declared by its function.
  struct Promise {
    const FunctionDef* function;
    size_t result;
    DataType type;
    std::string tensor;  // the tensor that provides it
  };

  // The texts of the nodes that replace one.
  struct Draft {
    Node* node;
    // Prefixes of names: of the nodes of bodies, which keep their names in the
    // body, and of all others. The two differ if a body has a node name that
    // another node has.
    std::string prefix;
    std::string own = prefix;
    std::vector<std::string> inputs = {};    // tensors
    std::vector<std::string> controls = {};  // nodes that all others wait for
    std::vector<NodeDef> defs = {};
    // The parts of these that replace the node:
    std::vector<std::string> outputs = {};          // "name:port", by port
    std::string done = {};                          // instead of "^node"
    bool must_run = false;                          // whether `done` must
    std::vector<std::string> must_run_inside = {};  // nodes in loops of bodies
    std::vector<Promise> promises = {};
    // The functional nodes among `defs`, by name.
    std::vector<std::pair<std::string, const Origin*>> origins = {};
  };

  // Turns the call into a `_Call`: it has a frame of its own.
  Status keep_call(Node& node);
  size_t num_read(const Node& node);
  static AttrMap call_attrs(const FunctionInstance& function, int64_t body);

  // The reason why a draft cannot be added.
  enum class Clash : uint8_t { kNone, kInside, kWithGraph };

  // The nodes of one expanded call, in a draft.
  struct Inlined {
    std::vector<std::string> results;
    // Nodes to wait for the call's side effects, if it has any. They are live
    // even if the side effects are on an untaken branch of the body.
    std::vector<std::string> effects;
  };

  bool is_functional(std::string_view op) const;
  bool is_functional(const Node& node) const;
  bool is_replaced(const Node& node) const;
  // Edges from the node go to its replacement once the detour is applied.
  Status replace(Node* node, Detour& detour);
  Status dispatch(Draft& draft);
  // Two nodes with one name, or two loops with one frame.
  Clash clash_of(const Draft& draft) const;
  Status add(const Draft& draft, Detour& detour);

  // branches.cpp
  Status lower_call(Draft& draft, const FunctionRef& function);
  Status lower_if(Draft& draft);
  Status lower_case(Draft& draft);
  // Switches `args` on `selector`, expands the branches and merges them.
  Status lower_branches(Draft& draft, const std::string& selector,
                        const std::vector<FunctionInstance>& branches);

  // symbolic_gradient.cpp
  Status lower_symbolic_gradient(Draft& draft);

  // loops.cpp
  struct Loop;
  Status lower_while(Draft& draft);
  Status lower_for(Draft& draft);

  // Checked against the types of the node.
  Result<FunctionInstance> bind(const FunctionRef& reference,
                                std::span<const DataType> args,
                                std::span<const DataType> results) const;
  // Expands a function in place, or calls it if it is already being expanded.
  // Its nodes are below `part` of the draft; if that is empty, directly in the
  // draft.
  Result<Inlined> inline_call(Draft& draft, const FunctionInstance& function,
                              std::string_view part, Site site);
  Result<Inlined> call_body(Draft& draft, const FunctionInstance& function,
                            std::string_view part, const Site& site);

  // Adds a node of the draft, `name`; returns its full name.
  std::string put(Draft& draft, std::string_view name, std::string_view op,
                  std::vector<std::string> inputs, AttrMap attrs = {}) const;
  // Sets the draft's inputs and controls.
  void start(Draft& draft) const;
  void find_mortal();
  void find_frames();

  Program& program_;
  Graph& graph_;
  Bodies& bodies_;
  std::deque<Origin> origins_;
  std::unordered_map<std::string, const Origin*> origin_of_;  // by node
  std::unordered_set<std::string> frames_;  // names of the graph's frames
  const Origin* origin_ = nullptr;  // of the node that is being replaced
  // Nodes of this round whose inputs may be dead: they depend on control flow.
  std::unordered_set<const Node*> mortal_;
  // For this round, by node; computed on demand.
  std::unordered_map<const Node*, size_t> num_read_;
};

class Lowering::Bodies {
 public:
  Bodies(Program& program, const Limits& limits, OwnGradients own_gradients)
      : program_(program), limits_(limits), own_gradients_(own_gradients) {}
  // The number of the body, made on the first call.
  Result<int64_t> find(const FunctionLibrary& library,
                       const FunctionInstance& function);
  const FunctionLibrary& library() const { return program_.graph.library(); }
  // Adds functions that were made meanwhile. AlreadyExists if another one has
  // the name.
  Status add_functions(const FunctionLibrary& made);
  // Lowers all bodies, and those that they call in turn.
  Status lower_all();
  // ResourceExhausted if `more` nodes are too many; errors of the budget.
  Status count(size_t more);
  size_t num_nodes() const { return nodes_; }
  const Limits& limits() const { return limits_; }
  bool keeps_own_gradients() const {
    return own_gradients_ == OwnGradients::kKept;
  }
  // Of the functions that nodes call: `_Call`s, and those not yet lowered.
  LibraryTraits& traits();
  Traits traits_of(const Node& node);

 private:
  Result<std::unique_ptr<Program>> make(const FunctionLibrary& library,
                                        const FunctionInstance& function);

  Program& program_;
  const Limits& limits_;
  const OwnGradients own_gradients_;
  size_t nodes_ = 0;                         // of all graphs
  std::vector<FunctionInstance> functions_;  // by number
  HashIndex numbers_;                        // of `functions_`
  std::optional<LibraryTraits> traits_;      // made when needed
};

// InvalidArgument if the body's tensor has another type than the function
// declares. Outside the body a reference counts as its value.
Status check_result(const FunctionDef& function, size_t result, DataType type,
                    const Endpoint& tensor);

}  // namespace tagflow::graph
