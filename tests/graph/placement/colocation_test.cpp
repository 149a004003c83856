#include "graph/placement/colocation.h"

#include <doctest/doctest.h>

#include "tests/graph/functions/lowered.h"
#include "tests/graph/placement/devices_and_kernels.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// A graph, and what becomes of it on two CPUs and a STREAM.
struct Placing {
  Graph graph;
  Kernels kernels;
  std::vector<DeviceInfo> devices = make_devices(2, 1);
  ColocationOptions options;

  Result<Colocation> build() {
    const Program program = whole(graph.clone());
    return Colocation::build(program, devices, kernels, options);
  }
  std::string error() {
    return message_of(build().status(), Code::kInvalidArgument);
  }
  Node* put(std::string name, std::string_view op = "NoOp",
            std::string device = "", std::vector<Endpoint> inputs = {},
            AttrMap attrs = {}) {
    return on(
        graph,
        add(graph, std::move(name), op, std::move(inputs), std::move(attrs)),
        std::move(device));
  }
  Node* matrix(std::string name, std::string device = "") {
    return on(graph,
              constant(graph, std::move(name),
                       Tensor::make(DataType::kFloat, {2, 2})),
              std::move(device));
  }
};

AttrMap with(const std::string& label) {
  return {{"_class", std::vector<std::string>{"loc:@" + label}}};
}

std::string indices(std::span<const uint32_t> devices) {
  return fmt::format("{}", fmt::join(devices, " "));
}

constexpr std::string_view kDevices =
    "/job:localhost/replica:0/task:0/device:CPU:0, "
    "/job:localhost/replica:0/task:0/device:CPU:1, "
    "/job:localhost/replica:0/task:0/device:STREAM:0";

}  // namespace

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

TEST_CASE("kernels are asked for once for each op with its types") {
  Placing placing;
  Node* a = placing.matrix("a");
  for (int i = 0; i < 100; ++i)
    placing.put(fmt::format("n{}", i), "Neg", "", {{a, 0}});
  must(placing.build());
  CHECK(placing.kernels.questions == 2 * 2);  // two ops on two types
}

TEST_CASE("without devices nothing can be placed") {
  Placing placing;
  placing.devices.clear();
  CHECK(placing.error() == "[placement] there are no devices");
}

TEST_CASE("a malformed constraint is refused") {
  Placing placing;
  placing.put("a", "NoOp", "/cpu:x");
  CHECK(placing.error() ==
        "[placement] node \"a\": [device] the name \"/cpu:x\": \"x\", of the "
        "device, is no number from 0 to 2147483647");
}

TEST_CASE("a constraint that no device meets is told which there are") {
  Placing placing;
  placing.put("a", "NoOp", "/gpu:0");
  CHECK(placing.error() ==
        fmt::format("[placement] node \"a\" asks for \"/gpu:0\", and there is "
                    "no such device; the devices are {}",
                    kDevices));
  placing.devices = make_devices(12);
  CHECK(placing.error().ends_with("device:CPU:7, ... (12 in all)"));
}

TEST_CASE("a constraint where there is no kernel is told which there are") {
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

TEST_CASE("a kernel for other types is no kernel") {
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

TEST_CASE("what is fed, and what is no bytes, is where the host reads it") {
  Placing placing;
  placing.kernels = Kernels::on_both({"Identity", "Const"});
  Node* text = constant(placing.graph, "text", Tensor::scalar(std::string()));
  Node* same = placing.put("same", "Identity", "", {{text, 0}});
  Node* p =
      placing.put("p", "Placeholder", "", {},
                  {{"dtype", DataType::kBool}, {"shape", PartialShape()}});
  Node* fork = placing.put("fork", "Switch", "", {{text, 0}, {p, 0}});
  Node* number = constant(placing.graph, "number", Tensor::scalar(0.f));
  const Colocation groups = must(placing.build());
  for (Node* node : {text, same, p, fork})
    CHECK(indices(groups.devices_of(groups.group_of(*node))) == "0 1");
  CHECK(indices(groups.devices_of(groups.group_of(*number))) == "0 1 2");
  on(placing.graph, p, "/stream:0");
  CHECK(placing.error() ==
        "[placement] node \"p\" asks for \"/stream:0\", but its op Placeholder "
        "needs memory that the host reads");
  on(placing.graph, p, "");
  on(placing.graph, same, "/stream:0");
  CHECK(placing.error() ==
        "[placement] node \"same\" asks for \"/stream:0\", but its op Identity "
        "has kernels for CPU, STREAM and needs memory that the host reads");
}

TEST_CASE("classes bring nodes together, also where no node has the name") {
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

TEST_CASE("constraints that contradict are both named with their nodes") {
  Placing placing;
  placing.put("a", "NoOp", "/cpu:0", {}, with("x"));
  placing.put("b", "NoOp", "", {}, with("x"));
  placing.put("c", "NoOp", "/cpu:1", {}, with("x"));
  CHECK(placing.error() ==
        "[placement] nodes \"a\" and \"c\" must be on one device, and none "
        "will do: \"a\" asks for \"/cpu:0\"; \"c\" asks for \"/cpu:1\"");
}

TEST_CASE("a constraint and a kernel that contradict are named with both") {
  Placing placing;
  Node* a = placing.matrix("a");
  placing.kernels.types["Neg"] = {"STREAM"};
  placing.put("b", "Neg", "", {{a, 0}}, with("c"));
  placing.put("c", "NoOp", "/cpu:*");
  CHECK(placing.error() ==
        "[placement] nodes \"b\" and \"c\" must be on one device, and none "
        "will do: \"b\" (op Neg) has kernels for STREAM; \"c\" asks for "
        "\"/cpu:*\"");
}

TEST_CASE("three that have no device in common are all named") {
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
        "will do: \"c\" asks for \"/device:STREAM:*\"; \"f\" (op Neg) has "
        "kernels for CPU");
  // Any two of these have one in common.
  Placing three;
  three.devices = make_devices(2);
  three.devices[0].name.task = 1;
  three.devices.push_back(three.devices[1]);
  three.devices[2].name =
      must(DeviceName::parse("/job:localhost/replica:0/task:1/device:CPU:1"));
  three.devices[1].host_memory = false;
  three.put("a", "NoOp", "/cpu:1", {}, with("x"));
  three.put("b", "NoOp", "/task:1", {}, with("x"));
  three.devices[2].host_memory = false;
  three.put("c", "Placeholder", "", {},
            {{"dtype", DataType::kFloat},
             {"shape", PartialShape()},
             {"_class", std::vector<std::string>{"loc:@y"}}});
  must(three.build());
  three.devices[1].host_memory = true;
  three.graph.set_attr(three.graph.find("c"), "_class",
                       std::vector<std::string>{"loc:@x"});
  CHECK(three.error() ==
        "[placement] nodes \"a\", \"b\" and \"c\" must be on one device, and "
        "none will do: \"a\" asks for \"/cpu:1\"; \"b\" asks for \"/task:1\"; "
        "\"c\" (op Placeholder) needs memory that the host reads");
}

TEST_CASE("all that touches a stack is with it, through control flow too") {
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

TEST_CASE("a reference stays on its device") {
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

TEST_CASE("a loop variable is one group, the rest of a loop is free") {
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

TEST_CASE("control flow leaves its data where a constraint says so") {
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
        "device, and none will do: \"loop/merge\" asks for \"/cpu:0\"; "
        "\"loop/next\" asks for \"/cpu:1\"");
}

TEST_CASE("soft placement goes to a CPU where a constraint cannot be met") {
  Placing placing;
  placing.options.soft = true;
  Node* a = placing.matrix("a", "/gpu:0");
  Node* b = placing.put("b", "Neg", "/stream:0", {{a, 0}});
  placing.kernels.types["Tanh"] = {"STREAM"};
  Node* c = placing.put("c", "Tanh", "/cpu:0", {{a, 0}});
  const Colocation groups = must(placing.build());
  const auto devices_of = [&](Node* node) {
    return indices(groups.devices_of(groups.group_of(*node)));
  };
  CHECK(devices_of(a) == "0 1");
  CHECK(devices_of(b) == "0 1");
  CHECK(devices_of(c) == "2");
  for (Node* node : {a, b, c}) CHECK_FALSE(groups.is_constrained(*node));
  REQUIRE(groups.warnings().size() == 3);
  CHECK(groups.warnings()[0] ==
        fmt::format("node \"a\" asks for \"/gpu:0\", and there is no such "
                    "device; the devices are {}; it is placed on a CPU",
                    kDevices));
  CHECK(groups.warnings()[1] ==
        "node \"b\" asks for \"/stream:0\", but its op Neg has kernels for "
        "CPU; it is placed on a CPU");
  CHECK(groups.warnings()[2] ==
        "node \"c\" asks for \"/cpu:0\", but its op Tanh has kernels for "
        "STREAM; it is placed where it can run");
}

TEST_CASE("under soft placement colocation wins over a device") {
  Placing placing;
  placing.options.soft = true;
  Node* a = placing.put("a", "NoOp", "/cpu:0", {}, with("x"));
  Node* b = placing.put("b", "NoOp", "/cpu:1", {}, with("x"));
  const Colocation groups = must(placing.build());
  CHECK(indices(groups.devices_of(groups.group_of(*b))) == "0");
  CHECK(groups.is_constrained(*a));
  CHECK_FALSE(groups.is_constrained(*b));
  CHECK(groups.warnings() ==
        std::vector<std::string>{
            "nodes \"b\" and \"a\" must be on one device; \"b\" asks for "
            "\"/cpu:1\", which gives way: \"a\" asks for \"/cpu:0\""});
}

TEST_CASE("soft placement does not put together what cannot be") {
  Placing placing;
  placing.options.soft = true;
  placing.kernels.types["Neg"] = {"STREAM"};
  Node* a = placing.matrix("a");
  placing.put("b", "Neg", "", {{a, 0}}, with("c"));
  placing.put("c", "Tanh", "", {{a, 0}});
  CHECK(placing.error() ==
        "[placement] nodes \"b\" and \"c\" must be on one device, and none "
        "will do: \"b\" (op Neg) has kernels for STREAM; \"c\" (op Tanh) has "
        "kernels for CPU");
}

TEST_CASE("what gave way counts no longer, however many disagree") {
  Placing placing;
  placing.options.soft = true;
  placing.kernels.types["Neg"] = {"STREAM"};
  Node* a = placing.matrix("a");
  Node* b = placing.put("b", "NoOp", "/cpu:0", {}, with("x"));
  placing.put("c", "Neg", "", {{a, 0}}, with("x"));
  placing.put("d", "NoOp", "/gpu:7", {}, with("x"));
  const Colocation groups = must(placing.build());
  CHECK(indices(groups.devices_of(groups.group_of(*b))) == "2");
  REQUIRE(groups.warnings().size() == 2);
  CHECK(contains(groups.warnings()[0], "node \"d\" asks for \"/gpu:7\""));
  CHECK(contains(groups.warnings()[1], "\"b\" asks for \"/cpu:0\""));
}

TEST_CASE("of very many constraints that give way the first are named") {
  Placing placing;
  placing.options.soft = true;
  for (int i = 0; i < 150; ++i)
    placing.put(fmt::format("n{}", i), "NoOp", "/gpu:0");
  const Colocation groups = must(placing.build());
  REQUIRE(groups.warnings().size() == 101);
  CHECK(groups.warnings()[99].starts_with("node \"n99\" asks"));
  CHECK(groups.warnings()[100] == "the constraints of 50 more nodes gave way");
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
                 "runs as one, on /job:localhost/replica:0/task:0/"
                 "device:CPU:1"));
  CHECK(contradicting.devices_of_call(true) == "1");
  const Colocation soft = must(contradicting.build(true));
  CHECK(soft.warnings() ==
        std::vector<std::string>{
            "node \"y/call/call/call\" asks for \"/cpu:0\", which gives way "
            "to what its function asks for"});
}

TEST_CASE("functions that call one another agree on a device") {
  Recursion contradicting("/cpu:0", "/cpu:1");
  const std::string text =
      message_of(contradicting.build().status(), Code::kInvalidArgument);
  CHECK(contains(text, "asks for \"/cpu:"));
  CHECK(contains(text, "must be on one device, and none will do: "));
  CHECK(contradicting.devices_of_call(true) == "0");

  Recursion elsewhere;
  elsewhere.kernels.types["Tanh"] = {"STREAM"};
  const std::string none =
      message_of(elsewhere.build().status(), Code::kInvalidArgument);
  CHECK(contains(none, "(op Tanh) has kernels for STREAM"));
}
