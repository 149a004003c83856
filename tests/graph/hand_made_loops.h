// Loops of several variables, and lists of tensors, made by hand for tests.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/graph/hand_made.h"

namespace tagflow::graph::testing {

using Values = std::vector<Endpoint>;

struct Loop {
  std::vector<Node*> merges, exits;
};

// A loop that a counter from `begin` to `limit` ends, of these variables
// beside.
inline Loop loop_from(Graph& graph, const std::string& name,
                      const Endpoint& begin, const Endpoint& limit,
                      const Values& start,
                      const std::function<Values(const Values&)>& body) {
  const Counter counting = counter(graph, name, begin, limit);
  Loop made;
  Values inside;
  for (size_t i = 0; i < start.size(); ++i) {
    const auto named = [&](const char* what) {
      return fmt::format("{}/{}{}", name, what, i);
    };
    Node* enter =
        add(graph, named("enter"), "Enter", {start[i]}, {{"frame_name", name}});
    Node* merge = add(graph, named("merge"), "Merge", {{enter, 0}, {}});
    Node* branch =
        add(graph, named("switch"), "Switch", {{merge, 0}, {counting.cond, 0}});
    made.merges.push_back(merge);
    made.exits.push_back(add(graph, named("exit"), "Exit", {{branch, 0}}));
    inside.push_back({branch, 1});
  }
  const Values results = body(inside);
  for (size_t i = 0; i < start.size(); ++i) {
    Node* next = add(graph, fmt::format("{}/next{}", name, i), "NextIteration",
                     {results[i]});
    must(graph.set_input(made.merges[i], 1, {next, 0}));
  }
  return made;
}

// A loop from 0 to 9, outside of all other loops.
inline Loop loop(Graph& graph, const std::string& name, const Values& start,
                 const std::function<Values(const Values&)>& body) {
  const auto number = [&](const char* what, int32_t value) {
    return Endpoint{constant(graph, name + what, Tensor::scalar(value)), 0};
  };
  return loop_from(graph, name, number("_start", 0), number("_limit", 9), start,
                   body);
}

// Ops on lists of elements of a type. If no shape is given, none is asked
// for.
struct Lists {
  Graph& graph;
  DataType type = DataType::kFloat;

  Endpoint empty(const std::string& name) const {
    return list(name, "EmptyTensorList", {any_shape(), number(-1)}, typed());
  }
  Endpoint reserve(const std::string& name, Endpoint shape = {}) const {
    return list(name, "TensorListReserve", {or_any(shape), number(9)}, typed());
  }
  Endpoint from_tensor(const std::string& name, Endpoint rows) const {
    return list(name, "TensorListFromTensor", {rows, any_shape()});
  }
  Endpoint push(const std::string& name, Endpoint to, Endpoint element) const {
    return list(name, "TensorListPushBack", {to, element});
  }
  Endpoint set(const std::string& name, Endpoint to, Endpoint element,
               bool resizes = false) const {
    return list(name, "TensorListSetItem", {to, number(1, to.node), element},
                {{"resize_if_index_out_of_bounds", resizes}});
  }
  // The list is output 0, the element output 1.
  Node* pop(const std::string& name, Endpoint from, Endpoint shape = {}) const {
    return add(graph, name, "TensorListPopBack",
               {from, or_any(shape, from.node)}, typed());
  }
  Node* get(const std::string& name, Endpoint from, Endpoint shape = {}) const {
    return add(graph, name, "TensorListGetItem",
               {from, number(1, from.node), or_any(shape, from.node)}, typed());
  }
  Node* stack(const std::string& name, Endpoint from, Endpoint shape = {},
              int64_t num_elements = -1) const {
    return add(graph, name, "TensorListStack", {from, or_any(shape, from.node)},
               {{"element_dtype", type}, {"num_elements", num_elements}});
  }
  Node* gather(const std::string& name, Endpoint from, Endpoint indices,
               Endpoint shape = {}) const {
    return add(graph, name, "TensorListGather",
               {from, indices, or_any(shape, from.node)}, typed());
  }

 private:
  AttrMap typed() const { return {{"element_dtype", type}}; }
  Endpoint list(const std::string& name, const char* op, const Values& inputs,
                AttrMap attrs = {}) const {
    return {add(graph, name, op, inputs, std::move(attrs)), 0};
  }
  // In the frame of `near`.
  Endpoint number(int32_t value, Node* near = nullptr) const {
    Node* made =
        constant(graph, graph.unique_name("number"), Tensor::scalar(value));
    if (near != nullptr) graph.set_control_inputs(made, {&near, 1});
    return {made, 0};
  }
  Endpoint any_shape(Node* near = nullptr) const { return number(-1, near); }
  Endpoint or_any(Endpoint shape, Node* near = nullptr) const {
    return shape.node == nullptr ? any_shape(near) : shape;
  }
};

}  // namespace tagflow::graph::testing
