// Readers: which node, and that one alone, reads what another makes.
#pragma once

#include <optional>
#include <vector>

#include "graph/program.h"

namespace tagflow::graph {

// Of a program as it is when this is made; nodes that are added later have no
// readers. Thread-compatible.
class Readers {
 public:
  explicit Readers(const Program& program);

  struct Reader {
    Node* node = nullptr;
    size_t input = 0;
  };
  // Where output 0 of the node is one input of one other, and nothing else
  // needs the node: no control edge, fetch or target. Nothing otherwise.
  std::optional<Reader> only_reader(const Node& node) const;
  // Whether nobody reads, or fetches, an output beside output 0.
  bool only_first_output(const Node& node) const;

 private:
  struct Use {
    Reader reader;
    bool is_only = false;
    bool is_shared = false;
    bool has_others = false;  // of outputs beside output 0
  };
  void share(const Node& node) { uses_[node.id()].is_shared = true; }

  std::vector<Use> uses_;  // by node id
};

}  // namespace tagflow::graph
