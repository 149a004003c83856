#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "graph/analysis/loop_shapes.h"
#include "graph/budget.h"
#include "tests/graph/hand_made_loops.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

bool fold(Program& program) {
  static const Adder adder;
  return run_pass(fold_constants, program, {.evaluator = &adder});
}

// Whatever is asked for it makes: of strings all texts of the inputs, one after
// the other, in each element; of numbers anything.
class Maker final : public Evaluator {
 public:
  Result<std::vector<Tensor>> evaluate(const Node& node,
                                       std::span<const Tensor> inputs,
                                       size_t) const override {
    const PartialShape& shape = node.output_shape(0);
    Tensor made = Tensor::make(
        node.output_dtypes()[0],
        must(Shape::make({shape.dims().begin(), shape.dims().end()})));
    if (made.dtype() == DataType::kString)
      for (std::string& text : made.mutable_flat<std::string>())
        for (const Tensor& input : inputs)
          if (input.dtype() == DataType::kString)
            for (const std::string& part : input.flat<std::string>())
              text += part;
    return std::vector<Tensor>{std::move(made)};
  }
};

bool make_all(Program& program) {
  static const Maker maker;
  return run_pass(fold_constants, program, {.evaluator = &maker});
}

int count_op(const Graph& graph, std::string_view op) {
  return int(std::ranges::count(graph.nodes(), op, &Node::op));
}

// Whether of what is read of such a list the value is known. The list is made
// by the function, of elements of the type.
using MakeList = std::function<Endpoint(Graph&, const Lists&)>;
bool is_read_before(const MakeList& make, DataType type = DataType::kInt32) {
  Graph graph;
  const Lists lists{graph, type};
  Node* pop = lists.pop("pop", make(graph, lists));
  add(graph, "read", "Identity", {{pop, 1}});
  Program program = program_of(graph, {"read"});
  return fold(program) && program.fetches[0].node->is_const();
}

// One onto which these are pushed.
MakeList pushed(std::vector<Tensor> values) {
  return [values = std::move(values)](Graph& graph, const Lists& lists) {
    Endpoint list = lists.empty("list");
    for (size_t i = 0; i < values.size(); ++i)
      list = lists.push(
          fmt::format("push{}", i), list,
          {constant(graph, fmt::format("value{}", i), values[i]), 0});
    return list;
  };
}

}  // namespace

TEST_CASE("an empty tensor of huge dimensions is not folded: it takes long") {
  const auto is_folded = [](const Shape& shape) {
    Graph graph;
    Node* none = constant(graph, "none", Tensor::make(DataType::kFloat, shape));
    add(graph, "y", "Square", {{none, 0}});
    Program program = program_of(graph, {"y"});
    return make_all(program);
  };
  CHECK(is_folded({1 << 20, 0}));
  CHECK(is_folded({0, 4, 1 << 20}));
  CHECK_FALSE(is_folded({int64_t(1) << 33, 0}));
  CHECK_FALSE(is_folded({1 << 20, 0, 1 << 20}));
}

TEST_CASE("fold: a tree of constants is one constant") {
  Graph graph;
  Node* a = number(graph, "a", 1);
  Node* b = number(graph, "b", 2);
  Node* c = add(graph, "c", "AddV2", {{a, 0}, {b, 0}});
  add(graph, "d", "AddV2", {{c, 0}, {a, 0}});
  Program program = program_of(graph, {"d"});
  CHECK(fold(program));
  CHECK(dump(program.graph) == "d_1 = Const()\n");
  CHECK(value_of(program.graph, "d_1") == 4);
  CHECK(program.fetches[0].to_string() == "d_1:0");
  CHECK(!fold(program));
}

TEST_CASE("fold: a constant waits for what its node and inputs waited for") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = placeholder(graph, "y", DataType::kInt32);
  Node* a = number(graph, "a", 1, {x});
  Node* b = number(graph, "b", 2, {y, x});
  add(graph, "c", "AddV2", {{a, 0}, {b, 0}}, {}, {y});
  Program program = program_of(graph, {"c"});
  CHECK(fold(program));
  CHECK(dump(program.graph, "c_1") == "c_1 = Const(^y, ^x)");
  CHECK(value_of(program.graph, "c_1") == 3);
}

TEST_CASE("fold: a constant that enters a loop is known inside") {
  Graph graph;
  const AttrMap frame = {{"frame_name", "f"}, {"is_constant", true}};
  Node* a = number(graph, "a", 1);
  Node* b = number(graph, "b", 2);
  Node* in_a = add(graph, "in_a", "Enter", {{a, 0}}, frame);
  Node* in_b = add(graph, "in_b", "Enter", {{b, 0}}, frame);
  Node* sum = add(graph, "sum", "AddV2", {{in_a, 0}, {in_b, 0}});
  add(graph, "out", "Exit", {{sum, 0}});
  Program program = program_of(graph, {"out"});
  CHECK(fold(program));
  CHECK(dump(program.graph, "sum_1") == "sum_1 = Const(^in_a, ^in_b)");
  CHECK(dump(program.graph, "out") == "out = Exit(sum_1)");
}

TEST_CASE("fold: a node that fails, is fed or has an effect stays") {
  Graph graph;
  Node* a = number(graph, "a", 6);
  Node* b = number(graph, "b", 7);
  add(graph, "bad", "AddV2", {{a, 0}, {b, 0}});
  Node* fed = add(graph, "fed", "PlaceholderWithDefault", {{a, 0}},
                  {{"shape", PartialShape::scalar()}});
  add(graph, "open", "AddV2", {{fed, 0}, {a, 0}});
  add(graph, "printed", "Print", {{a, 0}, {b, 0}});
  Program program = program_of(graph, {"bad", "open", "printed"});
  const std::string before = dump(program.graph);
  CHECK(!fold(program));
  CHECK(dump(program.graph) == before);
}

TEST_CASE("fold: shape, size and rank are folded as far as they are known") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {2, 3});
  Node* y = placeholder(graph, "y", DataType::kFloat, {-1, 3});
  add(graph, "shape", "Shape", {{x, 0}});
  add(graph, "size", "Size", {{x, 0}});
  add(graph, "rank", "Rank", {{y, 0}});
  add(graph, "unknown", "Shape", {{y, 0}});
  Program program = program_of(graph, {"shape", "size", "rank", "unknown"});
  CHECK(fold(program));
  CHECK(dump(program.graph, "shape_1") == "shape_1 = Const(^x)");
  CHECK(identical(must(program.graph.find("shape_1")->attr<Tensor>("value")),
                  Tensor::vector<int32_t>({2, 3})));
  CHECK(value_of(program.graph, "size_1") == 6);
  CHECK(dump(program.graph, "rank_1") == "rank_1 = Const(^y)");
  CHECK(value_of(program.graph, "rank_1") == 2);
  CHECK(dump(program.graph, "unknown") == "unknown = Shape(y)");
}

TEST_CASE("fold: a size or shape that does not fit its type is not folded") {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  Graph graph;
  Node* most = placeholder(graph, "most", DataType::kInt8, {kMost});
  Node* more = placeholder(graph, "more", DataType::kInt8, {kMost + 1});
  Node* square = placeholder(graph, "square", DataType::kInt8, {65536, 65536});
  const AttrMap wide = {{"out_type", DataType::kInt64}};
  add(graph, "most_size", "Size", {{most, 0}});
  add(graph, "more_size", "Size", {{more, 0}});
  add(graph, "more_shape", "Shape", {{more, 0}});
  add(graph, "square_size", "Size", {{square, 0}});
  add(graph, "square_shape", "Shape", {{square, 0}});
  add(graph, "wide_size", "Size", {{square, 0}}, wide);
  add(graph, "wide_shape", "Shape", {{more, 0}}, wide);
  Program program =
      program_of(graph, {"most_size", "more_size", "more_shape", "square_size",
                         "square_shape", "wide_size", "wide_shape"});
  CHECK(fold(program));
  const auto value = [&](size_t fetch) {
    return must(program.fetches[fetch].node->attr<Tensor>("value"));
  };
  CHECK(identical(value(0), Tensor::scalar(int32_t(kMost))));
  for (const size_t left : {1, 2, 3})
    CHECK(program.fetches[left].node->op() != "Const");
  CHECK(identical(value(4), Tensor::vector<int32_t>({65536, 65536})));
  CHECK(identical(value(5), Tensor::scalar(int64_t(1) << 32)));
  CHECK(identical(value(6), Tensor::vector<int64_t>({kMost + 1})));
}

TEST_CASE("fold: a node of several outputs becomes several constants") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {2});
  Node* y = placeholder(graph, "y", DataType::kFloat, {5});
  Node* shapes = add(graph, "shapes", "ShapeN", {{x, 0}, {y, 0}});
  Node* after = add(graph, "after", "NoOp", {}, {}, {shapes});
  Program program = program_of(graph, {"shapes:1"}, {after->name()});
  CHECK(fold(program));
  CHECK(program.graph.find("shapes") == nullptr);
  CHECK(identical(must(program.fetches[0].node->attr<Tensor>("value")),
                  Tensor::vector<int32_t>({5})));
  CHECK(dump(program.graph, "after") == "after = NoOp(^shapes_1)");
}

TEST_CASE("fold: the shape of a Switch's output stays, as it may be dead") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {2});
  Node* p = placeholder(graph, "p", DataType::kBool, PartialShape::scalar());
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  add(graph, "shape", "Shape", {{branch, 1}});
  Program program = program_of(graph, {"shape"});
  CHECK(!fold(program));
  CHECK(dump(program.graph, "shape") == "shape = Shape(branch:1)");
}

TEST_CASE("fold: strings are folded until they are long") {
  Graph graph;
  Node* last = constant(graph, "s", Tensor::scalar(std::string(1024, 's')));
  for (int i = 0; i < 16; ++i)
    last =
        add(graph, fmt::format("s{}", i), "StringJoin", {{last, 0}, {last, 0}});
  Program program = program_of(graph, {last->name()});
  CHECK(make_all(program));
  // Of 8 MiB; the next one could be as much as a tensor may take.
  REQUIRE(count_op(program.graph, "Const") == 1);
  CHECK(count_op(program.graph, "StringJoin") == 3);
  const Node* joined = program.graph.find("s12_1");
  REQUIRE(joined != nullptr);
  CHECK(
      must(joined->attr<Tensor>("value")).scalar_value<std::string>().size() ==
      size_t(8) << 20);
}

TEST_CASE("fold: a tensor that may hold many long strings is not folded") {
  Graph graph;
  const auto fill = [&](const std::string& name, int count, size_t size) {
    Node* dims = constant(graph, name + "/dims", Tensor::vector({count}));
    Node* value = constant(graph, name + "/value",
                           Tensor::scalar(std::string(size, 'x')));
    add(graph, name, "Fill", {{dims, 0}, {value, 0}});
  };
  fill("many_short", 1000, 10);
  fill("few_long", 10, 1000);
  fill("many_long", 1000, 100'000);
  Program program = program_of(graph, {"many_short", "few_long", "many_long"});
  CHECK(make_all(program));
  CHECK(program.fetches[0].node->is_const());
  CHECK(program.fetches[1].node->is_const());
  CHECK(program.fetches[2].node->op() == "Fill");
}

TEST_CASE("fold: many short strings take no more than other elements may") {
  // Splits the text into its characters.
  class Splitter final : public Evaluator {
   public:
    Result<std::vector<Tensor>> evaluate(const Node&,
                                         std::span<const Tensor> inputs,
                                         size_t) const override {
      const auto count = int64_t(inputs[0].flat<std::string>()[0].size());
      const Tensor size = Tensor::vector<int64_t>({1, count});
      return std::vector<Tensor>{Tensor::make(DataType::kInt64, {count, 2}),
                                 Tensor::make(DataType::kString, {count}),
                                 size};
    }
  };
  Graph graph;
  Node* separator = constant(graph, "separator", Tensor::scalar(""));
  for (const auto& [name, size] : {std::pair{"few", 1000}, {"many", 2500}}) {
    const std::vector<std::string> text{std::string(size_t(size), 'x')};
    Node* from = constant(graph, fmt::format("{}/text", name),
                          Tensor::of<std::string>({1}, text));
    add(graph, name, "StringSplitV2", {{from, 0}, {separator, 0}});
  }
  Program program = program_of(graph, {"few:1", "many:1"});
  const Splitter splitter;
  CHECK(run_pass(fold_constants, program, {.evaluator = &splitter}));
  CHECK(program.fetches[0].node->is_const());
  CHECK(program.fetches[1].node->op() == "StringSplitV2");
}

TEST_CASE("fold: an attribute's text counts as often as the result has it") {
  Graph graph;
  Node* empty = constant(graph, "empty", Tensor::scalar(""));
  const std::vector<Endpoint> inputs(100, {empty, 0});
  add(graph, "short", "StringJoin", inputs, {{"separator", "-"}});
  add(graph, "long", "StringJoin", inputs,
      {{"separator", std::string(1 << 20, '-')}});
  Program program = program_of(graph, {"short", "long"});
  CHECK(make_all(program));
  CHECK(program.fetches[0].node->is_const());
  CHECK(program.fetches[1].node->op() == "StringJoin");
}

TEST_CASE("fold: the bytes of all constants are bounded, shared ones apart") {
  Graph graph;
  // Of 16 MiB, of which none is touched.
  Node* large =
      constant(graph, "large", Tensor::make(DataType::kFloat, {4 << 20}));
  std::vector<std::string> fetches;
  for (int i = 0; i < 20; ++i) {
    fetches.push_back(fmt::format("n{}", i));
    add(graph, fetches.back(), "Neg", {{large, 0}});
  }
  Program program = program_of(graph, fetches);
  CHECK(make_all(program));
  CHECK(count_op(program.graph, "Neg") == 4);

  class Sharer final : public Evaluator {
   public:
    Result<std::vector<Tensor>> evaluate(const Node&,
                                         std::span<const Tensor> inputs,
                                         size_t) const override {
      return std::vector<Tensor>{inputs[0]};
    }
  };
  program = program_of(graph, fetches);
  const Sharer sharer;
  CHECK(run_pass(fold_constants, program, {.evaluator = &sharer}));
  CHECK(count_op(program.graph, "Neg") == 0);
}

TEST_CASE("fold: a node that waits for many is folded if a constant does") {
  Graph graph;
  std::vector<Node*> awaited;
  for (int i = 0; i < 17; ++i)
    awaited.push_back(
        placeholder(graph, fmt::format("x{}", i), DataType::kInt32));
  Node* a = number(graph, "a", 1, awaited);
  Node* b = number(graph, "b", 2, {awaited[0]});
  add(graph, "c", "AddV2", {{a, 0}, {b, 0}});
  add(graph, "d", "AddV2", {{b, 0}, {b, 0}}, {}, awaited);
  Program program = program_of(graph, {"c", "d"});
  CHECK(fold(program));
  CHECK(dump(program.graph, "c_1") == "c_1 = Const(^a, ^x0)");
  CHECK(program.fetches[1].to_string() == "d:0");
}

TEST_CASE("fold: a constant has the constraints of the node it replaces") {
  Graph graph;
  Node* one = number(graph, "one", 1);
  const std::vector<std::string> classes = {"loc:@x"};
  Node* sum =
      add(graph, "sum", "AddV2", {{one, 0}, {one, 0}}, {{"_class", classes}});
  graph.set_device(sum, "/cpu:1");
  Node* x = placeholder(graph, "x", DataType::kFloat, {2, 3});
  Node* shapes =
      add(graph, "shapes", "ShapeN", {{x, 0}, {x, 0}}, {{"_class", classes}});
  Program program = program_of(graph, {"sum", "shapes:0", "shapes:1"});
  const Adder adder;
  CHECK(run_pass(fold_constants, program, {.evaluator = &adder}));
  for (const Endpoint& fetch : program.fetches) {
    CHECK(fetch.node->is_const());
    CHECK(must(fetch.node->attr<std::vector<std::string>>("_class")) ==
          classes);
  }
  CHECK(program.fetches[0].node->device() == "/cpu:1");
  CHECK(shapes->name() == "shapes");
}

TEST_CASE("fold: a node stays if its evaluation throws") {
  class Thrower final : public Evaluator {
   public:
    Result<std::vector<Tensor>> evaluate(const Node&, std::span<const Tensor>,
                                         size_t) const override {
      throw 3;
    }
  };
  Graph graph;
  Node* a = number(graph, "a", 1);
  add(graph, "b", "AddV2", {{a, 0}, {a, 0}});
  Program program = program_of(graph, {"b"});
  const Thrower thrower;
  CHECK(!run_pass(fold_constants, program, {.evaluator = &thrower}));
  CHECK(count_op(program.graph, "AddV2") == 1);
}

TEST_CASE("fold: a budget that has ended ends the folding after a kernel") {
  class Counter final : public Evaluator {
   public:
    Result<std::vector<Tensor>> evaluate(const Node&,
                                         std::span<const Tensor> inputs,
                                         size_t) const override {
      ++evaluated;
      return std::vector<Tensor>{inputs[0]};
    }
    mutable int evaluated = 0;
  };
  Graph graph;
  Node* last = number(graph, "a", 1);
  for (int i = 0; i < 9; ++i)
    last = add(graph, fmt::format("b{}", i), "AddV2", {{last, 0}, {last, 0}});
  Program program = program_of(graph, {"b8"});
  const Counter counter;
  Budget budget({.is_cancelled = [&] { return counter.evaluated == 2; }});
  CHECK(fold_constants(program, {.evaluator = &counter, .budget = &budget})
            .status()
            .code() == Code::kCancelled);
  CHECK(counter.evaluated == 2);
}

TEST_CASE("fold: a constant waits for a bounded number of nodes") {
  const auto is_folded = [](int of_a, int of_b, int shared) {
    Graph graph;
    const auto some = [&](const char* name, int count) {
      std::vector<Node*> nodes;
      for (int i = 0; i < count; ++i)
        nodes.push_back(
            placeholder(graph, fmt::format("{}{}", name, i), DataType::kInt32));
      return nodes;
    };
    std::vector<Node*> a = some("a", of_a), b = some("b", of_b);
    for (Node* node : some("s", shared)) {
      a.push_back(node);
      b.push_back(node);
    }
    Node* left = number(graph, "left", 1, a);
    Node* right = number(graph, "right", 2, b);
    add(graph, "sum", "AddV2", {{left, 0}, {right, 0}});
    Program program = program_of(graph, {"sum"});
    const bool changed = fold(program);
    if (changed)
      CHECK(program.fetches[0].node->control_inputs().size() ==
            size_t(of_a + of_b + shared));
    return changed;
  };
  CHECK(is_folded(8, 8, 0));
  CHECK_FALSE(is_folded(8, 9, 0));
  CHECK_FALSE(is_folded(16, 1, 0));
  CHECK(is_folded(0, 0, 16));
  CHECK(is_folded(1, 1, 14));
  CHECK_FALSE(is_folded(2, 1, 14));
}

TEST_CASE("fold: a result that is not a plain tensor is not folded") {
  Graph graph;
  Node* shape = number(graph, "shape", -1);
  Node* most = number(graph, "most", -1);
  add(graph, "list", "EmptyTensorList", {{shape, 0}, {most, 0}},
      {{"element_dtype", DataType::kInt32}});
  Program program = program_of(graph, {"list"});
  CHECK(!make_all(program));
}

TEST_CASE("fold: a list of equal elements is known where it is read") {
  Graph graph;
  const Lists lists{graph, DataType::kInt32};
  const auto shape = [&](const char* name) -> Endpoint {
    return {constant(graph, name, Tensor::vector<int32_t>({2, 3})), 0};
  };
  // As a loop and its gradient have it.
  Node* x = placeholder(graph, "x", DataType::kFloat, {-1});
  const Endpoint from_outside = shape("from_outside");
  const Endpoint first =
      lists.push("push_first", lists.empty("empty"), shape("first"));
  const Loop filled = loop(graph, "fill", {first}, [&](const Values& in) {
    Node* enter =
        add(graph, "enter", "Enter", {from_outside},
            {{"frame_name", std::string("fill")}, {"is_constant", true}});
    Node* same = add(graph, "same", "Identity", {{enter, 0}});
    return Values{lists.push("push", in[0], {same, 0})};
  });
  const Loop drained = loop(
      graph, "drain", {{filled.exits[0], 0}, {x, 0}}, [&](const Values& in) {
        Node* pop = lists.pop("pop", in[0]);
        Node* reshape = add(graph, "reshape", "Reshape", {in[1], {pop, 1}});
        Node* behind = add(graph, "behind", "Tanh", {{reshape, 0}});
        return Values{{pop, 0}, {behind, 0}};
      });
  Program program =
      program_of(graph, {drained.exits[0]->name(), drained.exits[1]->name()});
  must(infer_loop_shapes(program.graph));
  CHECK_FALSE(program.graph.find("behind")->output_shape(0).fully_known());
  CHECK(fold(program));
  CHECK(dump(program.graph, "pop_1") == "pop_1 = Const(^pop)");
  CHECK(identical(must(program.graph.find("pop_1")->attr<Tensor>("value")),
                  Tensor::vector<int32_t>({2, 3})));
  CHECK(dump(program.graph, "reshape") ==
        "reshape = Reshape(drain/switch1:1, pop_1)");
  CHECK(program.graph.find("behind")->output_shape(0) == PartialShape{2, 3});
  CHECK(dump(program.graph, "drain/next0") ==
        "drain/next0 = NextIteration(pop)");
}

TEST_CASE("fold: an element that is read by TensorListGetItem is known") {
  Graph graph;
  const Lists lists{graph, DataType::kInt32};
  const Endpoint list = lists.set(
      "set",
      lists.push("push", lists.empty("list"), {number(graph, "a", 3), 0}),
      {number(graph, "b", 3), 0});
  Node* get = lists.get("get", list);
  add(graph, "sum", "AddV2", {{get, 0}, {number(graph, "c", 4), 0}});
  Program program = program_of(graph, {"sum"});
  CHECK(fold(program));
  CHECK(value_of(program.graph, "sum_1") == 7);
  CHECK(dump(program.graph, "sum_1") == "sum_1 = Const(^get)");
}

TEST_CASE("fold: an element that is read becomes a constant only once") {
  Graph graph;
  const Lists lists{graph, DataType::kInt32};
  Node* pop = lists.pop("pop", pushed({Tensor::scalar(2)})(graph, lists));
  add(graph, "read", "Neg", {{pop, 1}});
  Program program = program_of(graph, {"read"});
  CHECK(fold(program));
  CHECK(dump(program.graph, "read") == "read = Neg(pop_1)");
  CHECK(!fold(program));
  CHECK(dump(program.graph, "read") == "read = Neg(pop_1)");
}

TEST_CASE("fold: a list of unequal, long or non-integer elements is unknown") {
  using Ints = std::initializer_list<int32_t>;
  const auto ints = [](Ints values) { return Tensor::vector<int32_t>(values); };
  const auto many = [](int64_t count) {
    return Tensor::of<int32_t>({count}, std::vector<int32_t>(size_t(count), 1));
  };
  CHECK(is_read_before(pushed({ints({2, 3})})));
  CHECK(is_read_before(pushed({ints({2, 3}), ints({2, 3}), ints({2, 3})})));
  CHECK(is_read_before(pushed({ints({})})));
  CHECK(is_read_before(pushed({Tensor::scalar(7), Tensor::scalar(7)})));
  CHECK(is_read_before(pushed({Tensor::vector<int64_t>({1L << 40})}),
                       DataType::kInt64));
  // They differ.
  CHECK_FALSE(is_read_before(pushed({ints({2, 3}), ints({2, 4})})));
  CHECK_FALSE(is_read_before(pushed({ints({2, 3}), ints({2})})));
  CHECK_FALSE(is_read_before(pushed({ints({2}), Tensor::scalar(2)})));
  CHECK_FALSE(is_read_before(pushed({ints({}), ints({2})})));
  // Of another type than the elements that are asked for, or not integers.
  CHECK_FALSE(is_read_before(pushed({Tensor::vector<int64_t>({2})})));
  CHECK_FALSE(
      is_read_before(pushed({ints({2}), Tensor::vector<int64_t>({2})})));
  CHECK_FALSE(is_read_before(pushed({Tensor::scalar(2.0f)}), DataType::kFloat));
  CHECK_FALSE(is_read_before(pushed({Tensor::scalar(true)}), DataType::kBool));
  // No shape of a tensor.
  CHECK_FALSE(is_read_before(
      pushed({Tensor::of<int32_t>({1, 1}, std::vector<int32_t>{2})})));
  CHECK(is_read_before(pushed({many(kMaxRank)})));
  CHECK_FALSE(is_read_before(pushed({many(kMaxRank + 1)})));
  // Nothing at all.
  CHECK_FALSE(is_read_before(pushed({})));
}

TEST_CASE("fold: a list with unknown elements is unknown") {
  const auto two = [](Graph& graph) -> Endpoint {
    return {number(graph, "two", 2), 0};
  };
  CHECK(is_read_before([&](Graph& graph, const Lists& lists) {
    return lists.push("push", lists.empty("list"), two(graph));
  }));
  // Zeros.
  CHECK_FALSE(is_read_before([&](Graph& graph, const Lists& lists) {
    return lists.set("set", lists.reserve("list"), two(graph));
  }));
  // The rows of a constant may differ.
  CHECK_FALSE(is_read_before([&](Graph& graph, const Lists& lists) {
    Node* rows = constant(graph, "rows", Tensor::vector<int32_t>({2, 2}));
    return lists.push("push", lists.from_tensor("list", {rows, 0}), two(graph));
  }));
  CHECK_FALSE(is_read_before([&](Graph& graph, const Lists& lists) {
    Node* open = placeholder(graph, "open", DataType::kInt32);
    return lists.push("later",
                      lists.push("push", lists.empty("list"), two(graph)),
                      {open, 0});
  }));
  CHECK_FALSE(is_read_before([&](Graph& graph, const Lists& lists) {
    Node* list = placeholder(graph, "list", DataType::kVariant);
    return lists.push("push", {list, 0}, two(graph));
  }));
  CHECK_FALSE(is_read_before([&](Graph& graph, const Lists& lists) {
    return lists.set("set", lists.empty("list"), two(graph), true);
  }));
}

TEST_CASE("fold: a stacked or gathered list is not taken for one element") {
  Graph graph;
  const Lists lists{graph, DataType::kInt32};
  const Endpoint list =
      lists.push("push", lists.empty("list"), {number(graph, "two", 2), 0});
  lists.stack("stack", list);
  lists.gather("gather", list,
               {constant(graph, "some", Tensor::vector<int32_t>({0})), 0});
  Program program = program_of(graph, {"stack", "gather"});
  CHECK(!fold(program));
}
