// HandleUses: which ops functions apply to the handles that they take.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/function.h"
#include "graph/graph.h"

namespace tagflow::actors {

// Looks into bodies as the library has them, calls in calls included. Of what
// passes a handle on, only those that pass nothing else are followed: control
// flow and Identity, but not the results of calls. Does not keep the library.
class HandleUses {
 public:
  // REQUIRES: the library outlives this.
  explicit HandleUses(const graph::FunctionLibrary& library)
      : library_(library) {}

  // Whether the node calls functions: by an attribute, or as its op.
  bool is_call(const graph::Node& node) const {
    return !called(node.op(), node.attrs()).empty();
  }
  // Calls use(op) for each use of input `input` in what the node calls.
  void visit(const graph::Node& call, int input,
             const std::function<void(const std::string& op)>& use);

 private:
  struct Use {
    const graph::NodeDef* node;
    int input;
  };
  // By the argument or node that is used.
  using Uses = std::unordered_multimap<std::string_view, Use>;
  using Functions = std::vector<const graph::FunctionDef*>;

  Functions called(const std::string& op, const AttrMap& attrs) const;
  const Uses& uses_in(const graph::FunctionDef& function);

  const graph::FunctionLibrary& library_;
  std::map<const graph::FunctionDef*, Uses> uses_;
};

}  // namespace tagflow::actors
