// Why nodes must be on one device, for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// What ties a node to another one.
struct Tie {
  enum class Kind : uint8_t {
    kClass,      // `node` lists the label `what`; `other` too, or it is named
    kState,      // `node` reads a `what`, as a resource, of `other`
    kVariable,   // `other` leads into the Merge `node`, of frame `what`
    kWholeLoop,  // both are in a loop that cannot be cut, as `what` says
  };

  Kind kind = Kind::kClass;
  const Node* node = nullptr;
  const Node* other = nullptr;
  std::string_view what;

  // `"b" has the class "loc:@a"`.
  std::string to_string() const;
};

// All ties of a graph. Nodes and texts must outlive it. Thread-compatible.
class Ties {
 public:
  void add(const Tie& tie) { ties_.push_back(tie); }
  // The fewest ties that lead from one of the nodes to the next; none where
  // two are not tied. Takes time proportional to the number of all ties.
  std::vector<Tie> between(const Node& from, const Node& to) const;

 private:
  std::vector<Tie> ties_;
};

}  // namespace tagflow::graph
