// Graph: nodes and the edges between them; what a program *is*.
#pragma once

#include <boost/container/small_vector.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/attr.h"
#include "graph/hash_index.h"
#include "graph/op_def.h"

namespace tagflow::graph {

class Node;
class NodeSet;          // graph/analysis/prune.h
class FunctionLibrary;  // graph/function.h
template <class T, size_t kPage>
class PagedTable;  // graph/paged_table.h

// A node as text, as in a file or function body. Inputs are "name", "name:port"
// or "^name"; control inputs come last.
struct NodeDef {
  std::string name;
  std::string op;
  std::vector<std::string> inputs;
  std::string device;
  AttrMap attrs;

  bool operator==(const NodeDef&) const = default;
};

// One output of a node: where a tensor comes from.
struct Endpoint {
  Node* node = nullptr;
  int port = 0;

  bool operator==(const Endpoint&) const = default;
  // "name:port".
  std::string to_string() const;
};

struct EndpointHash {
  size_t operator()(const Endpoint& endpoint) const;
};

// Most nodes have few inputs.
using Endpoints = boost::container::small_vector<Endpoint, 2>;
using DataTypes = boost::container::small_vector<DataType, 8>;
using PartialShapes = boost::container::small_vector<PartialShape, 1>;

// A node's number in its graph, used as index of tables. Nodes that are added
// later have higher ids. Passes and cuts do not renumber nodes.
using NodeId = uint32_t;

// A node of a Graph, which owns it and alone can change it.
class Node {
 public:
  NodeId id() const { return id_; }
  const std::string& name() const { return name_; }
  const std::string& op() const { return op_def_->name; }
  const OpDef& op_def() const { return *op_def_; }
  const std::string& device() const { return device_; }
  const AttrMap& attrs() const { return attrs_; }
  template <class T>
  Result<T> attr(std::string_view name) const;

  // The node of an input is null for a back edge that is not closed yet. The
  // returned spans are valid until the node is changed.
  std::span<const Endpoint> inputs() const {
    return {inputs_.data(), inputs_.size()};
  }
  std::span<Node* const> control_inputs() const {
    return {control_inputs_.data(), control_inputs_.size()};
  }
  std::span<const DataType> input_dtypes() const {
    return {input_dtypes_.data(), input_dtypes_.size()};
  }
  std::span<const DataType> output_dtypes() const {
    return {output_dtypes_.data(), output_dtypes_.size()};
  }
  int num_inputs() const { return int(input_dtypes_.size()); }
  int num_outputs() const { return int(output_dtypes_.size()); }
  // The result of shape inference; of unknown rank by default.
  const PartialShape& output_shape(int port) const {
    return output_shapes_[size_t(port)];
  }

  bool is_switch() const { return kind_ == Kind::kSwitch; }
  bool is_merge() const { return kind_ == Kind::kMerge; }
  bool is_enter() const { return kind_ == Kind::kEnter; }
  // Provides the same value in every iteration.
  bool is_constant_enter() const;
  bool is_exit() const { return kind_ == Kind::kExit; }
  bool is_next_iteration() const { return kind_ == Kind::kNextIteration; }
  bool is_loop_cond() const { return kind_ == Kind::kLoopCond; }
  bool is_control_trigger() const { return kind_ == Kind::kControlTrigger; }
  bool is_const() const { return kind_ == Kind::kConst; }
  bool is_identity() const { return kind_ == Kind::kIdentity; }
  // Whether the types of its ports were inferred from its present attributes.
  bool has_inferred_types() const { return has_inferred_types_; }

 private:
  friend class Graph;
  // Reference variants (RefSwitch, ...) have the kind of the plain op.
  enum class Kind : uint8_t {
    kOther,
    kSwitch,
    kMerge,
    kEnter,
    kExit,
    kNextIteration,
    kLoopCond,
    kControlTrigger,
    kConst,
    kIdentity
  };
  static Kind kind_of(std::string_view op);

  NodeId id_ = 0;
  Kind kind_ = Kind::kOther;
  bool has_inferred_types_ = false;
  std::string name_;
  const OpDef* op_def_ = nullptr;
  std::string device_;
  AttrMap attrs_;
  Endpoints inputs_;
  boost::container::small_vector<Node*, 2> control_inputs_;
  DataTypes input_dtypes_;
  DataTypes output_dtypes_;
  PartialShapes output_shapes_;
};

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
  // The same, but moves from `defs`.
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

// Splits "name:port" into name and port; "name" is port 0. InvalidArgument
// for a malformed or out-of-range port.
Result<std::pair<std::string, int>> parse_endpoint(std::string_view text);

inline size_t EndpointHash::operator()(const Endpoint& endpoint) const {
  const size_t id = endpoint.node == nullptr ? ~size_t(0) : endpoint.node->id();
  return (id << 16) ^ size_t(endpoint.port);
}

template <class T>
Result<T> Node::attr(std::string_view name) const {
  Result<T> value = get_attr<T>(attrs_, name);
  if (value.ok()) return value;
  return std::move(value).status().with_prefix(
      fmt::format("[{}] node \"{}\": ", op(), name_));
}

}  // namespace tagflow::graph
