// Reasons why nodes must be on one device, for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/node.h"

namespace tagflow::graph {

// A reason why a node must be with another one.
struct Tie {
  enum class Kind : uint8_t {
    kClass,      // `node` lists the label `what`; `other` too, or is its NAME
    kState,      // `node` reads a `what`, as a resource, from `other`
    kVariable,   // `other` leads into the Merge `node`, of frame `what`
    kWholeLoop,  // both are in a loop that cannot be cut; `what` says why
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
  // The shortest path of ties from one of the nodes to the next; empty if two
  // are not connected. Takes time proportional to the number of all ties.
  std::vector<Tie> between(const Node& from, const Node& to) const;

 private:
  std::vector<Tie> ties_;
};

}  // namespace tagflow::graph
