#include "graph/shape_context.h"

#include <doctest/doctest.h>

#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

Node* placeholder(Graph& graph, const std::string& name, PartialShape shape,
                  DataType dtype = DataType::kFloat) {
  return add(graph, name, "Placeholder", {},
             {{"dtype", dtype}, {"shape", std::move(shape)}});
}

// What a shape function of an Identity of `source` is told about it.
ShapeContext seen(Graph& graph, Endpoint source) {
  return ShapeContext(
      *add(graph, graph.unique_name("seen"), "Identity", {source}));
}

std::string refusal(const Result<PartialShape>& shape) {
  REQUIRE_FALSE(shape.ok());
  CHECK(shape.status().code() == Code::kInvalidArgument);
  return std::string(shape.status().message());
}

std::string as_text(const Result<PartialShape>& shape) {
  return shape.ok() ? shape->to_string() : shape.status().to_string();
}

}  // namespace

TEST_CASE("a shape function sees the shapes of its inputs") {
  Graph graph;
  Node* x = placeholder(graph, "x", {2, -1});
  const ShapeContext c = seen(graph, {x, 0});
  CHECK(c.input(0).to_string() == "[2,?]");
  CHECK(*c.attr<DataType>("T") == DataType::kFloat);
  Node* merge = add(graph, "merge", "Merge", {{x, 0}, {}});
  CHECK(ShapeContext(*merge).input(1).to_string() == "<unknown>");
}

TEST_CASE("an input of the wrong rank is refused by name") {
  Graph graph;
  Node* x = placeholder(graph, "x", {2, -1});
  Node* u = placeholder(graph, "u", PartialShape());
  const ShapeContext c = seen(graph, {x, 0});
  CHECK(as_text(c.with_rank(0, 2)) == "[2,?]");
  CHECK(refusal(c.with_rank(0, 1)) ==
        "input 0 (\"x:0\") has shape [2,?], of rank 2; rank 1 is wanted");
  CHECK(as_text(c.with_rank_at_least(0, 1)) == "[2,?]");
  CHECK(refusal(c.with_rank_at_least(0, 3)) ==
        "input 0 (\"x:0\") has shape [2,?], of rank 2; at least rank 3 is "
        "wanted");
  CHECK(as_text(seen(graph, {u, 0}).with_rank(0, 2)) == "[?,?]");
  CHECK(as_text(seen(graph, {u, 0}).with_rank_at_least(0, 2)) == "<unknown>");
  CHECK(c.fail("no good").message() == "[Identity] node \"seen\": no good");
}

TEST_CASE("a shape function sees constants through identities and Enters") {
  Graph graph;
  Node* five = constant(graph, "five", Tensor::scalar(5));
  Node* same = add(graph, "same", "Identity", {{five, 0}});
  Node* enter = add(graph, "enter", "Enter", {{same, 0}},
                    {{"frame_name", "f"}, {"is_constant", true}});
  Node* varies =
      add(graph, "varies", "Enter", {{same, 0}}, {{"frame_name", "f"}});
  const Tensor* value = seen(graph, {enter, 0}).constant(0);
  REQUIRE(value != nullptr);
  CHECK(value->scalar_value<int32_t>() == 5);
  CHECK(seen(graph, {varies, 0}).constant(0) == nullptr);
  CHECK(seen(graph, {placeholder(graph, "x", {}), 0}).constant(0) == nullptr);
}

TEST_CASE("a constant vector is a shape, with -1 for unknown") {
  Graph graph;
  Node* v = constant(graph, "v", Tensor::vector<int32_t>({2, -1, 3}));
  Node* w = constant(graph, "w", Tensor::vector<int64_t>({4}));
  Node* bad = constant(graph, "bad", Tensor::vector<int32_t>({2, -2}));
  Node* any = constant(graph, "any", Tensor::scalar(-1));
  Node* matrix = constant(graph, "matrix", Tensor::of<int32_t>({1, 1}, {1}));
  Node* text = constant(graph, "text", Tensor::scalar("x"));
  Node* dims = constant(graph, "dims", Tensor::make(DataType::kInt64, {300}));
  CHECK(as_text(seen(graph, {v, 0}).constant_as_shape(0)) == "[2,?,3]");
  CHECK(as_text(seen(graph, {w, 0}).constant_as_shape(0)) == "[4]");
  CHECK(as_text(seen(graph, {any, 0}).constant_as_shape(0)) == "<unknown>");
  CHECK(as_text(seen(graph, {text, 0}).constant_as_shape(0)) == "<unknown>");
  CHECK(refusal(seen(graph, {bad, 0}).constant_as_shape(0)) ==
        "input 0 (\"bad:0\"): [shape] negative dimension -2 in [2,-2]");
  CHECK(
      refusal(seen(graph, {matrix, 0}).constant_as_shape(0)) ==
      "input 0 (\"matrix:0\"): int32[1,1] is not a shape; a vector is wanted");
  CHECK(
      refusal(seen(graph, {dims, 0}).constant_as_shape(0)) ==
      "input 0 (\"dims:0\"): int64[300] is not a shape; its rank is over 254");
}

TEST_CASE("a shape function knows only the length of an unknown vector") {
  Graph graph;
  Node* v = placeholder(graph, "v", {3}, DataType::kInt32);
  Node* u = placeholder(graph, "u", {-1}, DataType::kInt32);
  Node* s = placeholder(graph, "s", PartialShape::scalar(), DataType::kInt32);
  CHECK(as_text(seen(graph, {v, 0}).constant_as_shape(0)) == "[?,?,?]");
  CHECK(as_text(seen(graph, {u, 0}).constant_as_shape(0)) == "<unknown>");
  CHECK(as_text(seen(graph, {s, 0}).constant_as_shape(0)) == "<unknown>");
}

TEST_CASE("a shape function knows values computed from shapes") {
  Graph graph;
  Node* x = placeholder(graph, "x", {2, -1, 5});
  Node* shape = add(graph, "shape", "Shape", {{x, 0}});
  Node* wide = add(graph, "wide", "Cast", {{shape, 0}},
                   {{"SrcT", DataType::kInt32}, {"DstT", DataType::kInt64}});
  CHECK(as_text(seen(graph, {shape, 0}).constant_as_shape(0)) == "[2,?,5]");
  CHECK(as_text(seen(graph, {wide, 0}).constant_as_shape(0)) == "[2,?,5]");

  auto index = [&](const std::string& name, int32_t i) {
    return constant(graph, name, Tensor::vector<int32_t>({i}));
  };
  Node* zero = index("zero", 0);
  Node* one = index("one", 1);
  Node* two = index("two", 2);
  Node* last = index("last", -1);
  // shape[0] and shape[-1], packed with a constant.
  Node* first = add(graph, "first", "StridedSlice",
                    {{shape, 0}, {zero, 0}, {one, 0}, {one, 0}},
                    {{"shrink_axis_mask", 1}});
  Node* end = add(graph, "end", "StridedSlice",
                  {{shape, 0}, {last, 0}, {zero, 0}, {one, 0}},
                  {{"shrink_axis_mask", 1}});
  Node* seven = constant(graph, "seven", Tensor::scalar(7));
  Node* pack = add(graph, "pack", "Pack", {{first, 0}, {seven, 0}, {end, 0}});
  CHECK(as_text(seen(graph, {pack, 0}).constant_as_shape(0)) == "[2,7,5]");
  CHECK(as_text(seen(graph, {end, 0}).constant_as_shape(0)) == "[5]");

  // shape[1:], shape[:2], shape[::-1], joined with a constant.
  Node* tail =
      add(graph, "tail", "StridedSlice",
          {{shape, 0}, {one, 0}, {zero, 0}, {one, 0}}, {{"end_mask", 1}});
  Node* head =
      add(graph, "head", "StridedSlice",
          {{shape, 0}, {zero, 0}, {two, 0}, {one, 0}}, {{"begin_mask", 1}});
  Node* turned = add(graph, "turned", "StridedSlice",
                     {{shape, 0}, {zero, 0}, {zero, 0}, {last, 0}},
                     {{"begin_mask", 1}, {"end_mask", 1}});
  CHECK(as_text(seen(graph, {tail, 0}).constant_as_shape(0)) == "[?,5]");
  CHECK(as_text(seen(graph, {head, 0}).constant_as_shape(0)) == "[2,?]");
  CHECK(as_text(seen(graph, {turned, 0}).constant_as_shape(0)) == "[5,?,2]");
  Node* axis = constant(graph, "axis", Tensor::scalar(0));
  Node* joined =
      add(graph, "joined", "ConcatV2", {{tail, 0}, {one, 0}, {axis, 0}});
  CHECK(as_text(seen(graph, {joined, 0}).constant_as_shape(0)) == "[?,5,1]");
}

TEST_CASE("a shape function gives up a value that is used again and again") {
  Graph graph;
  Node* axis = constant(graph, "axis", Tensor::scalar(0));
  Node* x = placeholder(graph, "x", {0}, DataType::kInt32);
  for (int i = 0; i < 60; ++i)
    x = add(graph, graph.unique_name("twice"), "ConcatV2",
            {{x, 0}, {x, 0}, {axis, 0}});
  CHECK(seen(graph, {x, 0}).constant_as_shape(0).ok());
}

TEST_CASE("shapes are broadcast from the innermost dimension") {
  auto text = [](PartialShape a, PartialShape b) {
    return as_text(broadcast(a, b));
  };
  CHECK(text({2, 3}, {3}) == "[2,3]");
  CHECK(text({2, 1}, {1, 3}) == "[2,3]");
  CHECK(text(PartialShape::scalar(), {4}) == "[4]");
  CHECK(text({-1}, {4}) == "[4]");
  CHECK(text({-1}, {1}) == "[?]");
  CHECK(text({-1}, {-1}) == "[?]");
  CHECK(text({0}, {1}) == "[0]");
  CHECK(text(PartialShape(), {1}) == "<unknown>");
  CHECK(refusal(broadcast({2, 3}, {4})) ==
        "shapes [2,3] and [4] cannot be broadcast: 3 against 4");
}

TEST_CASE("the common shape functions set every output") {
  Graph graph;
  Node* x = placeholder(graph, "x", {2, 3});
  Node* y = placeholder(graph, "y", {3});
  Node* both = add(graph, "both", "IdentityN", {{x, 0}, {y, 0}});
  ShapeContext c(*both);
  must(unchanged_shape(c));
  CHECK(c.outputs()[1].to_string() == "[2,3]");
  must(broadcast_shape(c));
  CHECK(c.outputs()[1].to_string() == "[2,3]");
  must(scalar_shape(c));
  CHECK(c.outputs()[0].to_string() == "[]");
  must(unknown_shape(c));
  CHECK(c.outputs()[0].to_string() == "<unknown>");
}
