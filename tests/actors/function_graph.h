// Graphs with functions, made by hand, for the tests of calls.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/sessions.h"
#include "tests/graph/hand_made_functions.h"

namespace tagflow::actors {

using graph::body_const;
using graph::body_int;
using graph::body_node;
using graph::call_of;
using graph::function;
using graph::FunctionDef;
using graph::Graph;
using graph::int_ports;
using graph::NodeDef;

inline constexpr DataType kInt = DataType::kInt32;

struct FunctionGraph {
  Graph graph;

  void define(FunctionDef function) {
    REQUIRE(graph.library().add(std::move(function)).ok());
  }
  void add(std::vector<NodeDef> nodes) {
    graph::testing::must(graph.extend(nodes));
  }
  std::unique_ptr<Session> session(const SessionOptions& options) const {
    return make_session(options, graph);
  }
};

inline NodeDef int_placeholder(const std::string& name) {
  return body_node(name, "Placeholder", {}, {{"dtype", kInt}});
}

inline NodeDef if_node(const std::string& name, std::vector<std::string> inputs,
                       const std::string& then_branch,
                       const std::string& else_branch) {
  const size_t args = inputs.size() - 1;
  return body_node(name, "If", std::move(inputs),
                   int_ports(args, 1,
                             {{"Tcond", DataType::kBool},
                              {"then_branch", call_of(then_branch)},
                              {"else_branch", call_of(else_branch)}}));
}

inline Result<int32_t> run_int(Session& session, int32_t fed,
                               const std::string& fetch = "y",
                               RunStats* stats = nullptr) {
  auto result = session.run({{"x", Tensor::scalar(fed)}}, {fetch}, {},
                            within_a_minute(), stats);
  if (!result.ok()) return std::move(result).status();
  return (*result)[0].item<int32_t>();
}

inline void expect_int(Session& session, int32_t fed, int32_t wanted) {
  const auto value = run_int(session, fed);
  INFO(value.status().to_string());
  REQUIRE(value.ok());
  CHECK(*value == wanted);
}

// fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
inline void define_fibonacci(FunctionGraph& g) {
  g.define(function("fib", {"n: int32"}, {"f: int32"},
                    {body_const("two", Tensor::scalar(2)),
                     body_int("small", "Less", "n", "two:output:0"),
                     if_node("choose", {"small:z:0", "n"}, "same", "sum")},
                    {{"f", "choose:output:0"}}));
  g.define(function("same", {"n: int32"}, {"f: int32"}, {}, {{"f", "n"}}));
  g.define(function(
      "sum", {"n: int32"}, {"f: int32"},
      {body_const("one", Tensor::scalar(1)),
       body_const("two", Tensor::scalar(2)),
       body_int("n1", "Sub", "n", "one:output:0"),
       body_int("n2", "Sub", "n", "two:output:0"),
       body_node("f1", "fib", {"n1:z:0"}), body_node("f2", "fib", {"n2:z:0"}),
       body_int("plus", "Add", "f1:f:0", "f2:f:0")},
      {{"f", "plus:z:0"}}));
}

inline FunctionGraph fibonacci_graph() {
  FunctionGraph g;
  define_fibonacci(g);
  g.add({int_placeholder("x"), body_node("y", "fib", {"x"})});
  return g;
}

// count(n) = n == 0 ? 0 : 1 + count(n - 1), with "step" in its else branch.
inline FunctionGraph counting_graph() {
  FunctionGraph g;
  g.define(function("count", {"n: int32"}, {"c: int32"},
                    {body_const("zero", Tensor::scalar(0)),
                     body_int("more", "Greater", "n", "zero:output:0"),
                     if_node("choose", {"more:z:0", "n"}, "step", "same")},
                    {{"c", "choose:output:0"}}));
  g.define(function("same", {"n: int32"}, {"c: int32"}, {}, {{"c", "n"}}));
  g.define(function("step", {"n: int32"}, {"c: int32"},
                    {body_const("one", Tensor::scalar(1)),
                     body_int("less", "Sub", "n", "one:output:0"),
                     body_node("rest", "count", {"less:z:0"}),
                     body_int("plus", "Add", "rest:c:0", "one:output:0")},
                    {{"c", "plus:z:0"}}));
  g.add({int_placeholder("x"), body_node("y", "count", {"x"})});
  return g;
}

}  // namespace tagflow::actors
