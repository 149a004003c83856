#include "graph/analysis/loop_shapes.h"

#include <doctest/doctest.h>

#include "tests/graph/hand_made_loops.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

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
  Lists lists() { return {graph}; }
  void expect(const Loop& loop, size_t i, const PartialShape& shape) {
    CHECK(loop.merges[i]->output_shape(0).to_string() == shape.to_string());
    CHECK(loop.exits[i]->output_shape(0).to_string() == shape.to_string());
  }
};

}  // namespace

TEST_CASE("loop shapes: a variable of one shape in all trips keeps it") {
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

TEST_CASE("loop shapes: a variable that grows keeps its other dimensions") {
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

TEST_CASE("loop shapes: variables that swap keep what they share") {
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

TEST_CASE("loop shapes: a chain longer than the rounds gives up step by step") {
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

TEST_CASE("loop shapes: a very long chain's end is unknown") {
  Fixture f;
  constexpr int kLength = 500;
  Values start;
  for (int i = 0; i < kLength; ++i)
    start.push_back(f.input(fmt::format("x{}", i).c_str(), {4}));
  const Loop made = loop(f.graph, "l", start, [&](const Values& in) {
    Values next = {
        f.node("longer", "ConcatV2", {in[0], in[0], f.number("axis", 0)})};
    next.insert(next.end(), in.begin(), in.end() - 1);
    return next;
  });
  must(infer_loop_shapes(f.graph));
  // Sound, whatever is known: each becomes as long as the first one.
  for (size_t i = 0; i < kLength; ++i)
    CHECK(!made.merges[i]->output_shape(0).fully_known());
}

TEST_CASE("loop shapes: loops in loops have their shapes, too") {
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

TEST_CASE("loop shapes: contradicting shapes are unknown, and no error") {
  Fixture f;
  const Endpoint x = f.input("x", {2, 3});
  // The product fits in no iteration; so none says what comes around.
  const Loop made = loop(f.graph, "l", {x}, [&](const Values& in) {
    return Values{f.node("p", "MatMul", {in[0], in[0]})};
  });
  must(infer_loop_shapes(f.graph));
  f.expect(made, 0, {-1, -1});
}

TEST_CASE("loop shapes: a known dimension of a variable stays known") {
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

TEST_CASE("loop shapes: an element read of a list has the pushed shape") {
  Fixture f;
  const Lists lists = f.lists();
  const Endpoint x = f.input("x", {2, 3}), y = f.input("y", {2, -1});
  const Endpoint some = {placeholder(f.graph, "some", DataType::kInt32, {5}),
                         0};
  const Endpoint one = lists.push("one", lists.empty("list"), x);
  const Endpoint two = lists.push("two", one, y);
  Node* pop = lists.pop("pop", one);
  lists.get("get", one);
  lists.stack("stack", one);
  lists.gather("gather", one, some);
  const Endpoint rank_2 = {
      constant(f.graph, "rank_2", Tensor::vector<int32_t>({-1, -1})), 0};
  lists.stack("stack_of_4", one, rank_2, 4);
  lists.gather("gather_5", one, some, rank_2);
  lists.get("get_of_two", two);
  f.node("after", "Tanh", {{pop, 1}});
  const auto is = [&](const char* name, std::string_view shape, int port = 0) {
    CAPTURE(name);
    CHECK(f.graph.find(name)->output_shape(port).to_string() == shape);
  };
  is("pop", "<unknown>", 1);
  must(infer_loop_shapes(f.graph));
  is("pop", "[]");
  is("pop", "[2,3]", 1);
  is("get", "[2,3]");
  is("stack", "[?,2,3]");
  is("stack_of_4", "[4,2,3]");
  is("gather", "[?,2,3]");
  is("gather_5", "[5,2,3]");
  is("get_of_two", "[2,?]");
  is("after", "[2,3]");
}

TEST_CASE("loop shapes: a list filled in a loop gives its elements' shape") {
  Fixture f;
  const Lists lists = f.lists();
  const Endpoint x = f.input("x", {2, 3}), y = f.input("y", {-1, 3});
  const Loop filled =
      loop(f.graph, "fill", {x, lists.empty("empty")}, [&](const Values& in) {
        return Values{f.node("t", "Tanh", {in[0]}),
                      lists.push("push", in[1], in[0])};
      });
  loop(f.graph, "drain", {{filled.exits[1], 0}}, [&](const Values& in) {
    return Values{{lists.pop("drained", in[0]), 0}};
  });
  // Here the reader comes before what is put in.
  const auto turn = [&](const std::string& name, const Endpoint& variable) {
    const Endpoint list = lists.push(name + "_0", lists.empty(name + "_e"), x);
    loop(f.graph, name, {variable, list}, [&](const Values& in) {
      Node* pop = lists.pop(name + "_pop", in[1]);
      const Endpoint t = f.node(name + "_t", "Tanh", {in[0]});
      return Values{t, lists.push(name + "_push", {pop, 0}, t)};
    });
    return f.graph.find(name + "_pop");
  };
  Node* same = turn("same", x);
  Node* other = turn("other", y);
  must(infer_loop_shapes(f.graph));
  CHECK(f.graph.find("drained")->output_shape(1).to_string() == "[2,3]");
  CHECK(same->output_shape(1).to_string() == "[2,3]");
  CHECK(other->output_shape(1).to_string() == "[?,3]");
}

TEST_CASE("loop shapes: an element is no better known than its variable") {
  Fixture f;
  const Lists lists = f.lists();
  const Endpoint axis = f.number("axis", 0);
  const Endpoint x = f.input("x", {2, 3}), y = f.input("y", {2, 3});
  // x grows; what is popped is x of another iteration; y becomes that.
  const Endpoint start = lists.push("first", lists.empty("empty"), x);
  const Loop made = loop(f.graph, "l", {x, start, y}, [&](const Values& in) {
    Node* pop = lists.pop("pop", in[1]);
    const Endpoint longer = f.node("longer", "ConcatV2", {in[0], in[0], axis});
    return Values{longer, lists.push("push", {pop, 0}, in[0]), {pop, 1}};
  });
  must(infer_loop_shapes(f.graph));
  f.expect(made, 0, {-1, 3});
  CHECK(f.graph.find("pop")->output_shape(1).to_string() == "[?,3]");
  f.expect(made, 2, {-1, 3});
}

TEST_CASE("loop shapes: an element's shape holds for all iterations") {
  // What is different moves on by one variable an iteration, to the list.
  for (const int variables : {2, 5, 30}) {
    CAPTURE(variables);
    Fixture f;
    const Lists lists = f.lists();
    Values start = {lists.empty("empty")};
    for (int i = 0; i < variables; ++i)
      start.push_back(f.input(fmt::format("x{}", i).c_str(), {i == 0 ? 4 : 3}));
    start.push_back(f.input("y", {3}));
    const Loop made = loop(f.graph, "l", start, [&](const Values& in) {
      Values out = {lists.push("push", in[0], in[size_t(variables)]), in[1]};
      out.insert(out.end(), in.begin() + 1, in.end() - 2);
      out.push_back({lists.get("get", out[0]), 0});
      return out;
    });
    must(infer_loop_shapes(f.graph));
    const PartialShape& popped = f.graph.find("get")->output_shape(0);
    CHECK(popped.accepts({3}));
    CHECK(popped.accepts({4}));
    for (const Node* merge : std::span(made.merges).subspan(2)) {
      CHECK(merge->output_shape(0).accepts({3}));
      CHECK(merge->output_shape(0).accepts({4}));
    }
    if (variables > 5) continue;
    CHECK(popped.to_string() == "[?]");
    f.expect(made, size_t(variables) + 1, {-1});
  }
}

TEST_CASE("loop shapes: an element pushed again with another shape has none") {
  Fixture f;
  const Lists lists = f.lists();
  const Endpoint axis = f.number("axis", 0);
  const Endpoint x = f.input("x", {2, 3});
  const Endpoint start = lists.push("first", lists.empty("empty"), x);
  loop(f.graph, "l", {start, start, start}, [&](const Values& in) {
    Node* longer = lists.pop("longer", in[0]);
    Node* deeper = lists.pop("deeper", in[1]);
    Node* same = lists.pop("same", in[2]);
    const Endpoint twice{longer, 1}, flat{deeper, 1};
    return Values{
        lists.push("push_longer", {longer, 0},
                   f.node("concat", "ConcatV2", {twice, twice, axis})),
        lists.push("push_deeper", {deeper, 0},
                   f.node("expand", "ExpandDims", {flat, axis})),
        lists.push("push_same", {same, 0}, x)};
  });
  must(infer_loop_shapes(f.graph));
  const auto popped = [&](const char* name) -> const PartialShape& {
    return f.graph.find(name)->output_shape(1);
  };
  CHECK(popped("longer").accepts({2, 3}));
  CHECK(popped("longer").accepts({4, 3}));
  CHECK(popped("deeper").accepts({2, 3}));
  CHECK(popped("deeper").accepts({1, 2, 3}));
  CHECK(popped("same").to_string() == "[2,3]");
}

TEST_CASE("loop shapes: a better shape is passed on to later nodes") {
  Fixture f;
  const Lists lists = f.lists();
  const Endpoint x = f.input("x", {-1, 3});
  f.node("behind", "Tanh", {x});
  const Loop filled =
      loop(f.graph, "fill", {x, lists.empty("empty")}, [&](const Values& in) {
        return Values{f.node("t", "Tanh", {in[0]}),
                      lists.push("push", in[1], in[0])};
      });
  lists.stack("stack", {filled.exits[1], 0});
  f.node("beside", "Tanh", {f.input("y", {-1, 7})});
  const auto is = [&](const char* name, std::string_view shape) {
    CAPTURE(name);
    CHECK(f.graph.find(name)->output_shape(0).to_string() == shape);
  };
  must(infer_loop_shapes(f.graph));
  is("behind", "[?,3]");
  is("stack", "[?,?,3]");
  f.graph.set_output_shape(x.node, 0, {5, 3});
  must(infer_loop_shapes(f.graph));
  is("behind", "[?,3]");  // it was not said that x has changed
  Node* const changed[] = {x.node};
  must(infer_loop_shapes(f.graph, changed));
  is("x", "[5,3]");
  is("behind", "[5,3]");
  f.expect(filled, 0, {5, 3});
  is("stack", "[?,5,3]");
  is("beside", "[?,7]");
}
