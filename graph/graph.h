// Graph: nodes and the edges between them; what a program *is*.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/hash_index.h"
#include "graph/node.h"

namespace tagflow::graph {

class NodeSet;          // graph/node_set.h
class FunctionLibrary;  // graph/function.h
template <class T, size_t kPage>
class PagedTable;  // graph/paged_table.h

// Owns its nodes. Names are unique. Thread-compatible.
class Graph {
 public:
  Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  // Adds one node. Every input must exist, except for inputs of a Merge that
  // come from a NextIteration. Such an input is given as an Endpoint with a
  // null node, and set later by set_input(). Default attributes are filled in,
  // types are inferred from attributes, missing type attributes from inputs,
  // and shapes are inferred. Errors name the node and the problem:
  // InvalidArgument, NotFound, AlreadyExists or Unimplemented.
  Result<Node*> add(std::string name, std::string_view op,
                    std::span<const Endpoint> inputs, AttrMap attrs = {},
                    std::span<Node* const> control_inputs = {},
                    std::string device = {});
  // Adds nodes given in any order, all or none: on an error the graph is
  // unchanged. The definitions may refer to existing nodes.
  Status extend(std::span<const NodeDef> defs);
  // As above, but moves from `defs`.
  Status extend(std::vector<NodeDef>&& defs);
  // Adds copies of all nodes and functions of another graph, all or none.
  Status extend(const Graph& other);

  // Replaces an input; the types must agree. REQUIRES: 0 <= index.
  Status set_input(Node* node, int index, Endpoint source);
  // No effect if it is already present.
  void add_control_input(Node* node, Node* source);
  // Replaces all of them; duplicates count once.
  void set_control_inputs(Node* node, std::span<Node* const> sources);
  void set_attr(Node* node, std::string name, AttrValue value);
  void set_device(Node* node, std::string device);
  // Turns the node into one of another op, with other inputs and attributes;
  // name, device, id and readers stay. It may get more outputs, or lose its
  // last ones. InvalidArgument, and no change, if that is impossible or would
  // change the type of a remaining output. REQUIRES: nobody reads the outputs
  // that are removed.
  Status become(Node* node, std::string_view op,
                std::span<const Endpoint> inputs, AttrMap attrs,
                std::span<Node* const> control_inputs);
  // Infers the shapes of its outputs again. An error, as in add(), if the input
  // shapes are contradictory; then the output shapes are unchanged.
  static Status infer_shapes(Node& node);
  // Replaces the known shape of an output. REQUIRES: every value of the output
  // at run time has such a shape.
  void set_output_shape(Node* node, int port, PartialShape shape);
  // REQUIRES: none of these is an input of a node that remains.
  void remove(std::span<Node* const> nodes);

  // In order of insertion.
  std::span<Node* const> nodes() const { return order_; }
  size_t size() const { return order_.size(); }
  // Null if there is none.
  Node* find(std::string_view name) const;
  // The node with that id; null if there is none.
  Node* node(NodeId id) const {
    return id < by_id_.size() ? by_id_[id].get() : nullptr;
  }
  // Whether the node belongs to this graph. REQUIRES: the node exists.
  bool owns(const Node* node) const { return this->node(node->id_) == node; }
  // One more than the highest id: the size of a table by id.
  size_t end_id() const { return by_id_.size(); }
  // Parses "name:port" or "name". NotFound with the nearest name, or
  // InvalidArgument if the port does not exist or the text is malformed.
  Result<Endpoint> endpoint(std::string_view text) const;
  // `prefix`, `prefix_1`, ... : the first that is not the name of a node. A
  // prefix is cut if it is too long for the number.
  std::string unique_name(std::string_view prefix) const;

  // A deep copy; nodes keep their ids.
  Graph clone() const;
  // A copy of these nodes. An input from another node becomes open, which only
  // a Merge allows, and must be set with set_input(). A control input from
  // another node is removed. Nodes keep their ids.
  Graph subset(const NodeSet& nodes) const;
  // Adds copies of nodes of another graph, in this order, with new ids, so that
  // tables of a small part are small. Edges from other nodes are treated as in
  // subset(). `twins` receives the copy of each node, by its old id. REQUIRES:
  // each node occurs once; no name is taken; their ops are registered, or
  // functions of the library.
  void add_copies(std::span<Node* const> nodes, PagedTable<Node*, 64>& twins);
  // The node as text: inputs in order, then control inputs.
  static NodeDef to_def(const Node& node);

  FunctionLibrary& library() { return *library_; }
  const FunctionLibrary& library() const { return *library_; }
  // GraphDef's version numbers, kept for writing it back.
  int producer_version() const { return producer_version_; }
  void set_producer_version(int version) { producer_version_ = version; }

 private:
  // Finds a registered op, or a function of the library. Unimplemented.
  Result<const OpDef*> find_op(std::string_view op) const;
  Status check_source(const Endpoint& source, size_t index) const;
  // Fills in everything but the id; errors may lack the node's name.
  Status prepare(Node& node, std::string_view op,
                 std::span<const Endpoint> inputs, AttrMap attrs,
                 std::span<Node* const> control_inputs) const;
  template <class Def>
  Status extend_by(std::span<Def> defs);
  void index_names();
  // A copy of the nodes for which keep(node) holds.
  template <class Keep>
  Graph copy(Keep keep) const;
  // Redirects its edges to twin(node); the edge is open if that is null.
  template <class Twin>
  static void lead_edges(Node& node, const Twin& twin);
  // ", did you mean ...?", or empty.
  std::string suggestion(std::string_view name) const;

  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const {
      return std::hash<std::string_view>()(s);
    }
  };
  std::vector<std::unique_ptr<Node>> by_id_;  // null: removed
  std::vector<Node*> order_;
  NameIndex by_name_;  // the numbers are ids
  mutable std::unordered_map<std::string, int, NameHash, std::equal_to<>>
      next_suffix_;
  std::unique_ptr<FunctionLibrary> library_;
  int64_t num_outputs_ = 0;  // of all nodes
  int producer_version_ = 0;
};

}  // namespace tagflow::graph
