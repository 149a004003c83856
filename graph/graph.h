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

// A node as text: what a file, a function body or a caller says. Inputs are
// "name", "name:port" or "^name"; control inputs come last.
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

// Lists of which most nodes have few elements.
using Endpoints = boost::container::small_vector<Endpoint, 2>;
using DataTypes = boost::container::small_vector<DataType, 8>;
using PartialShapes = boost::container::small_vector<PartialShape, 1>;

// A node's number in its graph, for tables. Nodes that are added later have
// higher ones; what passes and cuts leave of a program keeps its own.
using NodeId = uint32_t;

// A node of a Graph, which owns it. Immutable but through its graph.
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

  // An input whose node is null is a back edge not yet closed. What these
  // return is valid until the node is changed.
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
  // What shape inference knows; of unknown rank by default.
  const PartialShape& output_shape(int port) const {
    return output_shapes_[size_t(port)];
  }

  bool is_switch() const { return kind_ == Kind::kSwitch; }
  bool is_merge() const { return kind_ == Kind::kMerge; }
  bool is_enter() const { return kind_ == Kind::kEnter; }
  // Brings the same value into every iteration.
  bool is_constant_enter() const;
  bool is_exit() const { return kind_ == Kind::kExit; }
  bool is_next_iteration() const { return kind_ == Kind::kNextIteration; }
  bool is_loop_cond() const { return kind_ == Kind::kLoopCond; }
  bool is_control_trigger() const { return kind_ == Kind::kControlTrigger; }
  bool is_const() const { return kind_ == Kind::kConst; }
  bool is_identity() const { return kind_ == Kind::kIdentity; }
  // Its attributes are those that the types of its ports were inferred from.
  bool has_inferred_types() const { return has_inferred_types_; }

 private:
  friend class Graph;
  // Reference twins (RefSwitch, ...) have the kind of their plain op.
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

  // Adds one node. Every input must exist, but that of a Merge whose op is
  // NextIteration, which set_input() closes later: such an input is given as
  // an Endpoint with a null node. Fills in default attributes; infers types
  // from attributes, and type attributes that `attrs` leaves out from the
  // inputs; infers shapes. InvalidArgument, NotFound, AlreadyExists or
  // Unimplemented, naming the node and what is wrong.
  Result<Node*> add(std::string name, std::string_view op,
                    std::span<const Endpoint> inputs, AttrMap attrs = {},
                    std::span<Node* const> control_inputs = {},
                    std::string device = {});
  // Adds nodes given in any order, as one step: on an error the graph is as
  // before. The definitions may refer to nodes that are there already.
  Status extend(std::span<const NodeDef> defs);
  // The same, taking from them what can be taken.
  Status extend(std::vector<NodeDef>&& defs);
  // Adds copies of all nodes and functions of another graph, as one step.
  Status extend(const Graph& other);

  // Replaces an input; the types must agree. REQUIRES: 0 <= index.
  Status set_input(Node* node, int index, Endpoint source);
  // No effect where it is there already.
  void add_control_input(Node* node, Node* source);
  // Replaces them all; one that is listed twice counts once.
  void set_control_inputs(Node* node, std::span<Node* const> sources);
  void set_attr(Node* node, std::string name, AttrValue value);
  void set_device(Node* node, std::string device);
  // Makes another node of it, with the same name, device, id and readers: of
  // another op, with other inputs and attributes. It may get more outputs, or
  // lose its last ones. InvalidArgument, and no change, where that cannot be,
  // or outputs that stay would have other types. REQUIRES: nobody reads those
  // that go.
  Status become(Node* node, std::string_view op,
                std::span<const Endpoint> inputs, AttrMap attrs,
                std::span<Node* const> control_inputs);
  // Infers the shapes of its outputs anew. As add(): an error where those of
  // the inputs contradict, and then what was known stays.
  static Status infer_shapes(Node& node);
  // Replaces what is known of an output. REQUIRES: when the graph is run, every
  // value of the output has such a shape.
  void set_output_shape(Node* node, int port, PartialShape shape);
  // REQUIRES: no node that remains has one of these as input.
  void remove(std::span<Node* const> nodes);

  // In order of insertion.
  std::span<Node* const> nodes() const { return order_; }
  size_t size() const { return order_.size(); }
  // Null where there is none.
  Node* find(std::string_view name) const;
  // The node of that id; null where there is none.
  Node* node(NodeId id) const {
    return id < by_id_.size() ? by_id_[id].get() : nullptr;
  }
  // Whether it is one of this graph's. REQUIRES: it exists, if anywhere.
  bool owns(const Node* node) const { return this->node(node->id_) == node; }
  // Above the ids of all nodes: the size of a table by id.
  size_t end_id() const { return by_id_.size(); }
  // "name:port" or "name". NotFound with the nearest name; InvalidArgument
  // for a port that does not exist or a malformed text.
  Result<Endpoint> endpoint(std::string_view text) const;
  // `prefix`, or `prefix_1`, ... : not yet the name of a node. A prefix that
  // leaves no room for the number is cut.
  std::string unique_name(std::string_view prefix) const;

  // A deep copy; nodes keep their ids.
  Graph clone() const;
  // A copy of these nodes. An input that comes from another node is open, as
  // only a Merge's may be: to be closed with set_input(). A control input from
  // another node is left out. Nodes keep their ids.
  Graph subset(const NodeSet& nodes) const;
  // Adds copies of nodes of another graph, in this order, with new ids: tables
  // of a part of a graph are as small as that part is. Edges from other nodes
  // are as for subset(). `twins` gets the copy of each, by the id that it has
  // there. REQUIRES: each once; no name is taken; they are of registered ops,
  // or of functions that the library has.
  void add_copies(std::span<Node* const> nodes, PagedTable<Node*, 64>& twins);
  // The node as text, inputs in order, control inputs last.
  static NodeDef to_def(const Node& node);

  FunctionLibrary& library() { return *library_; }
  const FunctionLibrary& library() const { return *library_; }
  // GraphDef's version numbers, kept for writing it back.
  int producer_version() const { return producer_version_; }
  void set_producer_version(int version) { producer_version_ = version; }

 private:
  // A registered op, or a function of the library. Unimplemented.
  Result<const OpDef*> find_op(std::string_view op) const;
  Status check_source(const Endpoint& source, size_t index) const;
  // Fills in everything of a node but its id; errors may lack its name.
  Status prepare(Node& node, std::string_view op,
                 std::span<const Endpoint> inputs, AttrMap attrs,
                 std::span<Node* const> control_inputs) const;
  template <class Def>
  Status extend_by(std::span<Def> defs);
  void index_names();
  // Of the nodes for which keep(node) holds.
  template <class Keep>
  Graph copy(Keep keep) const;
  // Leads its edges to what twin(node) says; where that is null, it is open.
  template <class Twin>
  static void lead_edges(Node& node, const Twin& twin);
  // ", did you mean ...?" or nothing.
  std::string suggestion(std::string_view name) const;

  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const {
      return std::hash<std::string_view>()(s);
    }
  };
  std::vector<std::unique_ptr<Node>> by_id_;  // null: removed
  std::vector<Node*> order_;
  NameIndex by_name_;  // of ids
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
