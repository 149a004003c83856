// Readers: which node, and that one alone, reads what another makes.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/analysis/prune.h"
#include "graph/program.h"

namespace tagflow::graph {

// Constants that wait for a node, and are put on lists for the next iteration:
// the shapes that a backward loop will go by. Nothing of this iteration comes
// after them. So the node may become part of a larger one that is live exactly
// where it is, for which they wait then. Of a program as it is when this is
// made. Thread-compatible.
class LastWaits {
 public:
  explicit LastWaits(const Program& program);
  bool empty() const { return waits_.size() == 0; }
  // Whether the node is such a constant.
  bool contains(const Node& node) const { return waits_.contains(node); }

 private:
  bool goes_on_lists(const Node& node, int depth) const;

  // By node id: all readers, and what waits, of constants, lists and
  // Identities. A null stands for the end of the program.
  std::vector<std::vector<const Node*>> readers_;
  NodeSet waits_;
};

// Of a program as it is when this is made; nodes that are added later have no
// readers. Thread-compatible.
class Readers {
 public:
  // kNotLast: LastWaits do not count, where nothing may be waited for but by
  // edges. Who replaces a node leads its control edges to what stands for it.
  // Where there are LastWaits, a node that is not equally live is not the only
  // reader of another.
  enum class Waits : uint8_t { kAll, kNotLast };
  explicit Readers(const Program& program, Waits waits = Waits::kAll);

  struct Reader {
    Node* node = nullptr;
    size_t input = 0;
  };
  // Where output 0 of the node is one input of one other, and nothing else
  // needs the node: no control edge, fetch or target. Nothing otherwise.
  std::optional<Reader> only_reader(const Node& node) const;
  // The same of any output, where others may have readers, too.
  std::optional<Reader> only_reader(const Endpoint& output) const;
  // What reads output 0, by one or more of its inputs, where that is all that
  // needs the node; null otherwise.
  Node* only_reading_node(const Node& node) const;
  // Whether an input of some node is the output.
  bool is_read(const Endpoint& output) const;
  // Whether a control edge, a fetch or a target needs the node.
  bool is_awaited(const Node& node) const {
    return node.id() < uses_.size() && uses_[node.id()].is_awaited;
  }
  // Whether nobody reads, or fetches, an output beside output 0.
  bool only_first_output(const Node& node) const;

 private:
  struct Reads {
    Reader first;
    bool is_more = false;     // than that one
    bool has_others = false;  // nodes than that of the first
    void add(const Reader& reader) {
      is_more = first.node != nullptr;
      if (!is_more) first = reader;
      has_others = has_others || first.node != reader.node;
    }
  };
  struct Use {
    Reads reads;              // of output 0
    bool is_awaited = false;  // by a control edge, a fetch or a target
    bool has_others = false;  // of outputs beside output 0
  };

  bool are_alike(const Node& node, const Node& reader) const;

  // Of a program with LastWaits; else null.
  struct Lives;
  std::shared_ptr<const Lives> lives_;
  std::vector<Use> uses_;  // by node id
  std::unordered_map<Endpoint, Reads, EndpointHash> others_;
};

}  // namespace tagflow::graph
