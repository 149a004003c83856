#include "graph/partition/partition.h"

#include <doctest/doctest.h>

#include "graph/op_registry.h"
#include "graph/partition/unreceived.h"
#include "tests/graph/partition/cut.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("a program on one device stays as it is") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  add(graph, "y", "Neg", {{x, 0}});
  const Cut cut(program_of(graph, {"y"}, {}, {"x"}), {{"", 0}, {"y", 0}},
                cpus(2));
  REQUIRE(cut.parts.size() == 1);
  CHECK(cut.text(0) ==
        "x = Placeholder()\n"
        "y = Neg(x)\n");
  CHECK(cut.on(0).feeds[0].to_string() == "x:0");
  CHECK(cut.on(0).fetches[0].to_string() == "y:0");
  CHECK(cut.node(0, "y").device() ==
        "/job:localhost/replica:0/task:0/device:CPU:0");
}

TEST_CASE("an edge between devices becomes a Send and a Recv") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = add(graph, "y", "Neg", {{x, 0}});
  add(graph, "z", "Neg", {{y, 0}});
  const Cut cut(program_of(graph, {"z"}, {}, {"x"}), {{"y", 1}}, cpus(2));
  CHECK(cut.text(0) ==
        "x = Placeholder()\n"
        "z = Neg(y/recv)\n"
        "y/recv = _Recv()\n"
        "x/send = _Send(x)\n");
  CHECK(cut.text(1) ==
        "y = Neg(x/recv)\n"
        "y/send = _Send(y)\n"
        "x/recv = _Recv()\n");
  for (const Node* node : {&cut.node(0, "x/send"), &cut.node(1, "x/recv")}) {
    CHECK(text_of(*node, "tensor_name") == "x:0");
    CHECK(text_of(*node, "send_device") ==
          "/job:localhost/replica:0/task:0/device:CPU:0");
    CHECK(must(node->attr<int64_t>("send_device_incarnation")) == 100);
    CHECK(text_of(*node, "recv_device") ==
          "/job:localhost/replica:0/task:0/device:CPU:1");
  }
  CHECK(cut.node(1, "x/recv").output_dtypes()[0] == DataType::kInt32);
}

TEST_CASE("every Send is a target, and targets stay with their device") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = add(graph, "y", "Neg", {{x, 0}});
  add(graph, "z", "Neg", {{y, 0}});
  const Cut cut(program_of(graph, {}, {"z", "y"}, {"x"}), {{"y", 1}}, cpus(2));
  const auto names = [](const Program& program) {
    std::string all;
    for (const Node* target : program.targets) all += target->name() + " ";
    return all;
  };
  CHECK(names(cut.on(0)) == "z x/send ");
  CHECK(names(cut.on(1)) == "y y/send ");
}

TEST_CASE("feeds and fetches are those of the whole program, or null") {
  Graph graph;
  Node* a = placeholder(graph, "a", DataType::kInt32);
  Node* b = placeholder(graph, "b", DataType::kInt32);
  add(graph, "y", "Neg", {{a, 0}});
  add(graph, "z", "Neg", {{b, 0}});
  const Cut cut(program_of(graph, {"y", "z"}, {}, {"a", "b"}),
                {{"b", 1}, {"z", 1}}, cpus(2));
  CHECK(cut.on(0).feeds[0].to_string() == "a:0");
  CHECK(cut.on(0).feeds[1].node == nullptr);
  CHECK(cut.on(0).fetches[0].to_string() == "y:0");
  CHECK(cut.on(0).fetches[1].node == nullptr);
  CHECK(cut.on(1).feeds[0].node == nullptr);
  CHECK(cut.on(1).feeds[1].to_string() == "b:0");
  CHECK(cut.on(1).fetches[0].node == nullptr);
  CHECK(cut.on(1).fetches[1].to_string() == "z:0");
}

TEST_CASE("all readers on one device share one Recv") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = add(graph, "y", "Neg", {{x, 0}});
  Node* z = add(graph, "z", "AddV2", {{x, 0}, {x, 0}});
  Node* sum = add(graph, "s", "AddV2", {{y, 0}, {z, 0}});
  add(graph, "t", "AddV2", {{sum, 0}, {x, 0}});
  const Cut cut(program_of(graph, {"t"}, {}, {"x"}),
                {{"y", 1}, {"z", 1}, {"s", 1}, {"t", 2}}, cpus(3));
  CHECK(cut.count(0, "_Send") == 2);
  CHECK(cut.count(1, "_Recv") == 1);
  CHECK(cut.line(1, "y") == "y = Neg(x/recv_1)");
  CHECK(cut.line(1, "z") == "z = AddV2(x/recv_1, x/recv_1)");
  CHECK(cut.line(2, "t") == "t = AddV2(s/recv, x/recv)");
}

TEST_CASE("each output of a node is a transfer of its own") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = placeholder(graph, "p", DataType::kBool);
  Node* fork = add(graph, "fork", "Switch", {{x, 0}, {p, 0}});
  add(graph, "join", "Merge", {{fork, 0}, {fork, 1}});
  const Cut cut(program_of(graph, {"join"}, {}, {"x", "p"}), {{"join", 1}},
                cpus(2));
  CHECK(cut.line(1, "join") == "join = Merge(fork/recv, fork/recv_1)");
  CHECK(text_of(cut.node(1, "fork/recv"), "tensor_name") == "fork:0");
  CHECK(text_of(cut.node(1, "fork/recv_1"), "tensor_name") == "fork:1");
}

TEST_CASE("a control edge sends an empty constant that waits for its source") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = add(graph, "y", "Neg", {{x, 0}});
  add(graph, "z", "Neg", {{x, 0}}, {}, {y});
  add(graph, "w", "Neg", {{x, 0}}, {}, {y});
  const Cut cut(program_of(graph, {"z", "w"}, {}, {"x"}), {{"y", 1}}, cpus(2));
  CHECK(cut.line(1, "y/control") == "y/control = Const(^y)");
  CHECK(cut.line(1, "y/control/send") == "y/control/send = _Send(y/control)");
  CHECK(cut.line(0, "z") == "z = Neg(x, ^y/control/recv)");
  CHECK(cut.line(0, "w") == "w = Neg(x, ^y/control/recv)");
  CHECK(text_of(cut.node(0, "y/control/recv"), "tensor_name") == "y/control:0");
}

TEST_CASE("a control edge uses the value of a Recv that comes anyway") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = add(graph, "y", "Neg", {{x, 0}});
  add(graph, "after", "Neg", {{x, 0}}, {}, {y});
  add(graph, "z", "Neg", {{y, 0}});
  const Cut cut(program_of(graph, {"after", "z"}, {}, {"x"}), {{"y", 1}},
                cpus(2));
  CHECK(cut.line(0, "after") == "after = Neg(x, ^y/recv)");
  CHECK(cut.count(0, "_Recv") == 1);
}

TEST_CASE("a control edge does not use one side of a Switch") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = placeholder(graph, "p", DataType::kBool);
  Node* fork = add(graph, "fork", "Switch", {{x, 0}, {p, 0}});
  add(graph, "after", "Neg", {{x, 0}}, {}, {fork});
  add(graph, "z", "Neg", {{fork, 1}});
  const Cut cut(program_of(graph, {"after", "z"}, {}, {"x", "p"}),
                {{"after", 1}, {"z", 1}}, cpus(2));
  CHECK(cut.line(1, "after") == "after = Neg(x/recv, ^fork/control/recv)");
  CHECK(cut.line(0, "fork/control") == "fork/control = Const(^fork)");
}

TEST_CASE("a constant is copied to where it is read") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* c = number(graph, "c", 7);
  Node* late = number(graph, "late", 8, {x});
  Node* y = add(graph, "y", "AddV2", {{c, 0}, {late, 0}});
  add(graph, "z", "AddV2", {{y, 0}, {c, 0}});
  const Cut cut(program_of(graph, {"z"}, {}, {"x"}), {{"y", 1}, {"z", 2}},
                cpus(3));
  CHECK(cut.line(1, "y") == "y = AddV2(c_2, late/recv)");
  CHECK(cut.line(2, "z") == "z = AddV2(y/recv, c_1)");
  CHECK(value_of(cut.on(1).graph, "c_2") == 7);
  // Nobody reads it where it was.
  CHECK(cut.on(0).graph.find("c") == nullptr);
}

TEST_CASE("a conditional over three devices sends its dead side too") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = placeholder(graph, "p", DataType::kBool);
  Node* fork = add(graph, "fork", "Switch", {{x, 0}, {p, 0}});
  Node* f = add(graph, "f", "Neg", {{fork, 0}});
  Node* t = add(graph, "t", "Square", {{fork, 1}});
  add(graph, "join", "Merge", {{f, 0}, {t, 0}});
  const Cut cut(program_of(graph, {"join"}, {}, {"x", "p"}),
                {{"f", 1}, {"fork", 0}, {"t", 2}}, cpus(3));
  CHECK(cut.text(1) ==
        "f = Neg(fork/recv)\n"
        "f/send = _Send(f)\n"
        "fork/recv = _Recv()\n");
  CHECK(cut.text(2) ==
        "t = Square(fork/recv_1)\n"
        "t/send = _Send(t)\n"
        "fork/recv_1 = _Recv()\n");
  CHECK(cut.line(0, "join") == "join = Merge(f/recv, t/recv)");
}

TEST_CASE("a node that nobody needs is in no partition") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  add(graph, "y", "Neg", {{x, 0}});
  Program program = program_of(graph, {"y"}, {}, {"x"});
  add(program.graph, "z", "Neg", {{program.feeds[0].node, 0}});
  const Cut cut(std::move(program), {{"z", 1}}, cpus(2));
  CHECK(cut.parts.size() == 1);
  CHECK(cut.on(0).graph.size() == 2);
}

TEST_CASE("a reference or resource cannot be sent") {
  Graph graph;
  OpRegistry::global().add(
      OpDefBuilder("TestReferenceToCut").output("ref: Ref(float)"));
  Node* v = add(graph, "v", "TestReferenceToCut");
  add(graph, "read", "Identity", {{v, 0}});
  CHECK(refusal(program_of(graph, {"read"}), {{"read", 1}}, cpus(2)) ==
        "[partition] \"v:0\" on /job:localhost/replica:0/task:0/device:CPU:0 "
        "is a reference, which cannot be sent to \"read\" on "
        "/job:localhost/replica:0/task:0/device:CPU:1");
  Graph other;
  Node* handle = placeholder(other, "h", DataType::kResource);
  add(other, "read", "Identity", {{handle, 0}});
  CHECK(contains(refusal(program_of(other, {"read"}), {{"read", 1}}, cpus(2)),
                 "is a resource, which cannot be sent to \"read\" on "));
  // A handle is the host's, wherever it is fetched from.
  auto accelerators = cpus(2);
  accelerators[1].host_memory = false;
  const Cut cut(program_of(other, {"read"}), {{"", 1}, {"h", 1}, {"read", 1}},
                accelerators);
  CHECK(cut.parts.size() == 1);
}

TEST_CASE("a fetch from a device without host memory goes to the first with") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = add(graph, "y", "Neg", {{x, 0}});
  add(graph, "z", "Neg", {{y, 0}});
  auto devices = cpus(3);
  devices[0].host_memory = false;
  const Cut cut(program_of(graph, {"y", "z"}, {}, {"x"}),
                {{"x", 2}, {"y", 0}, {"z", 2}}, devices);
  CHECK(cut.on(1).fetches[0].to_string() == "y/recv:0");
  CHECK(cut.on(1).fetches[1].node == nullptr);
  CHECK(cut.on(2).fetches[1].to_string() == "z:0");
  CHECK(cut.text(1) == "y/recv = _Recv()\n");
  for (DeviceInfo& device : devices) device.host_memory = false;
  CHECK(
      refusal(program_of(graph, {"y"}, {}, {"x"}), {}, devices) ==
      "[partition] \"y:0\" cannot be fetched from "
      "/job:localhost/replica:0/task:0/device:CPU:0: no device of its process "
      "has host memory");
}

TEST_CASE("what is sent to nobody is dropped, with all that only it needs") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = add(graph, "y", "Neg", {{x, 0}});
  Node* z = add(graph, "z", "Neg", {{y, 0}});
  add(graph, "out", "Neg", {{z, 0}});
  add(graph, "other", "Neg", {{x, 0}});
  Cut cut(program_of(graph, {"out", "other"}, {}, {"x"}),
          {{"y", 1}, {"z", 0}, {"out", 1}, {"other", 0}}, cpus(2));
  const auto unchanged = cut.text(0) + cut.text(1);
  drop_unreceived(cut.parts);
  CHECK(cut.text(0) + cut.text(1) == unchanged);
  // A pass finds that "out" is a constant: then nobody needs z and y.
  Program& on1 = cut.parts[1].program;
  on1.fetches[0] = {constant(on1.graph, "known", Tensor::scalar(1)), 0};
  on1.graph.remove(
      std::vector<Node*>{on1.graph.find("out"), on1.graph.find("z/recv")});
  drop_unreceived(cut.parts);
  REQUIRE(cut.parts.size() == 2);
  CHECK(cut.text(0) == "x = Placeholder()\nother = Neg(x)\n");
  CHECK(cut.text(1) == "known = Const()\n");
  on1.fetches = {Endpoint(), Endpoint()};
  cut.parts[0].program.targets.clear();
  on1.graph.remove(std::vector<Node*>{on1.graph.find("known")});
  drop_unreceived(cut.parts);
  CHECK(cut.parts.size() == 1);
}

TEST_CASE("a lossy transfer sends a float as bfloat16") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, PartialShape({3}));
  Node* i = placeholder(graph, "i", DataType::kInt32);
  add(graph, "y", "Neg", {{x, 0}});
  add(graph, "z", "Neg", {{i, 0}});
  PartitionOptions options;
  options.lossy = [](const Endpoint&, bool) { return true; };
  const Cut cut(program_of(graph, {"y", "z"}, {}, {"x", "i"}),
                {{"y", 1}, {"z", 1}}, cpus(2), options);
  CHECK(cut.line(0, "x/round") == "x/round = Cast(x)");
  CHECK(cut.line(0, "x/send") == "x/send = _Send(x/round)");
  CHECK(cut.line(1, "x/widen") == "x/widen = Cast(x/recv)");
  CHECK(cut.line(1, "y") == "y = Neg(x/widen)");
  CHECK(must(cut.node(0, "x/round").attr<bool>("Truncate")));
  CHECK(cut.node(1, "x/recv").output_dtypes()[0] == DataType::kBFloat16);
  CHECK(cut.node(1, "x/widen").output_dtypes()[0] == DataType::kFloat);
  CHECK(cut.node(1, "x/widen").output_shape(0).to_string() == "[3]");
  CHECK(text_of(cut.node(1, "x/recv"), "tensor_name") == "x:0");
  CHECK(cut.line(1, "z") == "z = Neg(i/recv)");
}

TEST_CASE("nodes keep their ids, and no two of all partitions share one") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = add(graph, "y", "Neg", {{x, 0}});
  add(graph, "z", "Neg", {{y, 0}});
  const Program whole = program_of(graph, {"z"}, {}, {"x"});
  const Cut cut(program_of(graph, {"z"}, {}, {"x"}), {{"y", 1}}, cpus(2));
  std::vector<bool> taken;
  for (const Partition& part : cut.parts) {
    for (const Node* node : part.program.graph.nodes()) {
      if (taken.size() <= node->id()) taken.resize(node->id() + 1);
      CHECK(!taken[node->id()]);
      taken[node->id()] = true;
      if (const Node* original = whole.graph.find(node->name()))
        CHECK(original->id() == node->id());
    }
  }
}
