// Graphs of element-wise ops, and the groups that pass `group` makes.
#pragma once

#include <algorithm>

#include "graph/analysis/loop_shapes.h"
#include "tests/graph/passes/whole_program.h"

namespace tagflow::graph::testing {

using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

inline const PartialShape kSquare = {32, 32};

struct Elements {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, kSquare);
  Node* y = placeholder(graph, "y", DataType::kFloat, kSquare);
  Node* axis = number(graph, "axis", 1);

  Node* unary(const std::string& name, Node* a, const char* op = "Tanh",
              std::vector<Node*> control = {}) {
    return add(graph, name, op, {{a, 0}}, {}, std::move(control));
  }
  Node* binary(const std::string& name, const char* op, Node* a, Node* b) {
    return add(graph, name, op, {{a, 0}, {b, 0}});
  }
  Node* matmul(const std::string& name, Node* a) {
    return binary(name, "MatMul", a, y);
  }
  Node* concat(const std::string& name, const std::vector<Node*>& values,
               Node* along) {
    std::vector<Endpoint> inputs;
    for (Node* value : values) inputs.push_back({value, 0});
    inputs.push_back({along, 0});
    return add(graph, name, "ConcatV2", inputs);
  }
  Node* square(const std::string& name, Endpoint of) {
    Node* shape = graph.find("square");
    if (shape == nullptr)
      shape = constant(graph, "square", Tensor::of<int32_t>({2}, {32, 32}));
    return add(graph, name, "Reshape", {of, {shape, 0}});
  }
};

inline bool run_group(Program& program, const PassContext& context = {}) {
  return run_pass(group_elementwise, program, context);
}

// The names of the ops of each group, sorted, with commas between groups.
inline std::string groups_of(const Program& program) {
  Strings groups;
  for (const Node* node : program.graph.nodes()) {
    if (node->op() != "_FusedElementwise") continue;
    auto names = must(node->attr<Strings>("names"));
    std::ranges::sort(names);
    std::string& line = groups.emplace_back();
    for (const std::string& name : names)
      line += (line.empty() ? "" : " ") + name;
  }
  std::ranges::sort(groups);
  std::string text;
  for (const std::string& line : groups)
    text += (text.empty() ? "" : ", ") + line;
  return text;
}

// These, after the pass. If it changes nothing there is nothing that it
// changed.
inline std::string groups(const Graph& graph, const Strings& fetches,
                          const Strings& targets = {},
                          const PassContext& context = {}) {
  Program program = program_of(graph, fetches, targets);
  must(infer_loop_shapes(program.graph));
  const std::string before = dump(program.graph);
  if (!run_group(program, context)) CHECK(dump(program.graph) == before);
  return groups_of(program);
}

inline const Node* only_group(const Program& program) {
  const Node* found = nullptr;
  for (const Node* node : program.graph.nodes())
    if (node->op() == "_FusedElementwise") {
      CHECK(found == nullptr);
      found = node;
    }
  REQUIRE(found != nullptr);
  return found;
}

}  // namespace tagflow::graph::testing
