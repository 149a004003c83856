// Lowering: the work of lower_functions(). Internal to graph/functions.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/functions/instance.h"
#include "graph/functions/traits.h"
#include "graph/hash_index.h"
#include "graph/limits.h"
#include "graph/passes/rewriting.h"
#include "graph/program.h"

namespace tagflow::graph {

// Lowers one graph: the program's, or that of a body. Works in rounds: each
// replaces all functional nodes that are there, and what it puts in their
// place may hold others, for the next one.
class Lowering {
 public:
  // What all graphs of one program share: the bodies, made on demand.
  class Bodies;

  // The graph is the body of `function`, or, where that is null, no body.
  Lowering(Program& program, Bodies& bodies, const FunctionDef* function);

  Status run();

 private:
  // The functions that are being expanded, from the innermost outwards.
  struct Origin {
    const FunctionDef* function;
    const Origin* outer;  // null for the graph's own nodes
  };

  // A result as its function declares it.
  struct Promise {
    const FunctionDef* function;
    size_t result;
    DataType type;
    std::string tensor;  // what gives it
  };

  // The texts of the nodes that replace one.
  struct Draft {
    Node* node;
    // Names begin with it: those of the nodes of bodies, which follow the
    // names there, and those of all others. They are two where such a body has
    // a name that another node has.
    std::string prefix;
    std::string own = prefix;
    std::vector<std::string> inputs = {};    // tensors
    std::vector<std::string> controls = {};  // nodes that all of it waits for
    std::vector<NodeDef> defs = {};
    // Of these, what stands for the node:
    std::vector<std::string> outputs = {};          // "name:port", by port
    std::string done = {};                          // instead of "^node"
    bool must_run = false;                          // `done`
    std::vector<std::string> must_run_inside = {};  // nodes in loops of bodies
    std::vector<Promise> promises = {};
    // Of the functional nodes among `defs`, by name.
    std::vector<std::pair<std::string, const Origin*>> origins = {};
  };

  // A call that becomes a `_Call` as it is: it has a frame of its own.
  Status keep_call(Node& node);
  size_t num_read(const Node& node);
  static AttrMap call_attrs(const FunctionInstance& function, int64_t body);

  // What keeps a draft from being added.
  enum class Clash { kNone, kInside, kWithGraph };

  // What one call became, in a draft.
  struct Inlined {
    std::vector<std::string> results;
    // Nodes, for what waits for the call's side effects, if it has any. Live
    // also where these are on a branch of the body that is not taken.
    std::vector<std::string> effects;
  };

  bool is_functional(std::string_view op) const;
  bool is_functional(const Node& node) const;
  // What uses the node is led to what replaces it, once the detour is applied.
  Status replace(Node* node, Detour& detour);
  Status dispatch(Draft& draft);
  // Two nodes of one name, or two loops of one frame.
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

  // Checked against the types that the node has.
  Result<FunctionInstance> bind(const FunctionRef& reference,
                                std::span<const DataType> args,
                                std::span<const DataType> results) const;
  // Expands a function in place, or calls it where it is being expanded. Its
  // nodes are below `part` of the draft, or, where that is empty, the draft.
  Result<Inlined> inline_call(Draft& draft, const FunctionInstance& function,
                              std::string_view part, Site site);
  Result<Inlined> call_body(Draft& draft, const FunctionInstance& function,
                            std::string_view part, const Site& site);

  // The draft's own node `name`, by its full name.
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
  // Nodes of this round whose inputs may be dead: what control flow leads to.
  std::unordered_set<const Node*> mortal_;
  // Of this round, by node; empty until it is asked for.
  std::unordered_map<const Node*, size_t> num_read_;
};

class Lowering::Bodies {
 public:
  Bodies(Program& program, const Limits& limits)
      : program_(program), limits_(limits) {}
  // The number of the body, made on the first call.
  Result<int64_t> find(const FunctionLibrary& library,
                       const FunctionInstance& function);
  const FunctionLibrary& library() const { return program_.graph.library(); }
  // Takes in functions that were made meanwhile. AlreadyExists where there is
  // another one of the name.
  Status add_functions(const FunctionLibrary& made);
  // Lowers all bodies, and those that they call in turn.
  Status lower_all();
  // ResourceExhausted where `more` nodes are too many.
  Status count(size_t more);
  size_t num_nodes() const { return nodes_; }
  const Limits& limits() const { return limits_; }
  // Of the functions that nodes call: `_Call`s, and those not yet lowered.
  LibraryTraits& traits();
  Traits traits_of(const Node& node);

 private:
  Result<std::unique_ptr<Program>> make(const FunctionLibrary& library,
                                        const FunctionInstance& function);

  Program& program_;
  const Limits& limits_;
  size_t nodes_ = 0;                         // of all graphs
  std::vector<FunctionInstance> functions_;  // by number
  HashIndex numbers_;                        // of `functions_`
  std::optional<LibraryTraits> traits_;      // made when needed
};

// InvalidArgument where the body's tensor is of another type than the function
// says. What is a reference there is none outside.
Status check_result(const FunctionDef& function, size_t result, DataType type,
                    const Endpoint& tensor);

}  // namespace tagflow::graph
