#include <doctest/doctest.h>

#include <algorithm>

#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("cse: nodes that compute the same become one") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* one = number(graph, "one", 1);
  Node* eins = number(graph, "eins", 1);
  Node* a = add(graph, "a", "AddV2", {{x, 0}, {one, 0}});
  Node* b = add(graph, "b", "AddV2", {{eins, 0}, {x, 0}});
  add(graph, "na", "Neg", {{a, 0}});
  add(graph, "nb", "Neg", {{b, 0}});
  Program program = program_of(graph, {"na", "nb"}, {"b"});
  CHECK(run_pass(share_subexpressions, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "one = Const()\n"
        "a = AddV2(x, one)\n"
        "na = Neg(a)\n");
  CHECK(program.fetches[1].to_string() == "na:0");
  CHECK(program.targets[0]->name() == "a");
  CHECK(!run_pass(share_subexpressions, program));
}

TEST_CASE("cse: nodes that differ in attributes or inputs are not shared") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* y = placeholder(graph, "y", DataType::kFloat);
  add(graph, "a", "Cast", {{x, 0}}, {{"DstT", DataType::kInt32}});
  add(graph, "b", "Cast", {{x, 0}}, {{"DstT", DataType::kInt64}});
  add(graph, "c", "Cast", {{x, 0}}, {{"DstT", DataType::kInt64}}, {y});
  add(graph, "d", "Sub", {{x, 0}, {y, 0}});
  add(graph, "e", "Sub", {{y, 0}, {x, 0}});
  constant(graph, "f", Tensor::scalar(0.0f));
  constant(graph, "g", Tensor::scalar(-0.0f));
  Program program = program_of(graph, {"a", "b", "c", "d", "e", "f", "g"});
  CHECK(!run_pass(share_subexpressions, program));
}

TEST_CASE("cse: containers that begin alike can be on devices of their own") {
  Graph graph;
  const AttrMap floats{{"elem_type", DataType::kFloat}};
  add(graph, "a", "PersistentStack", {}, floats);
  add(graph, "b", "PersistentStack", {}, floats);
  Node* shape = number(graph, "shape", -1);
  Node* size = number(graph, "size", 4);
  const AttrMap list{{"element_dtype", DataType::kFloat},
                     {"shape_type", DataType::kInt32}};
  add(graph, "c", "TensorListReserve", {{shape, 0}, {size, 0}}, list);
  add(graph, "d", "TensorListReserve", {{shape, 0}, {size, 0}}, list);
  Program program = program_of(graph, {"a", "b", "c", "d"});
  CHECK(!run_pass(share_subexpressions, program));
}

TEST_CASE("cse: the order of inputs is ignored for commutative ops only") {
  const auto is_one = [](const std::string& op, DataType type) {
    Graph graph;
    Node* x = placeholder(graph, "x", type);
    Node* y = placeholder(graph, "y", type);
    add(graph, "a", op, {{x, 0}, {y, 0}});
    add(graph, "b", op, {{y, 0}, {x, 0}});
    Program program = program_of(graph, {"a", "b"});
    CAPTURE(op);
    const bool changed = run_pass(share_subexpressions, program);
    CHECK(changed == (program.fetches[0] == program.fetches[1]));
    return changed;
  };
  for (const char* op :
       {"AddV2", "Add", "Mul", "SquaredDifference", "Maximum", "Minimum",
        "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "NotEqual", "AddN"})
    CHECK(is_one(op, DataType::kInt32));
  for (const char* op : {"LogicalAnd", "LogicalOr"})
    CHECK(is_one(op, DataType::kBool));
  for (const char* op : {"AddV2", "Add", "Mul", "SquaredDifference"})
    CHECK(is_one(op, DataType::kFloat));
  // Which zero is the larger one depends on the order.
  for (const char* op : {"Maximum", "Minimum"}) {
    CHECK_FALSE(is_one(op, DataType::kFloat));
    CHECK_FALSE(is_one(op, DataType::kBFloat16));
  }
  CHECK_FALSE(is_one("Add", DataType::kString));
  for (const char* op : {"Sub", "FloorDiv", "LeftShift", "Less"})
    CHECK_FALSE(is_one(op, DataType::kInt32));
}

TEST_CASE("cse: a sum of three is not shared with one in another order") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* y = placeholder(graph, "y", DataType::kFloat);
  Node* z = placeholder(graph, "z", DataType::kFloat);
  add(graph, "a", "AddN", {{x, 0}, {y, 0}, {z, 0}});
  add(graph, "b", "AddN", {{y, 0}, {z, 0}, {x, 0}});
  Program program = program_of(graph, {"a", "b"});
  CHECK(!run_pass(share_subexpressions, program));
}

TEST_CASE("cse: nodes of one device are shared, those of two are not") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  for (const auto& [name, device] :
       {std::pair("a", "/device:CPU:0"), std::pair("b", "/device:CPU:1"),
        std::pair("c", "/device:CPU:0"), std::pair("d", "")})
    graph.set_device(add(graph, name, "Neg", {{x, 0}}), device);
  Program program = program_of(graph, {"a", "b", "c", "d"});
  CHECK(run_pass(share_subexpressions, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "a = Neg(x)\n"
        "b = Neg(x)\n"
        "d = Neg(x)\n");
  CHECK(program.fetches[2].to_string() == "a:0");
}

TEST_CASE("cse: nodes with an effect and control flow are not shared") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = placeholder(graph, "p", DataType::kBool, PartialShape::scalar());
  add(graph, "a", "Print", {{x, 0}, {x, 0}});
  add(graph, "b", "Print", {{x, 0}, {x, 0}});
  add(graph, "c", "Switch", {{x, 0}, {p, 0}});
  add(graph, "d", "Switch", {{x, 0}, {p, 0}});
  placeholder(graph, "x2", DataType::kInt32);
  // What a handle stands for may change meanwhile.
  Node* handle = placeholder(graph, "handle", DataType::kResource);
  add(graph, "e", "Identity", {{handle, 0}});
  add(graph, "f", "Identity", {{handle, 0}});
  Program program = program_of(graph, {"a", "b", "c", "d:1", "x2", "e", "f"});
  CHECK(!run_pass(share_subexpressions, program));
}

TEST_CASE("cse: constants that begin alike are shared only if equal") {
  Graph graph;
  constexpr int kNumber = 8'000;
  std::vector<std::string> fetches;
  for (int i = 0; i < kNumber; ++i) {
    // Each value twice.
    const int value = i % (kNumber / 2);
    const std::string name = fmt::format("{}", i);
    Tensor numbers = Tensor::make(DataType::kInt32, {200});
    std::ranges::fill(numbers.mutable_flat<int32_t>(), 7);
    numbers.mutable_flat<int32_t>().back() = value;
    constant(graph, "numbers" + name, std::move(numbers));
    constant(graph, "short" + name, Tensor::scalar(std::to_string(value)));
    constant(graph, "long" + name,
             Tensor::scalar(std::string(600, 'x') + std::to_string(value)));
    for (const char* kind : {"numbers", "short", "long"})
      fetches.push_back(kind + name);
  }
  Program program = program_of(graph, fetches);
  CHECK(run_pass(share_subexpressions, program));
  CHECK(program.graph.size() == fetches.size() / 2);
  CHECK(program.fetches[0] == program.fetches[3 * (kNumber / 2)]);
}

TEST_CASE("cse: nodes that differ in any kind of attribute are not shared") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {1, 1, 1, 1});
  Node* text = constant(graph, "text", Tensor::scalar("a b"));
  const std::vector<int64_t> ones(4, 1);
  std::vector<std::string> fetches;
  const auto try_all = [&](const std::string& op, std::vector<Endpoint> inputs,
                           const AttrMap& common, const std::string& name,
                           const std::vector<AttrValue>& values) {
    for (const AttrValue& value : values) {
      AttrMap attrs = common;
      attrs[name] = value;
      // Each twice.
      for (int i = 0; i < 2; ++i) {
        fetches.push_back(fmt::format("n{}", fetches.size()));
        add(graph, fetches.back(), op, inputs, attrs);
      }
    }
  };
  try_all("LRN", {{x, 0}}, {}, "bias", {1.0f, 2.0f, 0.0f, -0.0f});
  try_all("LRN", {{x, 0}}, {}, "depth_radius", {1, 2});
  try_all("Squeeze", {{x, 0}}, {}, "squeeze_dims",
          {std::vector<int64_t>{0}, std::vector<int64_t>{0, 1},
           std::vector<int64_t>{}});
  try_all("EnsureShape", {{x, 0}}, {}, "shape",
          {PartialShape(), PartialShape({-1, 1, 1, 1}),
           PartialShape({1, -1, 1, 1})});
  try_all("StringJoin", {{text, 0}, {text, 0}}, {}, "separator", {"", "-"});
  Program program = program_of(graph, fetches);
  const size_t before = program.graph.size();
  CHECK(run_pass(share_subexpressions, program));
  CHECK(program.graph.size() == before - fetches.size() / 2);
  for (size_t i = 0; i < fetches.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      CHECK((program.fetches[i] == program.fetches[j]) == (i / 2 == j / 2));
}

TEST_CASE("cse: control inputs count, in any order, shared ones once") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = placeholder(graph, "y", DataType::kInt32);
  Node* a = add(graph, "a", "Neg", {{x, 0}});
  Node* b = add(graph, "b", "Neg", {{x, 0}});
  add(graph, "c", "Square", {{x, 0}}, {}, {a, y, b});
  add(graph, "d", "Square", {{x, 0}}, {}, {y, b});
  add(graph, "e", "Square", {{x, 0}}, {}, {y});
  Program program = program_of(graph, {"c", "d", "e"});
  CHECK(run_pass(share_subexpressions, program));
  CHECK(dump(program.graph, "c") == "c = Square(x, ^a, ^y)");
  CHECK(program.fetches[1].to_string() == "c:0");
  CHECK(program.fetches[2].to_string() == "e:0");
}
