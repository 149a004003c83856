// NodeContext: the view that a rule has of its node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/builder/scope.h"

namespace tagflow::autodiff {

using graph::Node;
using graph::Output;
using graph::Outputs;
using graph::Scope;

class Region;  // autodiff/region.h

// A rule runs once, when the derivative is built. The nodes that it makes may
// be in another loop than its node, so a rule takes the node's values from here
// only, and never from node().inputs().
//
// After an error (fail(), or one of the scope) all returned values are safe to
// use. Thread-compatible.
class NodeContext {
 public:
  // --- The node
  const Node& node() const { return node_; }
  int num_inputs() const;
  int num_outputs() const;
  DataType input_dtype(int input) const;
  // Whether the input is a list, a stack or the flow of a TensorArray.
  bool is_container(int input) const;
  // An attribute; fails, and returns T(), if the node has none of that type.
  template <class T>
  T attr(std::string_view name) const;

  // Where the derivative's nodes are made. Its ops get the node's device.
  const Scope& scope() const { return scope_; }

  // --- The node's values, as they were when it ran. In a backward loop each
  // value that a rule uses is saved in every iteration: request only what the
  // rule needs.
  Output input(int input);
  Output output(int port = 0);
  // Their run-time shapes, vectors of int32 (or int64): constants if known.
  Output input_shape(int input, DataType dtype = DataType::kInt32);
  Output output_shape(int port = 0, DataType dtype = DataType::kInt32);
  // Output `port` of another op, run beside the node and saved like the node's
  // values. An example is the length of a list, if the list itself should
  // not be saved. `inputs` are tensors of the node's own graph, its inputs or
  // outputs; at least one.
  Output forward(std::string_view op, std::vector<graph::Endpoint> inputs,
                 AttrMap attrs = {}, int port = 0);
  // Their shapes as far as known when the graph is built.
  const PartialShape& known_input_shape(int input) const;
  const PartialShape& known_output_shape(int port = 0) const;

  // --- Helpers
  // The conjugate of a complex tensor, or any other tensor itself: the gradient
  // of a holomorphic op f is grad * conj(f'), as in TensorFlow.
  Output conj(Output x) const;
  // A scalar of the type of `like`.
  Output scalar(double value, Output like) const;
  // An int32 vector.
  Output ints(const std::vector<int64_t>& values) const;
  // Zeros of the input's type and shape.
  Output zeros_like_input(int input);
  // Fails the differentiation: "[op] node "n" has no gradient: why".
  void fail(std::string why) const;

  // --- For autodiff/ only.
  Region& region() { return region_; }

 protected:
  // Nodes are made below `name` in the scope of the region. If `first_input`
  // is not 0, the node is a stand-in (stand_in.h): its inputs before
  // `first_input` are the outputs of the other node.
  NodeContext(Region& region, const Node& node, std::string_view name,
              size_t first_input = 0);
  ~NodeContext() = default;
  // Input `input` and output `port` of the node.
  const graph::Endpoint& input_endpoint(int input) const {
    return node_.inputs()[first_input_ + size_t(input)];
  }
  graph::Endpoint output_endpoint(int port) const;

 private:
  Region& region_;
  const Node& node_;
  const size_t first_input_;
  Scope scope_;
};

template <class T>
T NodeContext::attr(std::string_view name) const {
  Result<T> value = first_input_ == 0 ? node_.attr<T>(name)
                                      : node_.attr<T>(fmt::format("_{}", name));
  if (value.ok()) return *std::move(value);
  scope_.fail(std::move(value).status());
  return T();
}

}  // namespace tagflow::autodiff
