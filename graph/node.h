// Node: an op of a graph with its edges, as kernels and rules see it.
#pragma once

#include <fmt/format.h>

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/attr.h"
#include "graph/op_def.h"

namespace tagflow::graph {

class Graph;  // graph/graph.h
class Node;

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
