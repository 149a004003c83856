// HandleUses: what functions do with the handles that they take.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/function.h"
#include "graph/graph.h"
#include "graph/placement/union_find.h"

namespace tagflow::actors {

// Looks into bodies as the library has them, calls in calls included, and
// recursive ones. Of what passes a handle on, only those that pass nothing else
// are followed: control flow and Identity, but not the results of calls. Does
// not keep the library. Thread-compatible.
class HandleUses {
 public:
  // Of one function, by its arguments.
  struct Summary {
    explicit Summary(size_t arguments) : ops(arguments), ties(arguments) {}
    // The ops that it applies to each.
    std::vector<std::set<std::string>> ops;
    // Those that some op takes together are in one set.
    graph::UnionFind ties;
    size_t num_ties = 0;
  };
  // A function that a node calls, and the argument that its first input is:
  // less than 0 where a predicate or the like comes before the arguments.
  struct Callee {
    Summary* summary = nullptr;
    int first = 0;
  };

  explicit HandleUses(const graph::FunctionLibrary& library);

  // What the node calls, by an attribute, or as its op. Empty: it is no call.
  std::vector<Callee> called(const graph::Node& node);

 private:
  class Uses;

  std::vector<Callee> called(const std::string& op, const AttrMap& attrs,
                             int num_inputs);
  // Looks at a body once more; whether the summary has grown.
  bool grow(const Uses& all, Summary& summary);

  std::map<std::string, Summary, std::less<>> summaries_;
};

}  // namespace tagflow::actors
