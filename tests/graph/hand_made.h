// Graphs made by hand, node by node, for tests.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph::testing {

// The value, or a failed test that shows the error.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) FAIL(result.status().to_string());
  return std::move(result).value();
}

inline void must(const Status& status) {
  if (!status.ok()) FAIL(status.to_string());
}

// The message of an error of that code; fails the test for anything else.
inline std::string message_of(const Status& status, Code code) {
  CHECK_MESSAGE(status.code() == code, status.to_string());
  return std::string(status.message());
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

// Adds a node; a failed test if it is refused.
inline Node* add(Graph& graph, std::string name, std::string_view op,
                 std::vector<Endpoint> inputs = {}, AttrMap attrs = {},
                 std::vector<Node*> control = {}) {
  return must(
      graph.add(std::move(name), op, inputs, std::move(attrs), control));
}

inline Node* constant(Graph& graph, std::string name, Tensor value) {
  const DataType dtype = value.dtype();
  return add(graph, std::move(name), "Const", {},
             {{"value", std::move(value)}, {"dtype", dtype}});
}

inline NodeDef def(std::string name, std::string op,
                   std::vector<std::string> inputs = {}, AttrMap attrs = {}) {
  return {std::move(name), std::move(op), std::move(inputs), "",
          std::move(attrs)};
}

inline NodeDef const_def(std::string name, Tensor value) {
  const DataType dtype = value.dtype();
  return def(std::move(name), "Const", {},
             {{"value", std::move(value)}, {"dtype", dtype}});
}

// for (i = start; i < limit; i += 1), as one loop variable:
//
//   start -> enter -> merge -> less -> cond
//                       |               |
//                       +---> switch <--+
//              exit <- :0 |     | :1
//   next <- add <---------------+
struct Counter {
  Node* enter;
  Node* limit;  // a constant Enter
  Node* merge;
  Node* less;
  Node* cond;
  Node* branch;  // the Switch
  Node* body;    // what the body adds to, of output 1
  Node* add;
  Node* next;
  Node* exit;
};

// Names start with `prefix`; the frame is named so too. `start` and `limit`
// are int32 scalars of the frame around.
inline Counter counter(Graph& graph, const std::string& prefix, Endpoint start,
                       Endpoint limit) {
  Counter c{};
  const AttrMap frame = {{"frame_name", prefix}};
  c.enter = add(graph, prefix + "/enter", "Enter", {start}, frame);
  c.limit = add(graph, prefix + "/limit", "Enter", {limit},
                {{"frame_name", prefix}, {"is_constant", true}});
  c.merge = add(graph, prefix + "/merge", "Merge", {{c.enter, 0}, {}});
  c.less = add(graph, prefix + "/less", "Less", {{c.merge, 0}, {c.limit, 0}});
  c.cond = add(graph, prefix + "/cond", "LoopCond", {{c.less, 0}});
  c.branch =
      add(graph, prefix + "/switch", "Switch", {{c.merge, 0}, {c.cond, 0}});
  c.body = add(graph, prefix + "/body", "Identity", {{c.branch, 1}});
  Node* one = add(graph, prefix + "/one", "Const", {},
                  {{"value", Tensor::scalar(1)}, {"dtype", DataType::kInt32}},
                  {c.body});
  c.add = add(graph, prefix + "/add", "AddV2", {{c.body, 0}, {one, 0}});
  c.next = add(graph, prefix + "/next", "NextIteration", {{c.add, 0}});
  must(graph.set_input(c.merge, 1, {c.next, 0}));
  c.exit = add(graph, prefix + "/exit", "Exit", {{c.branch, 0}});
  return c;
}

}  // namespace tagflow::graph::testing
