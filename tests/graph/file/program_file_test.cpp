#include "graph/file/program_file.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "graph/analysis/validate.h"
#include "graph/proto/graph.pb.h"
#include "graph/proto/program.pb.h"
#include "tests/graph/hand_made.h"
#include "tests/graph/hand_made_functions.h"
#include "tests/graph/same_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

Node* input(Graph& graph, const std::string& name,
            DataType dtype = DataType::kInt32) {
  return add(graph, name, "Placeholder", {}, {{"dtype", dtype}});
}

// A body "f" of one argument, which it returns.
std::unique_ptr<Program> identity_body() {
  auto body = std::make_unique<Program>();
  body->name = "f(T=\xff)";
  Node* x = input(body->graph, "x");
  body->feeds = {{x, 0}};
  body->fetches = {{x, 0}};
  body->targets = {add(body->graph, "effect", "NoOp", {}, {}, {x})};
  return body;
}

// A loop, a call, a reference, a dead end, an order edge, ends that are
// elsewhere, and a node before those that it reads.
Program rich_program() {
  Program program;
  Graph& graph = program.graph;
  Node* first = input(graph, "first");
  Node* second = input(graph, "second");
  Node* sum = add(graph, "sum", "AddV2", {{first, 0}, {first, 0}});
  const Counter loop = counter(graph, "loop", {first, 0}, {second, 0});
  Node* variable =
      add(graph, "variable", "VariableV2", {},
          {{"dtype", DataType::kFloat}, {"shape", PartialShape({2, 2})}});
  Node* nan = constant(
      graph, "nan",
      Tensor::of<float>(
          {2, 2}, {0, -0.0f, 1e-40f, std::numeric_limits<float>::quiet_NaN()}));
  Node* assign = add(graph, "assign", "Assign", {{variable, 0}, {nan, 0}});
  graph.set_device(assign, "/device:CPU:1");
  Node* words =
      constant(graph, "words", Tensor::of<std::string>({2}, {"a", "\xff"}));
  Node* call = add(graph, "call", "_Call", {{loop.exit, 0}},
                   {{"Tin", std::vector<DataType>{DataType::kInt32}},
                    {"Tout", std::vector<DataType>{DataType::kInt32}},
                    {"f", FunctionRef{"f", {}}},
                    {"body", 0}},
                   {assign, words});
  Node* late = add(graph, "late", "Identity", {{call, 0}});
  must(graph.set_input(sum, 1, {late, 0}));
  graph.set_output_shape(call, 0, PartialShape({7, -1}));
  graph.set_output_shape(loop.exit, 0, PartialShape());
  program.feeds = {{second, 0}, {}, {first, 0}};
  program.fetches = {{}, {sum, 0}, {loop.exit, 0}, {sum, 0}};
  program.targets = {assign, loop.body};
  program.order_edges = {{call, sum}, {loop.enter, late}};
  program.bodies.push_back(identity_body());
  return program;
}

// What reading says after a change of what was written.
std::string refusal(const Program& program,
                    const std::function<void(wire::ProgramFile&)>& change,
                    Code code = Code::kInvalidArgument) {
  wire::ProgramFile file;
  REQUIRE(file.ParseFromString(must(write_program(program))));
  change(file);
  return message_of(read_program(file.SerializeAsString()).status(), code);
}

}  // namespace

TEST_CASE("a program is the same when it was written and read") {
  const Program program = rich_program();
  must(validate(program.graph));
  const std::string bytes = must(write_program(program));
  const Program again = must(read_program(bytes));
  check_same(program, again);
  CHECK(must(write_program(again)) == bytes);
}

TEST_CASE("a program has the functions that its kernels call") {
  Program program = rich_program();
  FunctionLibrary& library = program.graph.library();
  for (const char* name : {"f", "f_grad", "g"})
    must(library.add(function(name, {"x: int32"}, {"y: int32"},
                              {body_int("twice", "Add", "x", "x")},
                              {{"y", "twice:z:0"}})));
  must(library.add_gradient("f", "f_grad"));
  const std::string bytes = must(write_program(program));
  const Program again = must(read_program(bytes));
  check_same(program, again);
  CHECK(again.graph.library().size() == 3);
  for (const FunctionDef* one : library.functions())
    CHECK(same_definition(*one, *again.graph.library().find(one->name())));
  CHECK(again.graph.library().gradient_of("f") == "f_grad");
  CHECK(must(write_program(again)) == bytes);

  const auto refused = [&](auto change, Code code = Code::kInvalidArgument) {
    return refusal(
        program, [&](auto& file) { change(*file.mutable_library()); }, code);
  };
  CHECK(contains(
      refused(
          [](auto& functions) {
            functions.mutable_function(1)->clear_node_def();
            functions.mutable_function(1)->mutable_signature()->set_name("f");
          },
          Code::kAlreadyExists),
      "another function is named \"f\""));
  CHECK(contains(
      refused([](auto& functions) {
        functions.mutable_function(0)->mutable_signature()->clear_name();
      }),
      "the name of a function is empty"));
  CHECK(message_of(read_program(bytes, {.max_nodes = 12}).status(),
                   Code::kResourceExhausted) != "");
}

TEST_CASE("an empty program is the same when it was written and read") {
  check_same(Program(), must(read_program(must(write_program(Program())))));
}

TEST_CASE("the bytes of a program are those of version 2") {
  Program program;
  Node* x = add(program.graph, "x", "Placeholder", {},
                {{"dtype", DataType::kBool}, {"shape", PartialShape({3, -1})}});
  Node* done = add(program.graph, "done", "NoOp", {}, {}, {x});
  program.feeds = {{x, 0}};
  program.fetches = {{}};
  program.targets = {done};
  program.order_edges = {{x, done}};
  const auto written = must(write_program(program));
  wire::ProgramFile file;
  REQUIRE(file.ParseFromString(written));
  // Nodes are as in a GraphDef.
  file.mutable_root()->clear_node();
  CHECK(file.SerializeAsString() ==
        std::string("\x08\x02"              // version 2
                    "\x12\x12"              // root
                    "\x1a\x03\x04\x06\x01"  // shape: 2, 3, -1
                    "\x22\x02\x08\x01"      // feed: node 0
                    "\x2a\x00"              // fetch: none
                    "\x32\x01\x01"          // target: node 1
                    "\x3a\x02\x10\x01",     // order edge: 0, 1
                    22));
}

TEST_CASE("shapes that contradict each other are kept, and are no error") {
  Program program;
  Graph& graph = program.graph;
  Node* a = input(graph, "a", DataType::kFloat);
  Node* b = input(graph, "b", DataType::kFloat);
  Node* product = add(graph, "product", "MatMul", {{a, 0}, {b, 0}});
  program.fetches = {{product, 0}};
  graph.set_output_shape(a, 0, PartialShape({2, 3}));
  graph.set_output_shape(b, 0, PartialShape({4, 5}));
  CHECK_FALSE(Graph::infer_shapes(*product).ok());
  check_same(program, must(read_program(must(write_program(program)))));
}

TEST_CASE("a node may have any name, even that of a stand-in") {
  Program program;
  Node* first = input(program.graph, "stand_in_0");
  Node* second = input(program.graph, "stand_in_1", DataType::kFloat);
  program.targets = {add(program.graph, "a", "Identity", {{first, 0}}),
                     add(program.graph, "b", "Identity", {{second, 0}})};
  const Program again = must(read_program(must(write_program(program))));
  check_same(program, again);
}

TEST_CASE("bytes that are no program are refused") {
  const std::string bytes = must(write_program(rich_program()));
  for (const std::string& bad :
       {std::string("garbage"), bytes.substr(0, bytes.size() - 1)})
    CHECK(contains(message_of(read_program(bad).status(), Code::kDataLoss),
                   "bytes are not a program"));
  const auto refused = [](auto change, Code code = Code::kInvalidArgument) {
    return refusal(rich_program(), change, code);
  };
  CHECK(
      refused([](auto& file) { file.set_version(1); }, Code::kUnimplemented) ==
      "[program] it has the version 1, this reader is for version 2");
  CHECK(message_of(read_program("").status(), Code::kUnimplemented) ==
        "[program] it has the version 0, this reader is for version 2");
  CHECK(refused([](auto& file) { file.mutable_root()->set_name("g"); }) ==
        "[program] the root has the name \"g\", as a body has");
  CHECK(refused([](auto& file) { file.mutable_body(0)->clear_name(); }) ==
        "[program] body 0 has no name");
}

TEST_CASE("a program whose nodes do not fit each other is refused by name") {
  const auto refused = [](auto change, Code code = Code::kInvalidArgument) {
    return refusal(
        rich_program(), [&](auto& file) { change(*file.mutable_root()); },
        code);
  };
  // Node 0 is "first", node 1 is "second", node 2 is "sum".
  CHECK(contains(
      refused([](auto& root) { root.mutable_node(2)->set_op("AddV3"); },
              Code::kUnimplemented),
      "[AddV3] node \"sum\": "));
  CHECK(contains(
      refused([](auto& root) { root.mutable_node(1)->set_name("first"); },
              Code::kAlreadyExists),
      "[Placeholder] node \"first\": "));
  CHECK(refused(
            [](auto& root) { root.mutable_node(2)->set_input(0, "third"); }) ==
        "[AddV2] node \"sum\": its input \"third\" is no output of a "
        "node");
  CHECK(refused([](auto& root) {
          root.mutable_node(2)->set_input(0, "first:x");
        }) ==
        "[AddV2] node \"sum\": its input \"first:x\" is no output of a "
        "node");
  CHECK(contains(refused([](auto& root) {
                   root.mutable_node(2)->set_input(0, "first:1");
                 }),
                 "node \"sum\": input 0 (\"first:1\")"));
  CHECK(contains(
      refused([](auto& root) { root.mutable_node(2)->set_input(0, "words"); }),
      "node \"sum\": input 0 (\"words:0\") is string, int32 is "
      "wanted"));
  CHECK(contains(
      refused([](auto& root) { root.mutable_node(2)->add_input("first"); }),
      "node \"sum\": 3 inputs are given, 2 wanted"));
  CHECK(
      refused([](auto& root) { root.mutable_node(2)->set_input(0, "sum"); }) ==
      "[graph] the cycle sum -> sum does not go through a "
      "NextIteration into a Merge");
}

TEST_CASE("a program whose shapes do not fit its nodes is refused by name") {
  const auto refused = [](auto change) {
    return refusal(
        rich_program(), [&](auto& file) { change(*file.mutable_root()); },
        Code::kDataLoss);
  };
  CHECK(refused([](auto& root) { root.clear_shape(); }) ==
        "[Placeholder] node \"first\": the shape of output 0 is missing");
  CHECK(refused([](auto& root) { root.set_shape(0, 1000); }) ==
        "[Placeholder] node \"first\": the shape of output 0 is cut off");
  CHECK(refused([](auto& root) { root.set_shape(0, -2); }) ==
        "[Placeholder] node \"first\": the shape of output 0 is cut off");
  CHECK(refused([](auto& root) { root.add_shape(5); }) ==
        "[program] 1 numbers follow the last shape");
  CHECK(refused([](auto& root) {
          root.set_shape(0, 1);
          root.set_shape(1, -2);
        }) ==
        "[Placeholder] node \"first\": the shape of output 0 does not "
        "exist");
}

TEST_CASE("a program whose ends do not exist is refused") {
  const auto refused = [](auto change) {
    return refusal(rich_program(),
                   [&](auto& file) { change(*file.mutable_root()); });
  };
  const auto number = [](const auto& root, std::string_view name) {
    for (int i = 0; i < root.node_size(); ++i)
      if (root.node(i).name() == name) return uint32_t(i);
    FAIL("no node ", name);
    return 0u;
  };
  CHECK(contains(
      refused([](auto& root) { root.mutable_feed(0)->set_node(1000); }),
      "[program] a feed is of node 999, but there are "));
  CHECK(contains(refused([](auto& root) { root.set_target(0, 1000); }),
                 "[program] a target is of node 1000, but there are "));
  CHECK(contains(
      refused([](auto& root) { root.mutable_order_edge(0)->set_then(99); }),
      "[program] an order edge is of node 99, but there are "));
  CHECK(refused([](auto& root) { root.mutable_fetch(1)->set_port(1); }) ==
        "[AddV2] node \"sum\": a fetch is output 1, but it has 1");
  CHECK(refused([](auto& root) { root.mutable_fetch(1)->set_port(~0u); }) ==
        "[AddV2] node \"sum\": a fetch is output 4294967295, but it has "
        "1");
  CHECK(refused([](auto& root) { root.mutable_feed(0)->set_node(1); }) ==
        "[Placeholder] node \"first\": it is fed twice, or is not a "
        "Placeholder");
  CHECK(refused([](auto& root) { root.mutable_feed(0)->set_node(3); }) ==
        "[AddV2] node \"sum\": it is fed twice, or is not a Placeholder");
  CHECK(refused([&](auto& root) {
          root.mutable_fetch(0)->set_node(1 + number(root, "loop/body"));
        }) ==
        "[Identity] node \"loop/body\": it is fed or fetched inside a "
        "loop");
  CHECK(refused([&](auto& root) {
          root.mutable_order_edge(0)->set_first(number(root, "loop/body"));
        }) ==
        "[AddV2] node \"sum\": an order edge leads to it from node "
        "\"loop/body\" of another frame");
}

TEST_CASE("a program whose calls do not fit its bodies is refused") {
  const auto refused = [](auto change) {
    return refusal(rich_program(), change);
  };
  CHECK(refused([](auto& file) { file.clear_body(); }) ==
        "[_Call] node \"call\": it calls body 0, but there are 0 bodies");
  const std::string other =
      "[_Call] node \"call\": it has other inputs or outputs than the body "
      "\"f(T=\\xff)\" that it calls";
  CHECK(refused([](auto& file) { file.mutable_body(0)->clear_feed(); }) ==
        other);
  CHECK(refused([](auto& file) { file.mutable_body(0)->clear_fetch(); }) ==
        other);
  CHECK(refused([](auto& file) {
          (*file.mutable_body(0)->mutable_node(0)->mutable_attr())["dtype"]
              .set_type(tensorflow::DT_FLOAT);
        }) == other);
  CHECK(refused([](auto& file) {
          file.mutable_body(0)->mutable_fetch(0)->set_node(0);
        }) ==
        "[program] body \"f(T=\\xff)\": an argument or result has no "
        "node");
  CHECK(contains(
      refused([](auto& file) { file.mutable_body(0)->set_target(0, 9); }),
      "[program] body \"f(T=\\xff)\": a target is of node 9"));
}

TEST_CASE("a program beyond the limits of its reader is refused") {
  const std::string bytes = must(write_program(rich_program()));
  const auto refused = [&](const Limits& limits) {
    return message_of(read_program(bytes, limits).status(),
                      Code::kResourceExhausted);
  };
  CHECK(contains(refused({.max_bytes = 100}), "the limit is 100"));
  // Those of the body count, too.
  const size_t nodes = rich_program().graph.size() + 2;
  CHECK(read_program(bytes, {.max_nodes = nodes}).ok());
  CHECK(
      contains(refused({.max_nodes = nodes - 1}),
               fmt::format("has {} nodes, the limit is {}", nodes, nodes - 1)));
  CHECK(contains(refused({.max_tensor_bytes = 8}), "node \"nan\""));
  CHECK(contains(refused({.max_frame_depth = 0}), "loop"));
  std::string hollow = "\x08\x01";
  for (int i = 0; i < 1000; ++i) hollow += std::string("\x1a\x00", 2);
  CHECK(contains(message_of(read_program(hollow, {.max_nodes = 999}).status(),
                            Code::kResourceExhausted),
                 "there are 1000 bodies, the limit is 999"));
  // Each of two bytes.
  std::string endless = "\x08\x01\x12\x82\x80\x80\x10";
  for (int i = 0; i <= 1 << 24; ++i) endless += std::string_view("\x3a\x00", 2);
  CHECK(contains(
      message_of(read_program(endless).status(), Code::kResourceExhausted),
      "there are 16777217 order edges, the limit is 16777216"));
}

TEST_CASE("what no bytes can hold is refused with its node") {
  Program handles;
  constant(handles.graph, "list", Tensor::make(DataType::kVariant, {1}));
  CHECK(contains(
      message_of(write_program(handles).status(), Code::kUnimplemented),
      "[program] node \"list\": attribute \"value\": "));
  // Nothing of it is ever touched.
  Program large;
  constant(large.graph, "small", Tensor::scalar(1));
  constant(large.graph, "large",
           must(Tensor::allocate(DataType::kInt8, Shape({int64_t(1) << 31}))));
  CHECK(message_of(write_program(large).status(), Code::kResourceExhausted) ==
        "[program] it needs more than 2 GiB, the maximum of the format; its "
        "largest node is \"large\" (Const) with 2147483648 bytes");
}
