#include "graph/analysis/list_elements.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/graph/hand_made_loops.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

std::string names_of(const Values& values) {
  std::vector<std::string> names;
  for (const Endpoint& value : values) names.push_back(value.to_string());
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, " "));
}

// "a:0 b:0", what was put in, and what else there is.
std::string elements_of(const Endpoint& list) {
  const auto elements = find_list_elements(list);
  if (!elements) return "unknown";
  std::string text = names_of(elements->tensors);
  if (!elements->stacked.empty())
    text += " rows of " + names_of(elements->stacked);
  for (const Node* maker : elements->makers)
    if (maker->op() == "TensorListReserve")
      text += " zeros of " + maker->name();
  return text;
}

// The shape of the elements that the node reads.
std::string shape_read(const Node* reader) {
  const auto reading = list_reading(*reader);
  REQUIRE(reading);
  const auto elements =
      find_list_elements(reader->inputs()[size_t(reading->list)]);
  REQUIRE(elements);
  const auto shape = element_shape(*reader, *reading, *elements);
  return shape ? shape->to_string() : "nothing";
}

struct Fixture {
  Graph graph;
  Lists lists{graph};

  Endpoint input(const char* name, PartialShape shape = {},
                 DataType type = DataType::kFloat) {
    return {add(graph, name, "Placeholder", {},
                {{"dtype", type}, {"shape", std::move(shape)}}),
            0};
  }
  Endpoint shape(std::initializer_list<int32_t> dims) {
    return {constant(graph, graph.unique_name("shape"),
                     Tensor::vector<int32_t>(dims)),
            0};
  }
  Endpoint node(const char* name, const char* op, const Values& inputs) {
    return {add(graph, name, op, inputs), 0};
  }
};

}  // namespace

TEST_CASE("list elements: a list is followed out of the loop that filled it") {
  Fixture f;
  const Endpoint x = f.input("x"), y = f.input("y");
  const Endpoint start = f.lists.push("first", f.lists.empty("empty"), y);
  const Loop filled = loop(f.graph, "fill", {start, x}, [&](const Values& in) {
    const Endpoint t = f.node("t", "Tanh", {in[1]});
    return Values{f.lists.push("push", in[0], t), t};
  });
  Endpoint inside;
  const Loop drained =
      loop(f.graph, "drain", {{filled.exits[0], 0}}, [&](const Values& in) {
        inside = in[0];
        return Values{{f.lists.pop("pop", in[0]), 0}};
      });
  CHECK(elements_of({filled.exits[0], 0}) == "t:0 y:0");
  CHECK(elements_of(inside) == "t:0 y:0");
  CHECK(elements_of({drained.exits[0], 0}) == "t:0 y:0");
  CHECK(elements_of(start) == "y:0");
}

TEST_CASE("list elements: a conditional's list has those of both branches") {
  Fixture f;
  const Endpoint x = f.input("x"), y = f.input("y"), z = f.input("z");
  const Endpoint p = f.input("p", PartialShape::scalar(), DataType::kBool);
  const Endpoint list = f.lists.push("first", f.lists.empty("empty"), x);
  Node* branch = add(f.graph, "branch", "Switch", {list, p});
  const Endpoint then = f.lists.push("then", {branch, 1}, y);
  const Endpoint otherwise =
      f.node("else", "Identity", {f.lists.push("pushed", {branch, 0}, z)});
  Node* merge = add(f.graph, "merge", "Merge", {otherwise, then});
  CHECK(elements_of({merge, 0}) == "x:0 y:0 z:0");
  CHECK(elements_of(then) == "x:0 y:0");
  CHECK(elements_of({merge, 1}) == "unknown");  // which branch it was
}

TEST_CASE("list elements: all ops that put elements in are found") {
  Fixture f;
  const Endpoint x = f.input("x"), rows = f.input("rows");
  const Endpoint stacked = f.lists.from_tensor("stacked", rows);
  const Endpoint reserved = f.lists.reserve("reserved");
  CHECK(elements_of(f.lists.empty("empty")) == "");
  CHECK(elements_of(stacked) == " rows of rows:0");
  CHECK(elements_of(f.lists.push("pushed", stacked, x)) ==
        "x:0 rows of rows:0");
  CHECK(elements_of(reserved) == " zeros of reserved");
  CHECK(elements_of(f.lists.set("set", reserved, x)) ==
        "x:0 zeros of reserved");
  Node* pop = f.lists.pop("pop", f.lists.push("again", stacked, x));
  CHECK(elements_of({pop, 0}) == "x:0 rows of rows:0");
}

TEST_CASE("list elements: a list is unknown if an op before it is unknown") {
  Fixture f;
  const Endpoint x = f.input("x"), list = f.lists.empty("empty");
  const Endpoint size = {constant(f.graph, "size", Tensor::scalar(3)), 0};
  const Endpoint from_outside = f.input("fed", {}, DataType::kVariant);
  const AttrMap floats = {{"element_dtype", DataType::kFloat}};
  // Each may have elements that are not set, or that nobody sees.
  const Values unknown = {
      from_outside,
      f.lists.set("grown", list, x, true),
      {add(f.graph, "resized", "TensorListResize", {list, size}), 0},
      {add(f.graph, "scattered", "TensorListScatterIntoExistingList",
           {list, x, f.shape({0})}, floats),
       0},
      {add(f.graph, "joined", "TensorListConcatLists", {list, list}, floats),
       0},
  };
  for (const Endpoint& one : unknown) {
    CAPTURE(one.to_string());
    CHECK(elements_of(one) == "unknown");
    CHECK(elements_of(f.lists.push(one.node->name() + "_1", one, x)) ==
          "unknown");
  }
  CHECK(elements_of(f.lists.set("in_it", list, x)) == "x:0");
}

TEST_CASE("list elements: a list is unknown in a loop that is not closed") {
  Fixture f;
  Node* enter = add(f.graph, "enter", "Enter", {f.lists.empty("empty")},
                    {{"frame_name", "loop"}});
  Node* merge = add(f.graph, "merge", "Merge", {{enter, 0}, {}});
  CHECK(elements_of({merge, 0}) == "unknown");
}

TEST_CASE("list elements: nothing is known of a list within a list") {
  Fixture f;
  const Lists outer{f.graph, DataType::kVariant};
  const Endpoint inner =
      f.lists.push("inner", f.lists.empty("empty"), f.input("x"));
  Node* pop = outer.pop("pop", outer.push("push", outer.empty("outer"), inner));
  CHECK(elements_of({pop, 0}) == "inner:0");
  CHECK(elements_of({pop, 1}) == "unknown");
}

TEST_CASE("list elements: a list that may be an inner one is unknown") {
  Fixture f;
  const Lists outer{f.graph, DataType::kVariant};
  const Endpoint inner =
      f.lists.push("inner", f.lists.empty("empty"), f.input("x"));
  Node* pop = outer.pop("pop", outer.push("push", outer.empty("outer"), inner));
  Node* one = add(f.graph, "one", "Merge", {{pop, 0}, {pop, 1}});
  Node* other = add(f.graph, "other", "Merge", {{pop, 1}, {pop, 0}});
  CHECK(elements_of({one, 0}) == "unknown");
  CHECK(elements_of({other, 0}) == "unknown");
}

TEST_CASE("list elements: a list behind very many ops is unknown") {
  Fixture f;
  const Endpoint x = f.input("x");
  const auto pushed = [&](const std::string& name, int times) {
    Endpoint list = f.lists.empty(name);
    for (int i = 0; i < times; ++i)
      list = f.lists.push(fmt::format("{}_{}", name, i), list, x);
    return find_list_elements(list);
  };
  const auto some = pushed("some", 100);
  REQUIRE(some);
  CHECK(some->tensors.size() == 100);
  CHECK_FALSE(pushed("many", 200));
}

TEST_CASE("list elements: the ops that read a list are known") {
  Fixture f;
  const Endpoint list = f.lists.empty("list");
  struct Case {
    Node* node;
    int list, element_shape, output;
    bool is_stacked;
  };
  for (const Case& expected :
       {Case{f.lists.pop("pop", list), 0, 1, 1, false},
        Case{f.lists.get("get", list), 0, 2, 0, false},
        Case{f.lists.stack("stack", list), 0, 1, 0, true},
        Case{f.lists.gather("gather", list, f.shape({1})), 0, 2, 0, true}}) {
    CAPTURE(expected.node->name());
    const auto reading = list_reading(*expected.node);
    REQUIRE(reading);
    CHECK(reading->list == expected.list);
    CHECK(reading->element_shape == expected.element_shape);
    CHECK(reading->output == expected.output);
    CHECK(reading->is_stacked == expected.is_stacked);
  }
  const Endpoint x = f.input("x");
  for (const Endpoint& none :
       {x, list, f.lists.push("push", list, x), f.lists.set("set", list, x),
        f.node("length", "TensorListLength", {list})})
    CHECK_FALSE(list_reading(*none.node));
}

TEST_CASE("list elements: their shape is what all pushed shapes share") {
  Fixture f;
  const auto read = [&](const std::string& name,
                        const std::vector<PartialShape>& shapes) {
    Endpoint list = f.lists.empty(name);
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::string element = fmt::format("{}_{}", name, i);
      list = f.lists.push(element + "_push", list,
                          f.input(element.c_str(), shapes[i]));
    }
    return shape_read(f.lists.get(name + "_get", list));
  };
  CHECK(read("none", {}) == "nothing");
  CHECK(read("one", {{2, 3}}) == "[2,3]");
  CHECK(read("same", {{2, 3}, {2, 3}}) == "[2,3]");
  CHECK(read("differ", {{2, 3}, {4, 3}}) == "[?,3]");
  CHECK(read("open", {{2, 3}, {2, -1}}) == "[2,?]");
  CHECK(read("ranks", {{2, 3}, {2}}) == "<unknown>");
  CHECK(read("unknown", {{2, 3}, {}}) == "<unknown>");
}

TEST_CASE("list elements: the rows of a tensor are some if it has rows") {
  Fixture f;
  const auto read = [&](const std::string& name, const PartialShape& shape,
                        const PartialShape& pushed) {
    const Endpoint rows = f.input(name.c_str());
    const Endpoint list = f.lists.from_tensor(name + "_list", rows);
    f.graph.set_output_shape(rows.node, 0, shape);
    const Endpoint more = f.lists.push(name + "_more", list,
                                       f.input((name + "_x").c_str(), pushed));
    return std::pair(shape_read(f.lists.stack(name + "_a", list)),
                     shape_read(f.lists.stack(name + "_b", more)));
  };
  using Pair = std::pair<std::string, std::string>;
  CHECK(read("matrix", {5, 2}, {2}) == Pair("[2]", "[2]"));
  CHECK(read("open", {-1, 2}, {3}) == Pair("[2]", "[?]"));
  CHECK(read("vector", {5}, {}) == Pair("[]", "<unknown>"));
  CHECK(read("unknown", {}, {2}) == Pair("nothing", "nothing"));
  CHECK(read("scalar", PartialShape::scalar(), {2}) ==
        Pair("nothing", "nothing"));
}

TEST_CASE("list elements: unset ones are zeros of the declared shape") {
  Fixture f;
  int count = 0;
  const auto read = [&](const Endpoint& declared, const Endpoint& asked) {
    const std::string name = fmt::format("n{}", count++);
    const Endpoint list =
        f.lists.set(name + "_set", f.lists.reserve(name, declared),
                    f.input((name + "_x").c_str(), {2, 3}));
    const std::string got = shape_read(f.lists.get(name + "_get", list, asked));
    // Whoever reads it.
    CHECK(got == shape_read(f.lists.pop(name + "_pop", list, asked)));
    return got;
  };
  const Endpoint any = {constant(f.graph, "any", Tensor::scalar(-1)), 0};
  const Endpoint open = f.input("open", {2}, DataType::kInt32);
  CHECK(read(f.shape({2, 3}), f.shape({2, 3})) == "[2,3]");
  CHECK(read(f.shape({4, 3}), any) == "[?,3]");
  CHECK(read(any, f.shape({4, 3})) == "[?,3]");
  CHECK(read(f.shape({-1, 3}), f.shape({4, -1})) == "[?,3]");
  CHECK(read(any, f.shape({3})) == "<unknown>");
  // What is not known of them, those that are set say.
  CHECK(read(any, any) == "[2,3]");
  CHECK(read(f.shape({-1, 3}), any) == "[2,3]");
  CHECK(read(f.shape({-1, 3}), f.shape({-1, 3})) == "[2,3]");
  // They cannot be read.
  CHECK(read(f.shape({4, 3}), f.shape({5, 3})) == "[2,3]");
  // They may look like anything.
  CHECK(read(open, f.shape({2, 3})) == "nothing");
  CHECK(read(f.shape({2, 3}), open) == "nothing");
  CHECK(read(any, open) == "nothing");
}

TEST_CASE("list elements: nothing is known if none is set") {
  Fixture f;
  const Endpoint list = f.lists.reserve("list", f.shape({2, 3}));
  CHECK(shape_read(f.lists.get("get", list, f.shape({2, 3}))) == "nothing");
}

TEST_CASE("a stack of no elements has the shape that is asked for") {
  Fixture f;
  const Endpoint x = f.input("x", {3});
  const Endpoint list = f.lists.push("list", f.lists.empty("empty"), x);
  const Endpoint asked = f.input("asked", PartialShape({1}), DataType::kInt32);
  CHECK(shape_read(f.lists.stack("unknown", list, asked)) == "nothing");
  CHECK(shape_read(f.lists.stack("other", list, f.shape({5}))) == "[?]");
  CHECK(shape_read(f.lists.stack("like", list, f.shape({-1}))) == "[3]");
  CHECK(shape_read(f.lists.get("one", list, asked)) == "[3]");
}
