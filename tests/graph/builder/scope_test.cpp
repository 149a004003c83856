#include "graph/builder/scope.h"

#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "tests/graph/builder/dump.h"

namespace tagflow::graph {

using namespace ops;

namespace {

Tensor value_of(const Graph& graph, std::string_view name) {
  const Node* node = graph.find(name);
  return node == nullptr ? Tensor() : node->attr<Tensor>("value").value();
}

}  // namespace

TEST_CASE(
    "ops are named after their kind, scopes and numbers keep them apart") {
  Graph graph;
  Scope s(graph);
  const Output x = constant(s, 1.f);
  const Scope inner = s.sub_scope("layer");
  CHECK(add(inner, x, x).name() == "layer/AddV2:0");
  CHECK(add(inner, x, x).name() == "layer/AddV2_1:0");
  CHECK(add(inner.named("sum"), x, x).name() == "layer/sum:0");
  CHECK(add(s.sub_scope("layer"), x, x).name() == "layer_1/AddV2:0");
  CHECK(neg(s.named("layer"), x).name() == "layer_2:0");
  CHECK(inner.sub_scope("a").named("b").constant(Tensor::scalar(1)).name() ==
        "layer/a/b:0");
  CHECK(s.ok());
}

TEST_CASE("a number takes the type of the other operand") {
  Graph graph;
  Scope s(graph);
  const Output h = placeholder(s, DataType::kHalf, {2});
  CHECK(add(s, h, 1).dtype() == DataType::kHalf);
  CHECK(value_of(graph, "AddV2/y").dtype() == DataType::kHalf);
  const Output i = constant(s, int64_t(5));
  CHECK(mul(s, 3, i).dtype() == DataType::kInt64);
  CHECK(value_of(graph, "Mul/x").flat<int64_t>()[0] == 3);
  CHECK(s.ok());
}

TEST_CASE("numbers alone are int32, int64 if too large, or float") {
  Graph graph;
  Scope s(graph);
  CHECK(identity(s, 1).dtype() == DataType::kInt32);
  CHECK(identity(s, int64_t(1) << 40).dtype() == DataType::kInt64);
  CHECK(identity(s, 0.5).dtype() == DataType::kFloat);
  CHECK(identity(s, {1, 2, 3}).shape() == PartialShape{3});
  CHECK(identity(s, true).dtype() == DataType::kBool);
  CHECK(identity(s, "text").dtype() == DataType::kString);
  CHECK(range(s, 0, 1, 0.25).dtype() == DataType::kFloat);
  CHECK(reshape(s, {1, 2, 3, 4}, {2, 2}).shape() == PartialShape{2, 2});
  CHECK(s.ok());
}

TEST_CASE("a number that the type cannot hold is refused") {
  Graph graph;
  Scope s(graph);
  add(s, constant(s, uint8_t(1)), 256);
  CHECK(s.status().message() ==
        "[Const] \"AddV2/y\": the literal 256 is not a value of type uint8");
  Scope t(graph);
  add(t, constant(t, 1), 0.5);
  CHECK(t.status().message() ==
        "[Const] \"AddV2/y\": the literal 0.5 is not a value of type int32");
  Scope u(graph);
  add(u, constant(u, "text"), 1);
  CHECK(u.status().message() ==
        "[Const] \"AddV2/y\": a number is given, but string is wanted");
}

TEST_CASE("a scope keeps its first error, and later ops are invalid") {
  Graph graph;
  Scope s(graph);
  const Scope inner = s.sub_scope("inner");
  const Output x = constant(s, 1.f);
  const Output bad = add(inner, x, constant(s, 1));
  CHECK(!bad.valid());
  const std::string first = s.status().to_string();
  CHECK(first.find("inner/AddV2") != std::string::npos);
  const size_t size = graph.size();
  CHECK(!add(s, bad, x).valid());
  CHECK(!constant(s, 1.f).valid());
  CHECK(!s.op("NoSuchOp", {})[3].valid());
  CHECK(cond(
            s, true, [&](const Scope&) { return x; },
            [&](const Scope&) { return x; })
            .empty());
  CHECK(graph.size() == size);
  CHECK(inner.status().to_string() == first);
}

TEST_CASE("an invalid Output answers harmlessly") {
  const Output none;
  CHECK(!none.valid());
  CHECK(!none.has_tensor());
  CHECK(none.dtype() == DataType::kInvalid);
  CHECK(!none.shape().has_rank());
  CHECK(none.name().empty());
  CHECK(OpResult()[0] == none);
  CHECK(Outputs()[7] == none);
}

TEST_CASE("inputs that are not tensors of the graph are refused by name") {
  Graph graph;
  Graph other;
  Scope s(graph);
  Scope foreign(other);
  neg(s, constant(foreign.named("c"), 1.f));
  CHECK(s.status().message() ==
        "\"Neg\" uses \"c\", which is of another graph");
  Scope t(graph);
  neg(t.named("n"), no_op(t.named("op")));
  CHECK(t.status().message() ==
        "[Neg] \"n\": input 0, \"op:0\", is an operation without that output");
  Scope u(graph);
  neg(u, Output());
  CHECK(u.status().message() == "[Neg] \"Neg\": input 0 is an invalid Output");
  Scope v(graph);
  v.with_control_dependencies(Output());
  CHECK(v.status().message() ==
        "[with_control_dependencies] input 0 is an invalid Output");
}

TEST_CASE("an attribute that the op has not is refused, with the nearest") {
  Graph graph;
  Scope s(graph);
  const Output m = s.constant(Tensor::of<float>({1, 1}, {1.f}));
  s.op("MatMul", {m, m}, {{"transposed_b", true}});
  CHECK(s.status().message() ==
        "[MatMul] the op has no attribute \"transposed_b\", did you mean "
        "\"transpose_b\"?");
  Scope t(graph);
  t.op("MatMul", {m, m}, {{"transpose_b", true}, {"_note", "ours"}});
  CHECK(t.ok());
}

TEST_CASE("an unknown op or number of inputs is refused") {
  Graph graph;
  Scope s(graph);
  s.op("AddV3", {1, 2});
  CHECK(s.status().code() == Code::kUnimplemented);
  CHECK(s.status().message().find("AddV2") != std::string_view::npos);
  Scope t(graph);
  t.op("Sub", {1, 2, 3});
  CHECK(t.status().message() == "[Sub] 3 inputs do not match its definition");
  Scope u(graph);
  u.op("Print", {1, 2, 3});
  CHECK(u.ok());
}

TEST_CASE("devices, attributes and control inputs hold for every op") {
  Graph graph;
  Scope s(graph);
  const Output a = constant(s.named("a"), 1.f);
  const Scope t = s.with_device("/cpu:0")
                      .with_attr("_mark", 7)
                      .colocate_with(a)
                      .with_control_dependencies(a)
                      .with_control_dependencies(a);
  const Output b = neg(t.named("b"), a);
  REQUIRE(s.ok());
  CHECK(b.node()->device() == "/cpu:0");
  CHECK(b.node()->attr<int64_t>("_mark").value() == 7);
  CHECK(b.node()->attr<std::vector<std::string>>("_class").value()[0] ==
        "loc:@a");
  CHECK(dump(graph, "b") == "b = Neg(a, ^a)");
  neg(t.without_control_dependencies().named("c"), a);
  CHECK(dump(graph, "c") == "c = Neg(a)");
  s.with_attr("T", DataType::kFloat);
  CHECK(s.status().message() ==
        "[Scope] the attribute \"T\" is not for every op: its name must start "
        "with _");
}

TEST_CASE("group waits for all, tuple holds each back for all") {
  Graph graph;
  Scope s(graph);
  const Output a = constant(s.named("a"), 1.f);
  const Output b = constant(s.named("b"), 1.f);
  const Output op = no_op(s.named("op"));
  CHECK(group(s.named("all"), {a, op}).is_operation());
  CHECK(dump(graph, "all") == "all = NoOp(^a, ^op)");
  const Outputs held = tuple(s.sub_scope("t"), {a, b}, {op});
  CHECK(held.size() == 2);
  CHECK(dump(graph, "t/NoOp") == "t/NoOp = NoOp(^op, ^a, ^b)");
  CHECK(dump(graph, "t/Identity_1") == "t/Identity_1 = Identity(b, ^t/NoOp)");
  CHECK(identity_n(s, {a, b, 1}).size() == 3);
  CHECK(s.ok());
}

}  // namespace tagflow::graph
