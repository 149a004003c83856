#include "graph/analysis/validate.h"

#include <doctest/doctest.h>

#include "graph/function.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

struct Loop {
  Graph graph;
  Node* zero = constant(graph, "zero", Tensor::scalar(0));
  Node* nine = constant(graph, "nine", Tensor::scalar(9));
  Counter counter = testing::counter(graph, "loop", {zero, 0}, {nine, 0});
};

}  // namespace

TEST_CASE("graphs that were built without an error are valid") {
  must(validate(Graph()));
  Loop loop;
  must(validate(loop.graph));
  must(validate(loop.graph.clone()));
}

TEST_CASE("rule 1: the number of nodes is bounded, functions included") {
  Loop loop;
  Limits limits;
  limits.max_nodes = loop.graph.size();
  must(validate(loop.graph, limits));
  FunctionDef f;
  f.signature.name = "f";
  f.nodes.push_back(def("x", "NoOp"));
  must(loop.graph.library().add(f));
  CHECK(message_of(validate(loop.graph, limits), Code::kResourceExhausted) ==
        "[graph] 14 nodes, those of functions included, are over the limit "
        "of 13");
}

TEST_CASE("rule 2: names are as short as the limits say") {
  Loop loop;
  Limits limits;
  limits.max_name_length = 10;
  CHECK(message_of(validate(loop.graph, limits), Code::kResourceExhausted) ==
        "[Switch] node \"loop/switch\": the name has 11 bytes, the limit is "
        "10");
}

TEST_CASE("rule 3: a function's node needs its function") {
  Graph graph;
  FunctionDef f;
  f.signature.name = "SomeFunction";
  must(graph.library().add(f));
  add(graph, "x", "SomeFunction");
  must(validate(graph));
  Graph copy = graph.clone();
  must(validate(copy));
  copy.library() = FunctionLibrary();
  CHECK(message_of(validate(copy), Code::kUnimplemented) ==
        "[SomeFunction] node \"x\": the op is neither registered nor a "
        "function of the library");
}

TEST_CASE("rule 4: attributes that were changed are checked again") {
  Loop loop;
  loop.graph.set_attr(loop.counter.add, "T", "text");
  CHECK(message_of(validate(loop.graph), Code::kInvalidArgument) ==
        "[AddV2] node \"loop/add\": attribute \"T\" is of type string");
  loop.graph.set_attr(loop.counter.add, "T", DataType::kFloat);
  CHECK(message_of(validate(loop.graph), Code::kInvalidArgument) ==
        "[AddV2] node \"loop/add\": input 0 (\"loop/body:0\") is int32, float "
        "is wanted as x");
  loop.graph.set_attr(loop.counter.add, "T", DataType::kInt32);
  must(validate(loop.graph));
}

TEST_CASE("rule 4: functions nest in attributes up to the limit") {
  Graph graph;
  FunctionRef deep{"f", {}};
  for (int i = 0; i < 3; ++i)
    deep = FunctionRef{"f", {{"inner", std::vector<FunctionRef>{deep}}}};
  add(graph, "x", "NoOp", {}, {{"_f", deep}});
  Limits limits;
  limits.max_attr_depth = 4;
  must(validate(graph, limits));
  limits.max_attr_depth = 3;
  CHECK(message_of(validate(graph, limits), Code::kResourceExhausted) ==
        "[NoOp] node \"x\": functions nest deeper than 3 in its attributes");
}

TEST_CASE("rule 6: the value of a Const has its type") {
  Loop loop;
  loop.graph.set_attr(loop.zero, "value", Tensor::scalar(0.5F));
  CHECK(message_of(validate(loop.graph), Code::kInvalidArgument) ==
        "[Const] node \"zero\": the value is float[], attribute \"dtype\" "
        "says int32");
}

TEST_CASE("rule 7: an open back edge is refused") {
  Loop loop;
  must(loop.graph.set_input(loop.counter.merge, 1, {}));
  CHECK(message_of(validate(loop.graph), Code::kInvalidArgument) ==
        "[Merge] node \"loop/merge\": input 1 is a back edge that leads "
        "nowhere; a NextIteration must close it");
}

TEST_CASE("rule 7: a cycle goes through a back edge") {
  Loop loop;
  loop.graph.add_control_input(loop.counter.merge, loop.counter.add);
  CHECK(contains(message_of(validate(loop.graph), Code::kInvalidArgument),
                 "does not go through a NextIteration into a Merge"));
}

TEST_CASE("rule 8: a loop has one predicate") {
  Loop loop;
  add(loop.graph, "second", "LoopCond", {{loop.counter.less, 0}});
  CHECK(message_of(validate(loop.graph), Code::kInvalidArgument) ==
        "[LoopCond] frame \"loop\" has \"loop/cond\" and \"second\"; a loop "
        "has one predicate: give each loop a frame_name of its own");
}

TEST_CASE("rule 8: a loop may have no predicate, and a predicate no loop") {
  Graph graph;
  Node* p = constant(graph, "p", Tensor::scalar(true));
  add(graph, "first", "LoopCond", {{p, 0}});
  add(graph, "second", "LoopCond", {{p, 0}});
  Node* enter = add(graph, "enter", "Enter", {{p, 0}}, {{"frame_name", "f"}});
  add(graph, "exit", "Exit", {{enter, 0}});
  must(validate(graph));
}

TEST_CASE("rule 8: frames are checked") {
  Loop loop;
  loop.graph.add_control_input(loop.counter.body, loop.nine);
  CHECK(contains(message_of(validate(loop.graph), Code::kInvalidArgument),
                 "control input \"^nine\" is in the root frame"));
}

TEST_CASE("rule 9: a function's nodes have legal, unique names") {
  Graph graph;
  FunctionDef f;
  f.signature.name = "f";
  f.nodes = {def("x", "NoOp"), def("x", "NoOp")};
  must(graph.library().add(f));
  CHECK(message_of(validate(graph), Code::kAlreadyExists) ==
        "[function] \"f\": two nodes are named \"x\"");
  Graph other;
  f.nodes = {def("x y", "NoOp")};
  must(other.library().add(f));
  CHECK(message_of(validate(other), Code::kInvalidArgument) ==
        "[function] \"f\": \"x y\" is not a legal name of a node");
}
