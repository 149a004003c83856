#include "graph/placement/colocation.h"

#include "tests/graph/functions/lowered.h"
#include "tests/graph/placement/placing.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("a node runs where it has a kernel and may by its constraint") {
  Placing placing;
  placing.kernels = Kernels::on_both({"MatMul"});
  Node* a = placing.matrix("a");
  Node* b = placing.put("b", "MatMul", "", {{a, 0}, {a, 0}});
  Node* c = placing.put("c", "MatMul", "/cpu:*", {{a, 0}, {a, 0}});
  Node* d = placing.put("d", "MatMul", "/device:*:0", {{a, 0}, {a, 0}});
  const Colocation groups = must(placing.build());
  CHECK(groups.size() == 4);
  const auto devices_of = [&](Node* node) {
    return indices(groups.devices_of(groups.group_of(*node)));
  };
  CHECK(devices_of(a) == "0 1");
  CHECK(devices_of(b) == "0 1 2");
  CHECK(devices_of(c) == "0 1");
  CHECK(devices_of(d) == "0 2");
  CHECK_FALSE(groups.is_constrained(*b));
  CHECK(groups.is_constrained(*c));
}

TEST_CASE("placement: kernels are asked for once for each op and types") {
  Placing placing;
  Node* a = placing.matrix("a");
  for (int i = 0; i < 100; ++i)
    placing.put(fmt::format("n{}", i), "Neg", "", {{a, 0}});
  must(placing.build());
  CHECK(placing.kernels.questions == 2 * 2);  // two ops on two types
}

TEST_CASE("placement without devices is refused") {
  Placing placing;
  placing.devices.clear();
  CHECK(placing.error() == "[placement] there are no devices");
}

TEST_CASE("a malformed constraint is refused") {
  Placing placing;
  placing.put("a", "NoOp", "/cpu:x");
  CHECK(placing.error() ==
        "[placement] node \"a\": [device] the name \"/cpu:x\": \"x\", of the "
        "device, is not a number from 0 to 2147483647");
}

TEST_CASE("a constraint that no device meets is told which there are") {
  Placing placing;
  placing.put("a", "NoOp", "/gpu:0");
  CHECK(placing.error() ==
        fmt::format("[placement] node \"a\" asks for \"/gpu:0\", and there is "
                    "no such device; the devices are {}; --devices "
                    "(SessionOptions::devices) makes others, and "
                    "--soft-placement (SessionOptions::soft_placement) takes a "
                    "CPU instead",
                    kDevices));
  placing.devices = make_devices(12);
  CHECK(contains(placing.error(), "device:CPU:7, ... (12 in all); --devices"));
}

TEST_CASE("placement: a constraint without a kernel is told which there are") {
  Placing placing;
  placing.kernels = Kernels::on_both({"Neg"});
  Node* a = placing.matrix("a");
  placing.put("b", "Neg", "/stream:0", {{a, 0}});
  must(placing.build());
  placing.put("c", "Tanh", "/stream:0", {{a, 0}});
  CHECK(placing.error() ==
        "[placement] node \"c\" asks for \"/stream:0\", but its op Tanh has "
        "kernels for CPU");
}

TEST_CASE("placement: a kernel for other types does not count") {
  Placing placing;
  placing.kernels = Kernels::on_both({"Neg"});
  Node* one = constant(placing.graph, "one", Tensor::scalar(1));
  placing.put("b", "Neg", "/stream:0", {{one, 0}});
  CHECK(placing.error() ==
        "[placement] node \"b\" asks for \"/stream:0\", but its op Neg has "
        "kernels for CPU, STREAM (of other types)");
}

TEST_CASE("a node without a kernel on any device is refused") {
  Placing placing;
  placing.kernels.types["Tanh"] = {"GPU"};
  placing.kernels.types["Neg"] = {};
  placing.devices = make_devices(1);
  Node* a = placing.matrix("a");
  Node* b = placing.put("b", "Tanh", "", {{a, 0}});
  CHECK(placing.error() ==
        "[placement] node \"b\" (op Tanh) has kernels for GPU, and so can run "
        "on none of the devices "
        "/job:localhost/replica:0/task:0/device:CPU:0");
  placing.graph.remove(std::vector{b});
  placing.put("c", "Neg", "", {{a, 0}});
  placing.options.soft = true;  // which does not help
  CHECK(placing.error().starts_with(
      "[placement] node \"c\" (op Neg) has no kernels, and so can run"));
}

TEST_CASE("placement: fed tensors and strings are on a host") {
  Placing placing;
  placing.kernels = Kernels::on_both({"Identity", "Const"});
  Node* text = constant(placing.graph, "text", Tensor::scalar(std::string()));
  Node* same = placing.put("same", "Identity", "", {{text, 0}});
  Node* p =
      placing.put("p", "Placeholder", "", {},
                  {{"dtype", DataType::kBool}, {"shape", PartialShape()}});
  Node* fork = placing.put("fork", "Switch", "", {{text, 0}, {p, 0}});
  Node* number = constant(placing.graph, "number", Tensor::scalar(0.f));
  const std::vector<Node*> of_the_host = {text, same, p, fork};
  // An accelerator asks in vain, a host does not.
  for (const std::string device : {"", "/stream:0", "/stream:*", "/cpu:1"}) {
    CAPTURE(device);
    for (Node* node : of_the_host) on(placing.graph, node, device);
    const Colocation groups = must(placing.build());
    for (Node* node : of_the_host) {
      const bool counts = device == "/cpu:1";
      CHECK(indices(groups.devices_of(groups.group_of(*node))) ==
            (counts ? "1" : "0 1"));
      CHECK(groups.is_constrained(*node) == counts);
    }
    CHECK(indices(groups.devices_of(groups.group_of(*number))) == "0 1 2");
    CHECK(groups.warnings().empty());
  }
  on(placing.graph, p, "/gpu:0");
  CHECK(contains(placing.error(),
                 "node \"p\" asks for \"/gpu:0\", and there "
                 "is no such device"));
}

TEST_CASE("placement: a node that needs a host is refused elsewhere") {
  Placing placing;
  Node* text = constant(placing.graph, "text", Tensor::scalar(std::string()));
  placing.put("same", "Identity", "/cpu:1", {{text, 0}});
  placing.devices[1].host_memory = false;
  must(placing.build());
  placing.kernels.types["Identity"] = {"STREAM"};
  CHECK(contains(placing.error(),
                 "node \"same\" (op Identity) has kernels for STREAM and needs "
                 "memory that the host reads, and so can run on none of"));
}

TEST_CASE("a stack under an accelerator's scope is on a host, as one") {
  Placing placing;
  placing.kernels = Kernels::on_both({"Const", "Neg"});
  Node* size =
      placing.put("size", "Const", "/cpu:0", {},
                  {{"value", Tensor::scalar(9)}, {"dtype", DataType::kInt32}});
  const std::string there = "/stream:0";
  Node* a = placing.matrix("a", there);
  Node* stack = placing.put("stack", "StackV2", there, {{size, 0}},
                            {{"elem_type", DataType::kFloat}});
  Node* push = placing.put("push", "StackPushV2", there, {{stack, 0}, {a, 0}});
  Node* neg = placing.put("neg", "Neg", there, {{push, 0}});
  const Colocation groups = must(placing.build());
  CHECK(groups.group_of(*stack) == groups.group_of(*push));
  CHECK(indices(groups.devices_of(groups.group_of(*stack))) == "0 1");
  CHECK(indices(groups.devices_of(groups.group_of(*neg))) == "2");
  CHECK(groups.warnings().empty());
  // Numbers that only a CPU computes are an error.
  placing.put("tanh", "Tanh", there, {{push, 0}});
  CHECK(placing.error() ==
        "[placement] node \"tanh\" asks for \"/stream:0\", but its op Tanh "
        "has kernels for CPU");
}

TEST_CASE("placement: a class follows the state of its members") {
  Placing placing;
  placing.kernels = Kernels::on_both({"VarHandleOp", "ReadVariableOp"});
  Node* size =
      placing.put("size", "Const", "/cpu:0", {},
                  {{"value", Tensor::scalar(9)}, {"dtype", DataType::kInt32}});
  Node* v = placing.put(
      "v", "VarHandleOp", "/stream:0", {},
      {{"dtype", DataType::kFloat}, {"shape", PartialShape::scalar()}});
  Node* read = placing.put("read", "ReadVariableOp", "", {{v, 0}},
                           {{"dtype", DataType::kFloat}});
  AttrMap attrs = with("read");
  attrs["elem_type"] = DataType::kFloat;
  Node* stack = placing.put("stack", "StackV2", "", {{size, 0}}, attrs);
  // The stack's, but for its name able to be anywhere.
  Node* entered =
      placing.put("entered", "Identity", "", {{stack, 0}}, with("read"));
  Colocation groups = must(placing.build());
  CHECK(indices(groups.devices_of(groups.group_of(*read))) == "2");
  CHECK(indices(groups.devices_of(groups.group_of(*stack))) == "0 1");
  CHECK(groups.group_of(*entered) == groups.group_of(*stack));
  CHECK(groups.warnings().empty());
  on(placing.graph, v, "");
  groups = must(placing.build());
  CHECK(groups.group_of(*read) == groups.group_of(*stack));
}

TEST_CASE("placement: a host's node leaves a class on an accelerator") {
  Placing placing;
  placing.kernels = Kernels::on_both({"Const", "Neg"});
  Node* size =
      placing.put("size", "Const", "/cpu:0", {},
                  {{"value", Tensor::scalar(9)}, {"dtype", DataType::kInt32}});
  Node* a = placing.matrix("a");
  AttrMap attrs = with("neg");
  attrs["elem_type"] = DataType::kFloat;
  Node* stack = placing.put("stack", "StackV2", "", {{size, 0}}, attrs);
  Node* neg = placing.put("neg", "Neg", "/stream:0", {{a, 0}});
  // It is still what brings these together.
  Node* other = placing.put("other", "NoOp", "", {}, with("neg"));
  Colocation groups = must(placing.build());
  CHECK(groups.group_of(*neg) == groups.group_of(*other));
  CHECK(groups.group_of(*neg) != groups.group_of(*stack));
  CHECK(indices(groups.devices_of(groups.group_of(*other))) == "2");
  CHECK(indices(groups.devices_of(groups.group_of(*stack))) == "0 1");
  CHECK(groups.class_of(*stack) == Colocation::kNoClass);
  CHECK(groups.class_of(*neg) == groups.class_of(*other));
  // If a host can hold the class, it is in it as any other.
  on(placing.graph, neg, "");
  groups = must(placing.build());
  CHECK(groups.group_of(*neg) == groups.group_of(*stack));
  on(placing.graph, neg, "/cpu:0");
  on(placing.graph, stack, "/cpu:1");
  // What is said of a handle gives way to what is said of other nodes.
  groups = must(placing.build());
  CHECK(indices(groups.devices_of(groups.group_of(*stack))) == "0");
  REQUIRE(groups.warnings().size() == 1);
  CHECK(contains(groups.warnings()[0],
                 "\"stack\" asks for \"/cpu:1\", which gives way to a node on "
                 "the same device"));
}

TEST_CASE("placement: a class joins nodes even if no node has its name") {
  Placing placing;
  Node* a = placing.put("a");
  Node* b = placing.put("b", "NoOp", "", {}, with("a"));
  Node* c = placing.put("c", "NoOp", "/cpu:1", {}, with("gone"));
  Node* d = placing.put("d", "NoOp", "", {}, with("gone"));
  Node* e = placing.put("e", "NoOp", "", {}, {{"_class", EmptyList()}});
  Node* f = placing.put(
      "f", "NoOp", "", {},
      {{"_class", std::vector<std::string>{"other", "loc:@b", "loc:@e"}}});
  const Colocation groups = must(placing.build());
  CHECK(groups.size() == 2);
  for (Node* node : {b, e, f})
    CHECK(groups.group_of(*a) == groups.group_of(*node));
  CHECK(groups.group_of(*c) == groups.group_of(*d));
  CHECK(indices(groups.devices_of(groups.group_of(*d))) == "1");
}

TEST_CASE("a class of another type is refused") {
  Placing placing;
  placing.put("a", "NoOp", "", {}, {{"_class", "loc:@b"}});
  CHECK(placing.error() ==
        "[placement] node \"a\": attribute \"_class\" is of type string, not "
        "list(string)");
}

TEST_CASE("a class that names no node is refused") {
  Placing placing;
  placing.put("a", "NoOp", "", {}, with(""));
  CHECK(placing.error() ==
        "[placement] node \"a\": the class \"loc:@\" names no node");
}

TEST_CASE("placement: all nodes that touch a stack are on its device") {
  Placing placing;
  Graph& graph = placing.graph;
  Node* size = constant(graph, "size", Tensor::scalar(9));
  Node* limit = constant(graph, "limit", Tensor::scalar(3));
  Node* stack = placing.put("stack", "StackV2", "", {{size, 0}},
                            {{"elem_type", DataType::kInt32}});
  const Counter loop = counter(graph, "loop", {size, 0}, {limit, 0});
  Node* handle = placing.put("handle", "Enter", "", {{stack, 0}},
                             {{"frame_name", "loop"}, {"is_constant", true}});
  Node* push = placing.put("push", "StackPushV2", "/cpu:1",
                           {{handle, 0}, {loop.body, 0}});
  const Colocation groups = must(placing.build());
  for (Node* node : {handle, push})
    CHECK(groups.group_of(*stack) == groups.group_of(*node));
  CHECK(groups.group_of(*size) != groups.group_of(*stack));
  CHECK(indices(groups.devices_of(groups.group_of(*stack))) == "1");
}

TEST_CASE("placement: a reference stays on its device") {
  Placing placing;
  Node* stack =
      placing.put("stack", "Stack", "", {}, {{"elem_type", DataType::kFloat}});
  Node* same = placing.put("same", "RefIdentity", "", {{stack, 0}});
  Node* pop = placing.put("pop", "StackPop", "", {{same, 0}},
                          {{"elem_type", DataType::kFloat}});
  Node* neg = placing.put("neg", "Neg", "", {{pop, 0}});
  const Colocation groups = must(placing.build());
  CHECK(groups.group_of(*stack) == groups.group_of(*same));
  CHECK(groups.group_of(*stack) == groups.group_of(*pop));
  CHECK(groups.group_of(*stack) != groups.group_of(*neg));
}

TEST_CASE("placement: a loop variable is one group, the loop's rest is free") {
  Placing placing;
  Node* start = constant(placing.graph, "start", Tensor::scalar(0));
  Node* limit = constant(placing.graph, "limit", Tensor::scalar(3));
  const Counter loop = counter(placing.graph, "loop", {start, 0}, {limit, 0});
  const Colocation groups = must(placing.build());
  for (Node* node : {loop.enter, loop.branch, loop.next, loop.exit})
    CHECK(groups.group_of(*loop.merge) == groups.group_of(*node));
  CHECK(groups.group_of(*loop.limit) == groups.group_of(*loop.less));
  for (Node* node : {start, limit, loop.less, loop.cond, loop.body, loop.add})
    CHECK(groups.group_of(*loop.merge) != groups.group_of(*node));
}

TEST_CASE("placement: control flow leaves its data if a constraint says so") {
  Placing placing;
  Node* start = constant(placing.graph, "start", Tensor::scalar(0));
  Node* limit = constant(placing.graph, "limit", Tensor::scalar(3));
  const Counter loop = counter(placing.graph, "loop", {start, 0}, {limit, 0});
  on(placing.graph, loop.merge, "/cpu:0");
  on(placing.graph, loop.branch, "/cpu:1");
  on(placing.graph, loop.exit, "/cpu:0");
  Colocation groups = must(placing.build());
  CHECK(groups.group_of(*loop.merge) != groups.group_of(*loop.branch));
  CHECK(groups.group_of(*loop.branch) != groups.group_of(*loop.exit));
  // But the back edge stays on one device.
  on(placing.graph, loop.next, "/cpu:1");
  CHECK(placing.error() ==
        "[placement] nodes \"loop/merge\" and \"loop/next\" must be on one "
        "device, and none is possible: \"loop/merge\" asks for \"/cpu:0\"; "
        "\"loop/next\" asks for \"/cpu:1\"; they are together because "
        "\"loop/next\" goes around the loop of frame \"loop\" at "
        "\"loop/merge\"");
}

TEST_CASE("placement: a missing kernel is not an error if passes follow") {
  Placing placing;
  placing.kernels.types["Tanh"] = {"GPU"};
  Node* a = placing.matrix("a");
  placing.put("b", "Tanh", "/cpu:1", {{a, 0}});
  CHECK(contains(placing.error(), "has kernels for GPU"));
  placing.options.passes_follow = true;
  must(placing.build());
}

// --- Functions --------------------------------------------------------------

namespace {

// "ping" has a Neg and calls "pong", which has a Tanh and calls "ping".
struct Recursion : Lowered {
  Kernels kernels;

  explicit Recursion(const std::string& of_neg = "",
                     const std::string& of_tanh = "",
                     const std::string& of_call = "") {
    const auto define_one = [&](const std::string& name, const std::string& op,
                                const std::string& device,
                                const std::string& called) {
      FunctionDef made =
          function(name, {"n: float"}, {"r: float"},
                   {body_node(op, op, {"n"}, {{"T", DataType::kFloat}}),
                    body_node("call", called, {op + ":y:0"})},
                   {{"r", "call:r:0"}});
      made.nodes[0].device = device;
      define(std::move(made));
    };
    define_one("ping", "Neg", of_neg, "pong");
    define_one("pong", "Tanh", of_tanh, "ping");
    NodeDef call = body_node("y", "ping", {"x"});
    call.device = of_call;
    expect_lowered({testing::placeholder("x", DataType::kFloat), call}, "y");
    for (Node* node : program.graph.nodes())
      if (node->op() == "_Call") program.graph.set_device(node, of_call);
  }
  Result<Colocation> build(bool soft = false) {
    const auto devices = make_devices(2, 1);
    return Colocation::build(program, devices, kernels, {soft});
  }
  // Where the call can be.
  std::string devices_of_call(bool soft = false) {
    const Colocation groups = must(build(soft));
    for (const Node* node : program.graph.nodes())
      if (node->op() == "_Call")
        return indices(groups.devices_of(groups.group_of(*node)));
    return "no call";
  }
};

}  // namespace

TEST_CASE("a call asks for what its function needs, and for host memory") {
  Recursion free;
  free.kernels = Kernels::on_both({"Neg", "Tanh"});
  CHECK(free.devices_of_call() == "0 1");
  Recursion asking("", "/cpu:1");
  CHECK(asking.devices_of_call() == "1");
  Recursion contradicting("", "/cpu:1", "/cpu:0");
  const std::string text =
      message_of(contradicting.build().status(), Code::kInvalidArgument);
  CHECK(contains(text,
                 "asks for \"/cpu:0\", but its op _Call calls a "
                 "function that needs memory that the host reads and "
                 "runs on one device, /job:localhost/replica:0/task:0/"
                 "device:CPU:1: in function \"ping\", \"ping/call/Tanh\" asks "
                 "for \"/cpu:1\" and (op Tanh) has kernels for CPU"));
  CHECK(contradicting.devices_of_call(true) == "1");
  const Colocation soft = must(contradicting.build(true));
  CHECK(soft.warnings() ==
        std::vector<std::string>{
            "node \"y/call/call/call\" asks for \"/cpu:0\", which gives way "
            "to what function \"ping\" asks for"});
}

TEST_CASE("placement: functions that call one another agree on a device") {
  Recursion contradicting("/cpu:0", "/cpu:1");
  const std::string text =
      message_of(contradicting.build().status(), Code::kInvalidArgument);
  CHECK(text ==
        "[placement] nodes \"ping/Neg\" and \"ping/call/Tanh\" must be on one "
        "device, and none is possible: \"ping/Neg\" asks for \"/cpu:0\" and "
        "(op Neg) has kernels for CPU; \"ping/call/Tanh\" asks for \"/cpu:1\" "
        "and (op Tanh) has kernels for CPU; they are together because function "
        "\"ping\" runs on one device");
  CHECK(contradicting.devices_of_call(true) == "0");

  Recursion elsewhere;
  elsewhere.kernels.types["Tanh"] = {"STREAM"};
  const std::string none =
      message_of(elsewhere.build().status(), Code::kInvalidArgument);
  CHECK(contains(none, "(op Tanh) has kernels for STREAM"));

  Recursion unknown("", "/gpu:0");
  CHECK(message_of(unknown.build().status(), Code::kInvalidArgument)
            .starts_with("[function] \"ping\": [placement] node "
                         "\"ping/call/Tanh\" asks for \"/gpu:0\", and there is "
                         "no such device"));
}

TEST_CASE("a malformed class in a function is refused") {
  Recursion malformed;
  Graph& body = malformed.program.bodies.at(0)->graph;
  body.set_attr(body.nodes().back(), "_class", "loc:@a");
  CHECK(contains(message_of(malformed.build().status(), Code::kInvalidArgument),
                 "attribute \"_class\" is of type string, not list(string)"));
}
