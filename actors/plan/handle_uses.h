// HandleUses: what functions do with handles that are their arguments.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/function.h"
#include "graph/node.h"
#include "graph/placement/union_find.h"

namespace tagflow::actors {

// Analyses the bodies in the library, including nested and recursive calls.
// Handles are followed through control flow and Identity, but not through the
// results of calls. Does not keep the library. Thread-compatible.
class HandleUses {
 public:
  // The uses in one function, by its arguments.
  struct Summary {
    explicit Summary(size_t arguments) : ops(arguments), ties(arguments) {}
    // The ops that it applies to each.
    std::vector<std::set<std::string>> ops;
    // Arguments that some op takes together are in one set.
    graph::UnionFind ties;
    size_t num_ties = 0;
  };
  // A function that a node calls, and the index of the argument that the node's
  // first input is. It is negative if a predicate or the like precedes the
  // arguments.
  struct Callee {
    Summary* summary = nullptr;
    int first = 0;
  };

  explicit HandleUses(const graph::FunctionLibrary& library);

  // The functions that the node calls, by an attribute or as its op. Empty: the
  // node is not a call.
  std::vector<Callee> called(const graph::Node& node);

 private:
  class Uses;

  std::vector<Callee> called(const std::string& op, const AttrMap& attrs,
                             int num_inputs);
  // Analyses a body once more; returns whether the summary has grown.
  bool grow(const Uses& all, Summary& summary);

  std::map<std::string, Summary, std::less<>> summaries_;
};

}  // namespace tagflow::actors
