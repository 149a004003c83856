#include "graph/placement/ties.h"

#include "tests/graph/placement/placing.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("constraints that contradict are both named with their nodes") {
  Placing placing;
  placing.put("a", "NoOp", "/cpu:0", {}, with("x"));
  placing.put("b", "NoOp", "", {}, with("x"));
  placing.put("c", "NoOp", "/cpu:1", {}, with("x"));
  CHECK(placing.error() ==
        "[placement] nodes \"a\" and \"c\" must be on one device, and none "
        "is possible: \"a\" asks for \"/cpu:0\"; \"c\" asks for \"/cpu:1\"; "
        "they are together because \"c\" and \"a\" have the class \"loc:@x\"");
}

TEST_CASE("a constraint and a kernel that contradict are named with both") {
  Placing placing;
  Node* a = placing.matrix("a");
  placing.kernels.types["Neg"] = {"STREAM"};
  placing.put("b", "Neg", "", {{a, 0}}, with("c"));
  placing.put("c", "NoOp", "/cpu:*");
  CHECK(placing.error() ==
        "[placement] nodes \"b\" and \"c\" must be on one device, and none "
        "is possible: \"b\" (op Neg) has kernels for STREAM; \"c\" asks for "
        "\"/cpu:*\"; they are together because \"b\" has the class "
        "\"loc:@c\"");
}

TEST_CASE("a conflict names all three nodes without a common device") {
  Placing placing;
  placing.devices = make_devices(2, 2);
  placing.kernels = Kernels::on_both({"Neg"});
  Node* a = placing.matrix("a");
  placing.put("b", "NoOp", "/device:*:0", {}, with("x"));
  placing.put("c", "NoOp", "/device:STREAM:*", {}, with("x"));
  placing.put("d", "NoOp", "", {}, with("x"));
  placing.kernels.types["Tanh"] = {"CPU", "STREAM"};
  placing.put("e", "Tanh", "/device:*:1", {{a, 0}}, with("y"));
  must(placing.build());
  placing.kernels.types["Neg"] = {"CPU"};
  placing.put("f", "Neg", "", {{a, 0}}, with("x"));
  CHECK(placing.error() ==
        "[placement] nodes \"c\" and \"f\" must be on one device, and none "
        "is possible: \"c\" asks for \"/device:STREAM:*\"; \"f\" (op Neg) has "
        "kernels for CPU; they are together because \"c\" and \"b\" have the "
        "class \"loc:@x\", \"f\" and \"b\" have the class \"loc:@x\"");
  // Any two of these have one in common.
  Placing three;
  three.devices = make_devices(2);
  three.devices[0].name.task = 1;
  three.devices.push_back(make_devices(0, 1)[0]);
  three.devices[2].name.task = 1;
  three.devices[2].name.id = 1;
  Node* one = three.matrix("one");
  three.put("a", "NoOp", "/device:*:1", {}, with("x"));
  three.put("b", "NoOp", "/task:1", {}, with("x"));
  three.put("c", "Neg", "", {{one, 0}}, with("y"));
  must(three.build());
  three.graph.set_attr(three.graph.find("c"), "_class",
                       std::vector<std::string>{"loc:@x"});
  CHECK(three.error() ==
        "[placement] nodes \"a\", \"b\" and \"c\" must be on one device, and "
        "none is possible: \"a\" asks for \"/device:*:1\"; \"b\" asks for "
        "\"/task:1\"; \"c\" (op Neg) has kernels for CPU; they are together "
        "because \"b\" and \"a\" have the class \"loc:@x\", \"c\" and "
        "\"a\" have the class \"loc:@x\"");
}

TEST_CASE("a conflict says by what its nodes are tied") {
  Placing placing;
  Graph& graph = placing.graph;
  Node* start = constant(graph, "start", Tensor::scalar(0));
  Node* stack =
      placing.put("stack", "StackV2", "", {{start, 0}},
                  {{"elem_type", DataType::kInt32},
                   {"_class", std::vector<std::string>{"loc:@near"}}});
  placing.put("near", "NoOp", "/cpu:0");
  Node* enter = placing.put("enter", "Enter", "", {{stack, 0}},
                            {{"frame_name", "f"}, {"is_constant", true}});
  Node* pop = placing.put("pop", "StackPopV2", "", {{enter, 0}},
                          {{"elem_type", DataType::kInt32},
                           {"_class", std::vector<std::string>{"loc:@far"}}});
  placing.put("far", "NoOp", "/cpu:1");
  CHECK(
      placing.error() ==
      "[placement] nodes \"near\" and \"far\" must be on one device, and "
      "none is possible: \"near\" asks for \"/cpu:0\"; \"far\" asks for "
      "\"/cpu:1\"; they are together because \"stack\" has the class "
      "\"loc:@near\", \"enter\" reads a resource of \"stack\", \"pop\" reads a "
      "resource of \"enter\", \"pop\" has the class \"loc:@far\"");
  // Of a long way the first ties are told.
  graph.remove(std::vector{pop, enter});
  Node* last = stack;
  for (int i = 0; i < 5; ++i)
    last = placing.put(fmt::format("same_{}", i), "Identity", "", {{last, 0}});
  graph.set_attr(last, "_class", std::vector<std::string>{"loc:@far"});
  CHECK(contains(placing.error(),
                 "\"same_2\" reads a resource of \"same_1\", "
                 "... (3 more)"));
}

TEST_CASE("a conflict says which loop its nodes enter, or are all in") {
  Placing placing;
  Graph& graph = placing.graph;
  Node* start = constant(graph, "start", Tensor::scalar(0));
  Node* limit = constant(graph, "limit", Tensor::scalar(3));
  const Counter loop = counter(graph, "loop", {start, 0}, {limit, 0});
  on(graph, loop.enter, "/cpu:0");
  on(graph, loop.merge, "/cpu:1");
  CHECK(contains(placing.error(),
                 "they are together because \"loop/enter\" "
                 "enters the loop of frame \"loop\" at "
                 "\"loop/merge\""));
  // A reader of an Enter beside the Merge: the loop is not cut.
  on(graph, loop.enter, "");
  Node* beside = placing.put("beside", "Neg", "/cpu:0", {{loop.enter, 0}});
  must(graph.set_input(loop.less, 1, {beside, 0}));
  CHECK(contains(placing.error(), "\"beside\""));
  CHECK(contains(placing.error(),
                 "they are together because the loop of frame \"loop\" has "
                 "to be on one device: "));
}

TEST_CASE("a reference that is read is told as one") {
  Placing placing;
  Node* stack =
      placing.put("stack", "Stack", "", {},
                  {{"elem_type", DataType::kFloat},
                   {"_class", std::vector<std::string>{"loc:@near"}}});
  placing.put("same", "RefIdentity", "", {{stack, 0}},
              {{"_class", std::vector<std::string>{"loc:@far"}}});
  placing.put("near", "NoOp", "/cpu:0");
  placing.put("far", "NoOp", "/cpu:1");
  CHECK(contains(placing.error(), "\"same\" reads a reference of \"stack\""));
}
