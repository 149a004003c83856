// Lowers functions that are written out by hand.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>

#include "graph/analysis/validate.h"
#include "graph/functions/lower.h"
#include "tests/graph/hand_made_functions.h"

namespace tagflow::graph::testing {

inline constexpr DataType kInt = DataType::kInt32;

// A program over a library, and what lowering makes of it.
struct Lowered {
  FunctionLibrary library;
  Program program;

  void define(FunctionDef function) {
    REQUIRE(library.add(std::move(function)).ok());
  }
  // Fetches the first output of `fetch`.
  Status lower(const std::vector<NodeDef>& nodes, const std::string& fetch,
               const Limits& limits = {}) {
    program.graph.library() = library;
    const Status added = program.graph.extend(nodes);
    INFO(added.to_string());
    REQUIRE(added.ok());
    Node* node = program.graph.find(fetch);
    if (node->num_outputs() > 0) {
      program.fetches.push_back({node, 0});
    } else {
      program.targets.push_back(node);
    }
    Status status = lower_functions(program, limits);
    if (!status.ok()) return status;
    for (const Node* left : program.graph.nodes())
      CHECK(!is_functional_op(left->op()));
    TAGFLOW_RETURN_IF_ERROR(validate(program.graph));
    for (const auto& body : program.bodies)
      TAGFLOW_RETURN_IF_ERROR(validate(body->graph));
    return {};
  }
  void expect_lowered(const std::vector<NodeDef>& nodes,
                      const std::string& fetch) {
    const Status status = lower(nodes, fetch);
    INFO(status.to_string());
    REQUIRE(status.ok());
  }
  void expect_refused(const std::vector<NodeDef>& nodes, Code code,
                      const std::string& message, const Limits& limits = {}) {
    const Status status = lower(nodes, nodes.back().name, limits);
    CHECK(status.code() == code);
    CHECK(status.message() == message);
  }
  size_t count(std::string_view op) const {
    return size_t(std::ranges::count_if(
        program.graph.nodes(),
        [&](const Node* node) { return node->op() == op; }));
  }
  const Node& node(std::string_view name) const {
    const Node* found = program.graph.find(name);
    INFO("node ", name);
    REQUIRE(found != nullptr);
    return *found;
  }
};

inline NodeDef placeholder(const std::string& name, DataType type = kInt) {
  return body_node(name, "Placeholder", {}, {{"dtype", type}});
}

inline FunctionDef doubled() {
  return function("doubled", {"n: int32"}, {"r: int32"},
                  {body_int("plus", "Add", "n", "n")}, {{"r", "plus:z:0"}});
}

inline AttrMap loop_attrs(size_t variables, const std::string& cond,
                          const std::string& body) {
  return {{"T", std::vector<DataType>(variables, kInt)},
          {"cond", call_of(cond)},
          {"body", call_of(body)}};
}

}  // namespace tagflow::graph::testing
