#include "graph/loop_shapes.h"

#include <doctest/doctest.h>

#include <functional>

#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

using Values = std::vector<Endpoint>;

struct Loop {
  std::vector<Node*> merges, exits;
};

// A loop that a counter ends, of these variables beside.
Loop loop(Graph& graph, const std::string& name, const Values& start,
          const std::function<Values(const Values&)>& body) {
  const Counter counting = counter(
      graph, name,
      {constant(graph, name + "_start", Tensor::scalar<int32_t>(0)), 0},
      {constant(graph, name + "_limit", Tensor::scalar<int32_t>(9)), 0});
  Loop made;
  Values inside;
  for (size_t i = 0; i < start.size(); ++i) {
    const auto named = [&](const char* what) {
      return fmt::format("{}/{}{}", name, what, i);
    };
    Node* enter =
        add(graph, named("enter"), "Enter", {start[i]}, {{"frame_name", name}});
    Node* merge = add(graph, named("merge"), "Merge", {{enter, 0}, {}});
    Node* branch =
        add(graph, named("switch"), "Switch", {{merge, 0}, {counting.cond, 0}});
    made.merges.push_back(merge);
    made.exits.push_back(add(graph, named("exit"), "Exit", {{branch, 0}}));
    inside.push_back({branch, 1});
  }
  const Values results = body(inside);
  for (size_t i = 0; i < start.size(); ++i) {
    Node* next = add(graph, fmt::format("{}/next{}", name, i), "NextIteration",
                     {results[i]});
    must(graph.set_input(made.merges[i], 1, {next, 0}));
  }
  return made;
}

struct Fixture {
  Graph graph;

  Endpoint input(const char* name, PartialShape shape) {
    return {placeholder(graph, name, DataType::kFloat, std::move(shape)), 0};
  }
  Endpoint node(const std::string& name, const char* op, const Values& in,
                AttrMap attrs = {}) {
    return {add(graph, name, op, in, std::move(attrs)), 0};
  }
  Endpoint number(const char* name, int32_t value) {
    return {constant(graph, name, Tensor::scalar<int32_t>(value)), 0};
  }
  void expect(const Loop& loop, size_t i, const PartialShape& shape) {
    CHECK(loop.merges[i]->output_shape(0).to_string() == shape.to_string());
    CHECK(loop.exits[i]->output_shape(0).to_string() == shape.to_string());
  }
};

}  // namespace

TEST_CASE("a variable that comes around as it entered keeps its shape") {
  Fixture f;
  const Endpoint x = f.input("x", {-1, 128});
  const Loop made = loop(f.graph, "l", {x}, [&](const Values& in) {
    return Values{f.node("sum", "AddV2", {f.node("t", "Tanh", in), in[0]})};
  });
  CHECK(!made.exits[0]->output_shape(0).has_rank());
  must(infer_loop_shapes(f.graph));
  f.expect(made, 0, {-1, 128});
  CHECK(f.graph.find("sum")->output_shape(0) == PartialShape{-1, 128});
}

TEST_CASE("of a variable that grows, what stays is known") {
  Fixture f;
  const Endpoint x = f.input("x", {2, 3}), y = f.input("y", {2, 3});
  const Endpoint axis = f.number("axis", 0);
  const Loop made = loop(f.graph, "l", {x, y}, [&](const Values& in) {
    return Values{f.node("longer", "ConcatV2", {in[0], in[0], axis}),
                  f.node("deeper", "ExpandDims", {in[1], axis})};
  });
  must(infer_loop_shapes(f.graph));
  f.expect(made, 0, {-1, 3});
  f.expect(made, 1, PartialShape());
}

TEST_CASE("variables that change places have what they have in common") {
  Fixture f;
  const Endpoint x = f.input("x", {2, 3}), y = f.input("y", {5, 3});
  const Endpoint z = f.input("z", {7, 3});
  const Loop made = loop(f.graph, "l", {x, y, z}, [&](const Values& in) {
    return Values{in[1], in[0], in[2]};
  });
  must(infer_loop_shapes(f.graph));
  f.expect(made, 0, {-1, 3});
  f.expect(made, 1, {-1, 3});
  f.expect(made, 2, {7, 3});
}

TEST_CASE("a chain of variables longer than the rounds gives up one by one") {
  Fixture f;
  Values start;
  for (int i = 0; i < 20; ++i)
    start.push_back(f.input(fmt::format("x{}", i).c_str(), {i == 0 ? 4 : 3}));
  // What is different moves on by one variable an iteration.
  const Loop made = loop(f.graph, "l", start, [&](const Values& in) {
    Values out = {in[0]};
    out.insert(out.end(), in.begin(), in.end() - 1);
    return out;
  });
  must(infer_loop_shapes(f.graph));
  f.expect(made, 0, {4});
  f.expect(made, 1, {-1});
  for (const Node* merge : made.merges)
    CHECK(merge->output_shape(0).compatible(PartialShape{4}));
}

TEST_CASE("loops in loops have their shapes, too") {
  Fixture f;
  const Endpoint x = f.input("x", {6}), y = f.input("y", {6});
  Loop inner;
  const Loop made = loop(f.graph, "l", {x, y}, [&](const Values& in) {
    inner = loop(f.graph, "m", in, [&](const Values& deep) {
      return Values{
          f.node("t", "Tanh", {deep[0]}),
          f.node("e", "ConcatV2", {deep[1], deep[1], f.number("axis", 0)})};
    });
    return Values{{inner.exits[0], 0}, {inner.exits[1], 0}};
  });
  must(infer_loop_shapes(f.graph));
  f.expect(made, 0, {6});
  f.expect(inner, 0, {6});
  f.expect(made, 1, {-1});
  f.expect(inner, 1, {-1});
}

TEST_CASE("from shapes that contradict nothing follows, and that is no error") {
  Fixture f;
  const Endpoint x = f.input("x", {2, 3});
  // The product fits in no iteration; so none says what comes around.
  const Loop made = loop(f.graph, "l", {x}, [&](const Values& in) {
    return Values{f.node("p", "MatMul", {in[0], in[0]})};
  });
  must(infer_loop_shapes(f.graph));
  f.expect(made, 0, {-1, -1});
}

TEST_CASE("what was known of a variable stays known") {
  Fixture f;
  const Endpoint y = f.input("y", {2, 3});
  const Endpoint unknown = f.input("unknown", PartialShape());
  const Loop told = loop(f.graph, "l", {y}, [&](const Values&) {
    return Values{
        f.node("around", "Enter", {unknown},
               {{"frame_name", std::string("l")}, {"is_constant", true}})};
  });
  f.graph.set_output_shape(told.merges[0], 0, {-1, 3});
  must(infer_loop_shapes(f.graph));
  f.expect(told, 0, {-1, 3});
}
