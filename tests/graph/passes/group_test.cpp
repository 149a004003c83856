#include <doctest/doctest.h>

#include <random>

#include "tests/graph/passes/group_graphs.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("groups: ops that feed each other become one node") {
  Elements g;
  Node* a = g.unary("a", g.x);
  Node* b = g.binary("b", "Mul", a, g.y);
  Node* c = g.binary("c", "Sub", b, a);
  g.unary("d", c, "Neg");
  g.unary("softmax", a, "Softmax");
  Program program = program_of(g.graph, {"d", "softmax", "b"});
  CHECK(run_group(program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "y = Placeholder()\n"
        "softmax = Softmax(d_1)\n"
        "d_1 = _FusedElementwise(x, y)\n");
  const Node* made = program.graph.find("d_1");
  CHECK(must(made->attr<Strings>("program")) ==
        Strings{"Tanh 0", "Mul 2 1", "Sub 3 2", "Neg 4"});
  CHECK(must(made->attr<Strings>("names")) == Strings{"a", "b", "c", "d"});
  CHECK(must(made->attr<Ints>("outputs")) == Ints{2, 3, 5});
  CHECK(must(made->attr<Ints>("joined")).empty());
  CHECK(must(made->attr<Ints>("columns")).empty());
  for (int i = 0; i < 3; ++i) CHECK(made->output_shape(i) == kSquare);
  CHECK(program.fetches[0].to_string() == "d_1:2");
  CHECK(program.fetches[2].to_string() == "d_1:1");
  CHECK(!run_group(program));
}

TEST_CASE("groups: a lone op is not a group, an inner result not an output") {
  Elements g;
  g.unary("a", g.x);
  g.unary("b", g.y);
  CHECK(groups(g.graph, {"a", "b"}).empty());
  Program program;
  {
    Elements h;
    Node* a = h.unary("a", h.x);
    h.binary("b", "Mul", a, a);
    program = program_of(h.graph, {"b"});
  }
  CHECK(run_group(program));
  CHECK(must(only_group(program)->attr<Ints>("outputs")) == Ints{2});
  CHECK(must(only_group(program)->attr<Strings>("program")) ==
        Strings{"Tanh 0", "Mul 1 1"});
}

TEST_CASE("Sums of two alike, and every floating type, are grouped") {
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                               DataType::kHalf, DataType::kBFloat16}) {
    Graph graph;
    Node* x = placeholder(graph, "x", dtype, {4, 5});
    Node* y = placeholder(graph, "y", dtype, {4, 5});
    Node* a = add(graph, "a", "AddN", {{x, 0}, {y, 0}});
    add(graph, "b", "TanhGrad", {{a, 0}, {y, 0}});
    Program program = program_of(graph, {"a", "b"});
    CHECK(run_group(program));
    CHECK(must(only_group(program)->attr<Strings>("program")) ==
          Strings{"AddV2 0 1", "TanhGrad 2 1"});
    CHECK(must(only_group(program)->attr<DataType>("T")) == dtype);
  }
}

TEST_CASE("groups: the gates of a cell on one tensor's columns are one node") {
  Graph graph;
  Node* whole = placeholder(graph, "whole", DataType::kFloat, {-1, 512});
  Node* state = placeholder(graph, "state", DataType::kFloat, {-1, 128});
  Node* axis = number(graph, "axis", 1);
  Node* gates = add(graph, "gates", "Split", {{axis, 0}, {whole, 0}},
                    {{"num_split", int64_t{4}}});
  const auto gate = [&](const char* name, const char* op, int port) {
    return add(graph, name, op, {{gates, port}});
  };
  const auto binary = [&](const char* name, const char* op, Node* a, Node* b) {
    return add(graph, name, op, {{a, 0}, {b, 0}});
  };
  Node* input = gate("input", "Sigmoid", 0);
  Node* fresh = gate("fresh", "Tanh", 1);
  Node* forget = gate("forget", "Sigmoid", 2);
  Node* output = gate("output", "Sigmoid", 3);
  Node* next = binary("next", "AddV2", binary("kept", "Mul", forget, state),
                      binary("added", "Mul", input, fresh));
  binary("h", "Mul", output, add(graph, "c", "Tanh", {{next, 0}}));
  // A gradient needs each gate.
  Program program = program_of(
      graph, {"h", "next", "c", "input", "fresh", "forget", "output"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(run_group(program));
  CHECK(groups_of(program) == "added c forget fresh h input kept next output");
  const Node* made = only_group(program);
  CHECK(made->num_inputs() == 5);  // four columns, and the state
  CHECK(made->num_outputs() == 7);
  CHECK(program.graph.find("gates") == nullptr);
  std::vector<std::pair<int64_t, int64_t>> seen;
  const auto columns = must(made->attr<Ints>("columns"));
  for (size_t i = 0; i < columns.size(); i += 2) {
    seen.emplace_back(columns[i], columns[i + 1]);
    CHECK(made->inputs()[i / 2].node->name() ==
          (columns[i + 1] == 0 ? "state" : "whole"));
  }
  std::ranges::sort(seen);
  CHECK(seen == std::vector<std::pair<int64_t, int64_t>>{
                    {0, 0}, {0, 128}, {128, 128}, {256, 128}, {384, 128}});
  for (int i = 0; i < 7; ++i)
    CHECK(made->output_shape(i) == PartialShape({-1, 128}));
}

TEST_CASE("groups: gates that only share their tensor are one node as well") {
  Graph graph;
  Node* whole = placeholder(graph, "whole", DataType::kFloat, {-1, 64});
  Node* axis = number(graph, "axis", -1);
  Node* gates = add(graph, "gates", "Split", {{axis, 0}, {whole, 0}},
                    {{"num_split", int64_t{2}}});
  add(graph, "a", "Sigmoid", {{gates, 0}});
  add(graph, "b", "Tanh", {{gates, 1}});
  Program program = program_of(graph, {"a", "b"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(run_group(program));
  CHECK(groups_of(program) == "a b");
}

namespace {

// c = a + b and their ConcatV2 in `order`.
struct Joined : Elements {
  explicit Joined(const std::vector<size_t>& order = {0, 1},
                  Node* along = nullptr) {
    const std::vector<Node*> all = {a, b, y};
    std::vector<Node*> values;
    for (const size_t i : order) values.push_back(all[i]);
    join = concat("join", values, along == nullptr ? axis : along);
  }
  // Whether the ConcatV2 is left out. Nothing is computed twice.
  bool is_left_out(const Strings& fetches, const Strings& targets = {}) const {
    Program program = program_of(graph, fetches, targets);
    run_group(program);
    for (const char* name : {"first", "a", "b"})
      CHECK(program.graph.find(name) == nullptr);
    return program.graph.find("join") == nullptr;
  }

  Node* first = unary("first", x, "Square");
  Node* a = binary("a", "Mul", first, y);
  Node* b = binary("b", "Sub", first, y);
  Node* join = nullptr;
};

}  // namespace

TEST_CASE("groups: results go to the place where a ConcatV2 would put them") {
  for (const int along : {1, -1}) {
    Joined g({0, 1}, nullptr);
    g.graph.set_attr(g.axis, "value", Tensor::scalar(along));
    Program program = program_of(g.graph, {"join", "first"});
    CHECK(run_group(program));
    CHECK(program.graph.size() == 3);
    const Node* made = only_group(program);
    CHECK(made->num_outputs() == 2);
    const auto joined = must(made->attr<Ints>("joined"));
    CHECK(joined == Ints{0, 1, 1});
    const auto outputs = must(made->attr<Ints>("outputs"));
    const auto lines = must(made->attr<Strings>("program"));
    REQUIRE(outputs.size() == 3);
    CHECK(lines[size_t(outputs[1] - 2)].starts_with("Mul"));
    CHECK(lines[size_t(outputs[2] - 2)].starts_with("Sub"));
    CHECK(made->output_shape(0) == kSquare);
    CHECK(made->output_shape(1) == PartialShape({32, 64}));
    CHECK(program.fetches[0].to_string() == made->name() + ":1");
    CHECK(program.fetches[1].to_string() == made->name() + ":0");
  }
  Joined turned({1, 0});
  Program program = program_of(turned.graph, {"join"});
  CHECK(run_group(program));
  const Node* made = only_group(program);
  const auto lines = must(made->attr<Strings>("program"));
  const auto outputs = must(made->attr<Ints>("outputs"));
  CHECK(must(made->attr<Ints>("joined")) == Ints{0, 0});
  CHECK(lines[size_t(outputs[0] - 2)].starts_with("Sub"));
}

TEST_CASE("groups: a ConcatV2 stays if other nodes need it, too") {
  CHECK(Joined().is_left_out({"join"}));
  CHECK(!Joined().is_left_out({"join", "a"}));  // which is fetched
  {
    Joined g;  // an input that is read besides
    g.unary("softmax", g.b, "Softmax");
    CHECK(!g.is_left_out({"join", "softmax"}));
  }
  CHECK(!Joined({0, 1, 2}).is_left_out({"join"}));  // y is from elsewhere
  CHECK(!Joined({0, 0, 1}).is_left_out({"join"}));  // a is there twice
  {
    Joined g;  // rows
    g.graph.set_attr(g.axis, "value", Tensor::scalar(0));
    CHECK(!g.is_left_out({"join"}));
  }
  {
    Joined g;  // an axis that only the run knows
    Node* fed =
        placeholder(g.graph, "fed", DataType::kInt32, PartialShape::scalar());
    must(g.graph.set_input(g.join, 2, {fed, 0}));
    CHECK(!g.is_left_out({"join"}));
  }
  CHECK(!Joined().is_left_out({"join"}, {"join"}));  // it is a target
  {
    Joined g;  // something waits for it
    g.unary("late", g.y, "Softmax", {g.join});
    CHECK(!g.is_left_out({"join", "late"}));
  }
  {
    Joined g;  // it waits
    g.concat("other", {g.a, g.b}, g.axis);
    g.graph.set_control_inputs(g.join, {{g.y}});
    CHECK(!g.is_left_out({"join"}));
  }
  {
    Joined g;  // another device
    g.graph.set_device(g.join, "/device:CPU:1");
    CHECK(!g.is_left_out({"join"}));
  }
}

TEST_CASE("groups: a ConcatV2 stays if it waits for what a group may not") {
  {
    Joined g;  // for a result of it
    Node* late = g.unary("late", g.first, "Softmax");
    g.graph.set_control_inputs(g.axis, {{late}});
    CHECK(!g.is_left_out({"join", "late"}));
  }
  {
    Joined g;  // for a branch, where the group is in none
    Node* p = placeholder(g.graph, "p", DataType::kBool);
    Node* branch = add(g.graph, "branch", "Switch", {{p, 0}, {p, 0}});
    Node* pivot = add(g.graph, "pivot", "Identity", {{branch, 1}});
    g.graph.set_control_inputs(g.axis, {{pivot}});
    CHECK(!g.is_left_out({"join", "first"}));
  }
  {
    Joined g;  // for what comes by a way that no edge shows
    Node* queue = add(g.graph, "queue", "FIFOQueueV2", {},
                      {{"component_types", std::vector{DataType::kFloat}}});
    Node* put =
        add(g.graph, "put", "QueueEnqueueV2", {{queue, 0}, {g.first, 0}},
            {{"Tcomponents", std::vector{DataType::kFloat}}});
    Node* got = add(g.graph, "got", "QueueDequeueV2", {{queue, 0}},
                    {{"component_types", std::vector{DataType::kFloat}}});
    g.graph.set_control_inputs(g.axis, {{got}});
    Program program = program_of(g.graph, {"join"}, {put->name()});
    run_group(program, {.may_wait = [](const Node& node) {
                return node.op() == "QueueDequeueV2" ||
                       node.op() == "QueueEnqueueV2";
              }});
    CHECK(program.graph.find("join") != nullptr);
  }
}

TEST_CASE("groups: scalars, small and integer tensors stay apart") {
  const auto pair = [](DataType dtype, const PartialShape& shape) {
    Graph graph;
    Node* x = placeholder(graph, "x", dtype, shape);
    Node* a = add(graph, "a", "Neg", {{x, 0}});
    add(graph, "b", "Abs", {{a, 0}});
    return groups(graph, {"a", "b"});
  };
  const std::string both = "a b";
  CHECK(pair(DataType::kFloat, {8}) == both);
  CHECK(pair(DataType::kFloat, {-1}) == both);
  CHECK(pair(DataType::kFloat, {-1, 5}) == both);
  CHECK(pair(DataType::kFloat, {7}).empty());
  CHECK(pair(DataType::kFloat, PartialShape::scalar()).empty());
  CHECK(pair(DataType::kFloat, PartialShape()).empty());
  CHECK(pair(DataType::kInt32, kSquare).empty());
  Elements g;  // a row that is added to each
  Node* row = placeholder(g.graph, "row", DataType::kFloat, {32});
  Node* a = g.unary("a", row);
  g.binary("b", "AddV2", a, g.x);
  CHECK(groups(g.graph, {"a", "b"}).empty());
  // A kernel that is not element-wise, and one that changes the type.
  Elements h;
  Node* c = h.unary("c", h.x);
  h.unary("d", h.unary("soft", c, "Softmax"));
  Node* e = h.unary("e", h.y);
  Node* cast =
      add(h.graph, "cast", "Cast", {{e, 0}}, {{"DstT", DataType::kDouble}});
  h.unary("f", cast);
  CHECK(groups(h.graph, {"c", "d", "e", "f"}).empty());
}

TEST_CASE("groups: a group has nodes of one device and class only") {
  Elements g;
  Node* a = g.unary("a", g.x);
  Node* b = g.unary("b", a);
  Node* c = g.unary("c", b);
  Node* d = g.unary("d", c);
  for (Node* node : {c, d}) g.graph.set_device(node, "/device:CPU:1");
  Program program = program_of(g.graph, {"a", "b", "c", "d"});
  CHECK(run_group(program));
  CHECK(groups_of(program) == "a b, c d");
  for (const Node* node : program.graph.nodes())
    if (node->op() == "_FusedElementwise")
      CHECK(node->device() == (must(node->attr<Strings>("names"))[0] == "a"
                                   ? ""
                                   : "/device:CPU:1"));
  Elements h;
  Node* e = h.unary("e", h.x);
  Node* f = h.unary("f", e);
  h.graph.set_attr(f, "_class", Strings{"loc:@x"});
  CHECK(groups(h.graph, {"e", "f"}).empty());
}

TEST_CASE("groups: targets and nodes with control outputs are in none") {
  Elements g;
  Node* a = g.unary("a", g.x);
  Node* b = g.unary("b", a);
  Node* c = g.unary("c", b);
  Node* d = g.unary("d", c);
  Node* e = g.unary("e", d);
  g.unary("f", e);
  g.unary("late", g.y, "Softmax", {b});
  CHECK(groups(g.graph, {"a", "f", "late"}, {"d"}) == "e f");
}

TEST_CASE("groups: a group waits for what its ops waited for") {
  Elements g;
  Node* p = placeholder(g.graph, "p", DataType::kFloat, PartialShape::scalar());
  Node* q = placeholder(g.graph, "q", DataType::kFloat, PartialShape::scalar());
  Node* a = g.unary("a", g.x, "Tanh", {p, q});
  g.unary("b", a, "Neg", {q});
  Program program = program_of(g.graph, {"a", "b"});
  CHECK(run_group(program));
  const std::string line = dump(program.graph, only_group(program)->name());
  CHECK(contains(line, "_FusedElementwise(x, ^"));
  CHECK(contains(line, "^p"));
  CHECK(contains(line, "^q"));
}

TEST_CASE("groups: a group has no more ops and inputs than a kernel takes") {
  Elements g;
  Node* last = g.x;
  Strings fetches;
  for (int i = 0; i < 100; ++i) {
    last = g.unary(fmt::format("n{}", i), last, "Neg");
    fetches.push_back(last->name());
  }
  Program program = program_of(g.graph, fetches);
  CHECK(run_group(program));
  size_t ops = 0;
  for (const Node* node : program.graph.nodes()) {
    if (node->op() != "_FusedElementwise") continue;
    const size_t lines = must(node->attr<Strings>("program")).size();
    CHECK(lines <= 48);
    ops += lines;
  }
  CHECK(ops == 100);

  Graph wide;
  last = placeholder(wide, "x", DataType::kFloat, kSquare);
  for (int i = 0; i < 100; ++i) {
    Node* more =
        placeholder(wide, fmt::format("x{}", i), DataType::kFloat, kSquare);
    last = add(wide, fmt::format("n{}", i), "AddV2", {{last, 0}, {more, 0}});
  }
  program = program_of(wide, {last->name()});
  CHECK(run_group(program));
  for (const Node* node : program.graph.nodes())
    CHECK(node->num_inputs() <= 64);
}

TEST_CASE("groups: those of random graphs are valid, and lose nothing") {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return size_t(random() % n); };
    Elements g;
    std::vector<Node*> nodes = {g.x, g.y};
    Strings fetches, ops;
    for (int i = 0; i < 40; ++i) {
      const auto pick = [&] {
        const size_t back = below(2) == 0 ? below(nodes.size()) : below(2);
        return nodes[nodes.size() - 1 - back];
      };
      const std::string name = fmt::format("n{:02}", i);
      std::vector<Node*> control;
      if (below(12) == 0) control.push_back(pick());
      switch (below(8)) {
        case 0:
          nodes.push_back(g.matmul(name, pick()));
          break;
        case 1: {
          Node* whole = g.concat(name + "_all", {pick(), pick()}, g.axis);
          Node* parts =
              add(g.graph, name + "_parts", "Split", {{g.axis, 0}, {whole, 0}},
                  {{"num_split", int64_t{2}}});
          nodes.push_back(add(g.graph, name, "Mul", {{parts, 0}, {parts, 1}}));
          ops.push_back(name);
          break;
        }
        case 2:
          nodes.push_back(g.binary(name, "Mul", pick(), pick()));
          ops.push_back(name);
          break;
        case 3:
          nodes.push_back(g.binary(name, "AddV2", pick(), pick()));
          ops.push_back(name);
          break;
        default:
          nodes.push_back(g.unary(name, pick(), "Tanh", control));
          ops.push_back(name);
      }
      fetches.push_back(name);
    }
    Program program = program_of(g.graph, fetches);
    if (below(2) == 0) run_pass(fuse_elementwise, program);
    run_group(program);
    Strings found;
    for (const Node* node : program.graph.nodes()) {
      if (node->op() == "_FusedElementwise")
        for (const std::string& name : must(node->attr<Strings>("names")))
          found.push_back(name);
      else if (std::ranges::find(ops, node->name()) != ops.end())
        found.push_back(node->name());
    }
    std::ranges::sort(found);
    CHECK(found == ops);
  }
}
