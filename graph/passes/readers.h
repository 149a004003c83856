// Readers: whether a node's output has a single reader, and which.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/node_set.h"
#include "graph/program.h"

namespace tagflow::graph {

// Constants that wait for a node by control edges and are pushed onto lists for
// the next iteration: the shapes for a backward loop. No node of this iteration
// depends on them. So the node may become part of a larger node with the same
// liveness, for which they wait instead. Describes the program at construction.
// Thread-compatible.
class LastWaits {
 public:
  explicit LastWaits(const Program& program);
  bool empty() const { return waits_.size() == 0; }
  // Whether the node is such a constant.
  bool contains(const Node& node) const { return waits_.contains(node); }

 private:
  bool goes_on_lists(const Node& node, int depth) const;

  // By node id: all readers of constants, lists and Identities, and nodes that
  // wait for them. Null stands for the end of the program.
  std::vector<std::vector<const Node*>> readers_;
  NodeSet waits_;
};

// Describes the program at construction; nodes that are added later have no
// readers. Thread-compatible.
class Readers {
 public:
  // kNotLast: LastWaits are ignored, for programs in which nodes wait only by
  // edges. If a node is replaced, its control edges go to the replacement. If
  // the program has LastWaits, a reader whose liveness differs from its
  // source's is not its only reader.
  enum class Waits : uint8_t { kAll, kNotLast };
  explicit Readers(const Program& program, Waits waits = Waits::kAll);

  struct Reader {
    Node* node = nullptr;
    size_t input = 0;
  };
  // The input that reads output 0 of the node, if nothing else needs the node:
  // no other input, control edge, fetch or target. Otherwise nothing.
  std::optional<Reader> only_reader(const Node& node) const;
  // The input that reads the output, if nothing else does; other outputs may
  // have readers.
  std::optional<Reader> only_reader(const Endpoint& output) const;
  // The node that reads output 0, with one or more inputs, if nothing else
  // needs the node; otherwise null.
  Node* only_reading_node(const Node& node) const;
  // Whether some node has the output as an input.
  bool is_read(const Endpoint& output) const;
  // Whether a control edge, a fetch or a target needs the node.
  bool is_awaited(const Node& node) const {
    return node.id() < uses_.size() && uses_[node.id()].is_awaited;
  }
  // Whether no output except output 0 is read or fetched.
  bool only_first_output(const Node& node) const;

 private:
  struct Reads {
    Reader first;
    bool is_more = false;     // more inputs than the first reader
    bool has_others = false;  // readers other than the node of the first
    void add(const Reader& reader) {
      is_more = first.node != nullptr;
      if (!is_more) first = reader;
      has_others = has_others || first.node != reader.node;
    }
  };
  struct Use {
    Reads reads;              // of output 0
    bool is_awaited = false;  // by a control edge, a fetch or a target
    bool has_others = false;  // readers of outputs other than output 0
  };

  bool are_alike(const Node& node, const Node& reader) const;

  // Set for a program with LastWaits, otherwise null.
  struct Lives;
  std::shared_ptr<const Lives> lives_;
  std::vector<Use> uses_;  // by node id
  std::unordered_map<Endpoint, Reads, EndpointHash> others_;
};

}  // namespace tagflow::graph
