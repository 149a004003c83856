// How many nodes a graph gets when its functions are inlined, found without
// inlining them.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/function.h"
#include "graph/graph.h"
#include "graph/limits.h"

namespace tagflow::graph {

// Counts from the innermost functions outwards, each function once: a chain of
// functions that call the one before twice doubles the graph with each of them,
// but not the time of counting. Thread-compatible. Valid as long as the library
// is.
class InlinedSize {
 public:
  explicit InlinedSize(const FunctionLibrary& library) : library_(library) {}

  // The nodes that replace the node, at least: functions that are passed as
  // attributes, the nodes of conditionals and loops around the bodies, and a
  // call of a function by itself, which is not inlined, do not count. At most
  // kMost. 0 for a node that calls nothing.
  uint64_t of(std::string_view op, const AttrMap& attrs);

  static constexpr uint64_t kMost = uint64_t(1) << 62;

 private:
  // Those that are inlined in place of such a node.
  std::vector<const FunctionDef*> called(std::string_view op,
                                         const AttrMap& attrs) const;
  uint64_t of(const FunctionDef& function);

  const FunctionLibrary& library_;
  // 0 while the function is being counted, so that recursion adds nothing.
  std::unordered_map<const FunctionDef*, uint64_t> known_;
};

// ResourceExhausted if the graph will have more nodes than the limit; then
// `*nodes`, if given, receives how many. The message names the function whose
// calls make the most of them.
Status check_inlined_size(const Graph& graph, const Limits& limits,
                          size_t* nodes);

}  // namespace tagflow::graph
