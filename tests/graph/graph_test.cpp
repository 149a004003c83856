#include "graph/graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include "graph/function.h"
#include "graph/node_name.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "tests/failing_new.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("a node gets default attributes and those its inputs imply") {
  Graph graph;
  Node* x = constant(graph, "x", Tensor::scalar(1.0F));
  Node* sum = add(graph, "sum", "AddN", {{x, 0}, {x, 0}, {x, 0}});
  CHECK(*sum->attr<int64_t>("N") == 3);
  CHECK(*sum->attr<DataType>("T") == DataType::kFloat);
  CHECK(
      std::ranges::equal(sum->output_dtypes(), std::vector{DataType::kFloat}));
  Node* product = add(
      graph, "product", "MatMul",
      {{add(graph, "m", "Placeholder", {}, {{"dtype", DataType::kFloat}}), 0},
       {graph.find("m"), 0}});
  CHECK(*product->attr<bool>("transpose_a") == false);
}

TEST_CASE("a node's list of types is inferred from the inputs") {
  Graph graph;
  Node* x = constant(graph, "x", Tensor::scalar(1.0F));
  Node* s = constant(graph, "s", Tensor::scalar("text"));
  Node* both = add(graph, "both", "IdentityN", {{x, 0}, {s, 0}});
  CHECK(std::ranges::equal(both->output_dtypes(),
                           std::vector{DataType::kFloat, DataType::kString}));
  CHECK(both->num_inputs() == 2);
}

TEST_CASE("an attribute that no op declares is kept if it begins with _") {
  Graph graph;
  Node* x = add(graph, "x", "NoOp", {},
                {{"_class", std::vector<std::string>{"loc:@y"}}});
  CHECK(x->attrs().size() == 1);
  CHECK(*x->attr<std::vector<std::string>>("_class") ==
        std::vector<std::string>{"loc:@y"});
  CHECK(graph.add("y", "NoOp", {}, {{"class", 7}}).status().message() ==
        "[NoOp] node \"y\": the op has no attribute \"class\"");
}

TEST_CASE("an attribute that is not there is an error that names the node") {
  Graph graph;
  Node* x = add(graph, "x", "NoOp");
  CHECK(x->attr<int64_t>("N").status().to_string() ==
        "NotFound: [NoOp] node \"x\": no attribute \"N\"");
}

TEST_CASE("a reference is accepted if its value is wanted") {
  Graph graph;
  Node* x = constant(graph, "x", Tensor::scalar(1.0F));
  Node* enter = add(graph, "enter", "Enter", {{x, 0}}, {{"frame_name", "f"}});
  CHECK(enter->output_dtypes()[0] == DataType::kFloat);
  const Status status =
      graph.add("ref", "RefIdentity", std::vector<Endpoint>{{x, 0}}).status();
  CHECK(status.message() ==
        "[RefIdentity] node \"ref\": input 0 (\"x:0\") is float, float_ref is "
        "wanted as input");
}

TEST_CASE("a refused node leaves the graph as it was") {
  Graph graph;
  Node* x = constant(graph, "x", Tensor::scalar(1));
  const std::vector<Endpoint> inputs = {{x, 0}, {x, 5}};
  CHECK_FALSE(graph.add("y", "AddV2", inputs).ok());
  CHECK(graph.size() == 1);
  CHECK(graph.find("y") == nullptr);
  Node* y = add(graph, "y", "AddV2", {{x, 0}, {x, 0}});
  CHECK(y->id() == x->id() + 1);
}

TEST_CASE("an input of another graph is refused") {
  Graph graph;
  Graph other;
  constant(graph, "x", Tensor::scalar(1));
  Node* foreign = constant(other, "x", Tensor::scalar(1));
  const Status status =
      graph.add("y", "Identity", std::vector<Endpoint>{{foreign, 0}}).status();
  CHECK(status.message() ==
        "[Identity] node \"y\": input 0 (\"x:0\") is not of this graph");
  const std::vector<Node*> control = {foreign};
  CHECK(graph.add("z", "NoOp", {}, {}, control).status().message() ==
        "[NoOp] node \"z\": a control input is not of this graph");
}

TEST_CASE("a Merge alone may have an open input, which is closed by type") {
  Graph graph;
  Node* x = constant(graph, "x", Tensor::scalar(1));
  Node* f = constant(graph, "f", Tensor::scalar(1.0F));
  const std::vector<Endpoint> open = {{x, 0}, {}};
  CHECK(graph.add("y", "AddV2", open).status().message() ==
        "[AddV2] node \"y\": input 1 is open; only those of a Merge may be");
  Node* merge = add(graph, "merge", "Merge", open);
  CHECK(merge->input_dtypes()[1] == DataType::kInt32);
  CHECK(graph.set_input(merge, 1, {f, 0}).message() ==
        "[Merge] node \"merge\": input 1 (\"f:0\") is float, int32 is wanted");
  CHECK(graph.set_input(merge, 2, {x, 0}).message() ==
        "[Merge] node \"merge\": no input 2, there are 2");
  CHECK(graph.set_input(merge, 1, {x, 1}).message() ==
        "[Merge] node \"merge\": input 1 (\"x:1\"): node \"x\" (Const) has 1 "
        "output(s)");
  must(graph.set_input(merge, 1, {x, 0}));
  CHECK(merge->inputs()[1] == Endpoint{x, 0});
}

TEST_CASE("control inputs are kept once each") {
  Graph graph;
  Node* a = add(graph, "a", "NoOp");
  Node* b = add(graph, "b", "NoOp", {}, {}, {a, a});
  graph.add_control_input(b, a);
  CHECK(std::ranges::equal(b->control_inputs(), std::vector{a}));
  Node* c = add(graph, "c", "NoOp");
  graph.set_control_inputs(b, std::vector{c, a, c});
  CHECK(std::ranges::equal(b->control_inputs(), std::vector{c, a}));
  std::vector<Node*> many;
  for (int i = 0; i < 20; ++i)
    many.push_back(add(graph, fmt::format("n{}", i), "NoOp"));
  std::vector<Node*> twice = many;
  twice.insert(twice.end(), many.rbegin(), many.rend());
  graph.set_control_inputs(b, twice);
  CHECK(std::ranges::equal(b->control_inputs(), many));
}

TEST_CASE("a shape function's error names the node") {
  Graph graph;
  Node* a = constant(graph, "a", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const std::vector<Endpoint> inputs = {{a, 0}, {a, 0}};
  const Status status = graph.add("y", "MatMul", inputs).status();
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message().starts_with("[MatMul] node \"y\": "));
  CHECK(status.message().find("node \"y\"", 20) == std::string::npos);
}

TEST_CASE("shapes are inferred as nodes are added") {
  Graph graph;
  Node* a = constant(graph, "a", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  Node* y =
      add(graph, "y", "MatMul", {{a, 0}, {a, 0}}, {{"transpose_b", true}});
  CHECK(y->output_shape(0).to_string() == "[2,2]");
  graph.set_output_shape(y, 0, PartialShape({2, -1}));
  CHECK(y->output_shape(0).to_string() == "[2,?]");
}

TEST_CASE("an endpoint is found by its text") {
  Graph graph;
  Node* x = constant(graph, "layer/weights", Tensor::scalar(1));
  CHECK(must(graph.endpoint("layer/weights")) == Endpoint{x, 0});
  CHECK(must(graph.endpoint("layer/weights:0")) == Endpoint{x, 0});
  CHECK(graph.endpoint("layer/wieghts:0").status().to_string() ==
        "NotFound: [graph] no node \"layer/wieghts\", did you mean "
        "\"layer/weights\"?");
  CHECK(graph.endpoint("layer/weights:1").status().to_string() ==
        "InvalidArgument: [graph] \"layer/weights:1\": node "
        "\"layer/weights\" (Const) has 1 output(s)");
  CHECK(graph.endpoint("^layer/weights").status().code() ==
        Code::kInvalidArgument);
}

TEST_CASE("unique names count up, past names that are taken") {
  Graph graph;
  CHECK(graph.unique_name("x") == "x");
  add(graph, "x", "NoOp");
  add(graph, "x_2", "NoOp");
  CHECK(graph.unique_name("x") == "x_1");
  add(graph, "x_1", "NoOp");
  CHECK(graph.unique_name("x") == "x_3");
}

TEST_CASE("a unique name is no longer than a name may be") {
  Graph graph;
  const std::string longest(kMaxNameLength, 'x');
  CHECK(graph.unique_name(longest) == longest);
  add(graph, longest, "NoOp");
  for (int i = 1; i <= 2; ++i) {
    const std::string name = graph.unique_name(longest);
    CHECK(name.ends_with(fmt::format("xx_{}", i)));
    add(graph, name, "NoOp");
  }
}

TEST_CASE("removing nodes frees their names") {
  Graph graph;
  Node* a = add(graph, "a", "NoOp");
  Node* b = add(graph, "b", "NoOp", {}, {}, {a});
  add(graph, "c", "NoOp");
  graph.remove(std::vector{b});
  CHECK(graph.size() == 2);
  CHECK(graph.find("b") == nullptr);
  Node* again = add(graph, "b", "NoOp");
  CHECK(again->id() == 3);
  CHECK(graph.nodes().back() == again);
}

TEST_CASE("a clone is equal and independent") {
  Graph graph;
  Node* start = constant(graph, "start", Tensor::scalar(0));
  Node* limit = constant(graph, "limit", Tensor::scalar(9));
  counter(graph, "loop", {start, 0}, {limit, 0});
  graph.set_producer_version(27);
  must(graph.library().add([] {
    FunctionDef f;
    f.signature.name = "f";
    return f;
  }()));
  Graph copy = graph.clone();
  REQUIRE(copy.size() == graph.size());
  for (size_t i = 0; i < graph.size(); ++i) {
    const Node& before = *graph.nodes()[i];
    const Node& after = *copy.nodes()[i];
    CHECK(&before != &after);
    CHECK(before.id() == after.id());
    CHECK(Graph::to_def(before) == Graph::to_def(after));
    for (const Endpoint& input : after.inputs())
      CHECK(copy.find(input.node->name()) == input.node);
  }
  CHECK(copy.producer_version() == 27);
  CHECK(copy.library().find("f") != nullptr);
  add(copy, "more", "NoOp");
  CHECK(graph.find("more") == nullptr);
  CHECK(graph.unique_name("loop/one") == copy.unique_name("loop/one"));
}

TEST_CASE("a node as text has its inputs in order, control inputs last") {
  Graph graph;
  Node* a = constant(graph, "a", Tensor::scalar(1));
  Node* p = constant(graph, "p", Tensor::scalar(true));
  Node* sw = add(graph, "s", "Switch", {{a, 0}, {p, 0}});
  const std::vector<Endpoint> inputs = {{sw, 1}};
  const std::vector<Node*> control = {p};
  Node* y = must(graph.add("y", "Identity", inputs, {}, control, "/cpu:0"));
  const NodeDef text = Graph::to_def(*y);
  CHECK(text.inputs == std::vector<std::string>{"s:1", "^p"});
  CHECK(text.device == "/cpu:0");
  CHECK(text.attrs.at("T") == AttrValue(DataType::kInt32));
}

TEST_CASE("the kinds of control-flow nodes include their reference twins") {
  Graph graph;
  Node* x = constant(graph, "x", Tensor::scalar(1));
  Node* enter = add(graph, "e", "Enter", {{x, 0}}, {{"frame_name", "f"}});
  CHECK(x->is_const());
  CHECK(enter->is_enter());
  CHECK(add(graph, "m", "Merge", {{enter, 0}})->is_merge());
  CHECK(add(graph, "n", "NextIteration", {{enter, 0}})->is_next_iteration());
  CHECK(add(graph, "o", "Exit", {{enter, 0}})->is_exit());
  CHECK(add(graph, "i", "Identity", {{x, 0}})->is_identity());
  CHECK(add(graph, "t", "ControlTrigger")->is_control_trigger());
}

TEST_CASE("a function of the library can be called as an op") {
  Graph graph;
  FunctionDef twice;
  twice.signature = OpDefBuilder("Twice")
                        .input("x: T")
                        .output("y: T")
                        .attr("T: type")
                        .build();
  must(graph.library().add(twice));
  Node* x = constant(graph, "x", Tensor::scalar(1.5F));
  Node* y = add(graph, "y", "Twice", {{x, 0}});
  CHECK(y->op() == "Twice");
  CHECK(y->output_dtypes()[0] == DataType::kFloat);
  CHECK_FALSE(y->output_shape(0).has_rank());
}

TEST_CASE("an exception of a shape function is an error with the node") {
  const auto add_op = [](const char* op, ShapeFn fn) {
    static_cast<void>(OpRegistry::global().add(
        OpDefBuilder(op).output("y: float").shape(std::move(fn)).build()));
  };
  add_op("TestShapeThrows", [](ShapeContext&) -> Status {
    throw std::runtime_error("as thrown");
  });
  add_op("TestShapeThrowsInt", [](ShapeContext&) -> Status { throw 3; });
  add_op("TestShapeOutOfMemory",
         [](ShapeContext&) -> Status { throw std::bad_alloc(); });
  Graph graph;
  CHECK(graph.add("x", "TestShapeThrows", {}).status().to_string() ==
        "Internal: [TestShapeThrows] node \"x\": unexpected exception: as "
        "thrown");
  CHECK(graph.add("x", "TestShapeThrowsInt", {}).status().to_string() ==
        "Internal: [TestShapeThrowsInt] node \"x\": unexpected exception of "
        "type int");
  CHECK(graph.add("x", "TestShapeOutOfMemory", {}).status().to_string() ==
        "ResourceExhausted: [TestShapeOutOfMemory] node \"x\": out of memory");
  CHECK(graph.nodes().empty());
}

TEST_CASE("a node for which there is no memory leaves the graph as it was") {
  // Up to where the tables of a graph grow, and beyond.
  for (const int before : {0, 7, 16, 32}) {
    for (int64_t k = 1;; ++k) {
      Graph graph;
      for (int i = 0; i < before; ++i)
        add(graph, "node_" + std::to_string(i), "NoOp");
      FailAllocation fail(k);
      bool added = false;
      try {
        added = graph.add("another_node_of_a_long_name", "NoOp", {}).ok();
      } catch (const std::bad_alloc&) {
      }
      fail.stop();
      CAPTURE(before);
      CAPTURE(k);
      REQUIRE(graph.nodes().size() == size_t(before + (added ? 1 : 0)));
      REQUIRE((graph.find("another_node_of_a_long_name") != nullptr) == added);
      if (!added)
        REQUIRE(graph.add("another_node_of_a_long_name", "NoOp", {}).ok());
      REQUIRE(graph.find("another_node_of_a_long_name")->id() ==
              NodeId(before));
      if (!fail.failed()) {
        CHECK(k > 1);
        break;
      }
    }
  }
}
