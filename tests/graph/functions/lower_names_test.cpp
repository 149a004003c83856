// The names of nodes that lowering makes.
#include "tests/graph/functions/lowered.h"

namespace tagflow::graph {

using namespace testing;

TEST_CASE("a body's names never clash with others") {
  const auto same = [](const std::string& name) {
    return body_node(name, "Identity", {"x"}, {{"T", kInt}});
  };
  {
    // Of what a call is made of.
    Lowered l;
    std::vector<NodeDef> nodes;
    for (const char* name :
         {"pivot", "effects", "gate", "input_0", "result_0", "live_0", "call",
          "done/done", "arg_0", "values_0", "values_0_1"})
      nodes.push_back(same(name));
    nodes.push_back(
        body_node("print", "Print", {"x", "x"},
                  {{"T", kInt}, {"U", std::vector<DataType>{kInt}}}));
    nodes.push_back(
        body_node("sum", "AddN", {"values"}, {{"N", 2}, {"T", kInt}}));
    l.define(function("f", {"x: int32", "done: int32", "values: N * int32"},
                      {"r: int32"}, std::move(nodes), {{"r", "sum:sum:0"}},
                      {"N: int"}));
    l.expect_lowered({placeholder("p", DataType::kBool), placeholder("x"),
                      body_node("s", "Switch", {"x", "p"}),
                      body_node("y", "f", {"x", "s:1", "x", "x"}, {{"N", 2}})},
                     "y");
    for (const char* name : {"y/pivot", "y/effects", "y/gate", "y/result_0",
                             "y/done", "y/values_0"})
      CHECK(l.node(name).op() == "Identity");
    CHECK(l.node("y/sum").inputs()[0].node->name() == "y/values_0_2");
    CHECK(l.program.fetches[0].node->name() == "y_1/result_0");
  }
  {
    // Of a body that is called.
    Lowered l;
    l.define(function("f", {"n: int32", "done: int32"}, {"r: int32"},
                      {body_int("arg_0", "Add", "n", "done"),
                       body_int("pivot", "Add", "n", "arg_0:z:0"),
                       body_node("call", "f", {"pivot:z:0", "n"})},
                      {{"r", "call:r:0"}}));
    l.expect_lowered({placeholder("x"), body_node("y", "f", {"x", "x"})}, "y");
    REQUIRE(l.program.bodies.size() == 1);
    CHECK(l.program.bodies[0]->graph.find("f/arg_0")->op() == "Add");
  }
  {
    // Of branches, and of a loop's functions.
    Lowered l;
    l.define(function(
        "f", {"x: int32"}, {"r: int32"},
        {same("pivot"), same("effects"), same("result_0"), same("call"),
         body_node("print", "Print", {"x", "x"},
                   {{"T", kInt}, {"U", std::vector<DataType>{kInt}}})},
        {{"r", "print:output:0"}}));
    l.define(function("small", {"x: int32"}, {"b: bool"},
                      {body_int("pivot", "Less", "x", "x")},
                      {{"b", "pivot:z:0"}}));
    l.expect_lowered(
        {placeholder("p", DataType::kBool), placeholder("x"),
         body_node("w", "While", {"x"}, loop_attrs(1, "small", "f")),
         body_node("y", "If", {"p", "w"},
                   int_ports(1, 1,
                             {{"Tcond", DataType::kBool},
                              {"then_branch", call_of("f")},
                              {"else_branch", call_of("f")}}))},
        "y");
    CHECK(l.node("y/then/effects").op() == "Identity");
    CHECK(l.node("w/body/effects").op() == "Identity");
  }
}

TEST_CASE("names that are there already cost few attempts") {
  Lowered l;
  l.define(doubled());
  std::vector<NodeDef> nodes = {placeholder("x"), placeholder("y/n")};
  for (int i = 1; i < 1000; ++i)
    nodes.push_back(placeholder(fmt::format("y_{}/n", i)));
  nodes.push_back(body_node("y", "doubled", {"x"}));
  l.expect_lowered(nodes, "y");
  CHECK(l.program.fetches[0].node->name() == "y_1024/result_0");
}

TEST_CASE("a loop that is lowered has a frame that no other loop has") {
  // One of the primitives has the name that it would have.
  const AttrMap type = {{"T", kInt}};
  const std::vector<NodeDef> loop = {
      body_node("enter", "Enter", {"x"},
                {{"T", kInt}, {"frame_name", "w/frame"}}),
      body_node("merge", "Merge", {"enter", "next"}, {{"T", kInt}, {"N", 2}}),
      body_int("less", "Less", "merge", "merge"),
      body_node("cond", "LoopCond", {"less"}),
      body_node("switch", "Switch", {"merge", "cond"}, type),
      body_node("next", "NextIteration", {"switch:1"}, type),
      body_node("exit", "Exit", {"switch:0"}, type)};
  Lowered l;
  l.define(function("small", {"x: int32"}, {"b: bool"},
                    {body_int("less", "Less", "x", "x")}, {{"b", "less:z:0"}}));
  l.define(doubled());
  std::vector<NodeDef> nodes = loop;
  nodes.push_back(placeholder("x"));
  nodes.push_back(
      body_node("w", "While", {"x"}, loop_attrs(1, "small", "doubled")));
  nodes.push_back(body_int("y", "Add", "w", "exit"));
  l.expect_lowered(nodes, "y");
  CHECK(l.node("w_1/enter_0").attr<std::string>("frame_name").value() ==
        "w_1/frame");
}

TEST_CASE("two names that a function has twice are refused") {
  const auto refuse = [](FunctionDef f, const std::string& name) {
    Lowered l;
    l.define(std::move(f));
    l.expect_refused({placeholder("x"), body_node("y", "f", {"x"})},
                     Code::kInvalidArgument,
                     "[f] node \"y\": function \"f\": two arguments or nodes "
                     "are named \"" +
                         name + "\"");
  };
  refuse(function("f", {"a: int32"}, {"r: int32"},
                  {body_int("a", "Add", "a", "a")}, {{"r", "a"}}),
         "a");
  refuse(
      function("f", {"a: int32"}, {"r: int32"},
               {body_int("b", "Add", "a", "a"), body_int("b", "Sub", "a", "a")},
               {{"r", "a"}}),
      "b");
}

TEST_CASE("the op that stands for a recursive call is refused in a graph") {
  const AttrMap attrs =
      int_ports(1, 1, {{"f", FunctionRef{"f", {}}}, {"body", 3}});
  {
    Lowered l;
    l.expect_refused({placeholder("x"), body_node("y", "_Call", {"x"}, attrs)},
                     Code::kInvalidArgument,
                     "[_Call] node \"y\": a graph cannot have this op, which "
                     "stands for a call that runs");
  }
  {
    Lowered l;
    l.define(function("f", {"n: int32"}, {"r: int32"},
                      {body_node("call", "_Call", {"n"}, attrs)},
                      {{"r", "call:output:0"}}));
    l.expect_refused({placeholder("x"), body_node("y", "f", {"x"})},
                     Code::kInvalidArgument,
                     "[f] node \"y\": function \"f\": [_Call] node \"call\": a "
                     "function cannot have this op");
  }
}

}  // namespace tagflow::graph
