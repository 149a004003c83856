#include <doctest/doctest.h>

#include "graph/op_registry.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("identities: a chain goes, from fetches and control edges too") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* a = add(graph, "a", "Identity", {{x, 0}});
  Node* b = add(graph, "b", "StopGradient", {{a, 0}});
  Node* c = add(graph, "c", "Neg", {{b, 0}}, {}, {b, a});
  Program program = program_of(graph, {"b", "c"}, {"a"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "c = Neg(x, ^x)\n");
  CHECK(program.fetches[0].to_string() == "x:0");
  CHECK(program.fetches[1].node->name() == c->name());
  CHECK(program.targets[0]->name() == "x");
  CHECK(!run_pass(remove_identities, program));
}

TEST_CASE("an op that forwards its input is an identity, if not stateful") {
  const auto forwarding = [](const char* name) {
    return OpDefBuilder(name)
        .input("x: T")
        .output("y: T")
        .attr("T: type")
        .forwards();
  };
  OpRegistry::global().add(forwarding("TestForward"));
  OpRegistry::global().add(forwarding("TestStatefulForward").stateful());
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* a = add(graph, "a", "TestForward", {{x, 0}});
  Node* b = add(graph, "b", "TestStatefulForward", {{a, 0}});
  add(graph, "c", "PlaceholderWithDefault", {{b, 0}},
      {{"shape", PartialShape()}});
  Program program = program_of(graph, {"c"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "b = TestStatefulForward(x)\n"
        "c = PlaceholderWithDefault(b)\n");
}

TEST_CASE("an identity that says which side of a Switch lives stays for that") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = placeholder(graph, "p", DataType::kBool, PartialShape::scalar());
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  Node* pivot = add(graph, "pivot", "Identity", {{branch, 1}});
  Node* one = number(graph, "one", 1, {pivot});
  add(graph, "sum", "AddV2", {{pivot, 0}, {one, 0}});
  Program program = program_of(graph, {"sum"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph, "sum") == "sum = AddV2(branch:1, one)");
  CHECK(dump(program.graph, "one") == "one = Const(^pivot)");
  CHECK(dump(program.graph, "pivot") == "pivot = Identity(branch:1)");
}

TEST_CASE("an identity that waits for something stays") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = placeholder(graph, "y", DataType::kInt32);
  Node* a = add(graph, "a", "Identity", {{x, 0}}, {}, {y});
  add(graph, "b", "Identity", {{a, 0}});
  Program program = program_of(graph, {"b"});
  CHECK(run_pass(remove_identities, program));
  CHECK(program.fetches[0].to_string() == "a:0");
  CHECK(dump(program.graph, "a") == "a = Identity(x, ^y)");
}

TEST_CASE("identities: a Merge does not come to read an Enter") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* in = add(graph, "in", "Enter", {{x, 0}}, {{"frame_name", "f"}});
  Node* same = add(graph, "same", "Identity", {{in, 0}});
  Node* merge = add(graph, "merge", "Merge", {{same, 0}, {in, 0}});
  add(graph, "out", "Exit", {{merge, 0}});
  Program program = program_of(graph, {"out"});
  CHECK(!run_pass(remove_identities, program));
  CHECK(dump(program.graph, "merge") == "merge = Merge(same, in)");
}

TEST_CASE("identities: reshapes and casts that change nothing go") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {2, 3});
  Node* shape = constant(graph, "shape", Tensor::vector<int32_t>({2, -1}));
  Node* order = constant(graph, "order", Tensor::vector<int32_t>({0, 1}));
  Node* a = add(graph, "a", "Reshape", {{x, 0}, {shape, 0}});
  Node* b = add(graph, "b", "Cast", {{a, 0}}, {{"DstT", DataType::kFloat}});
  Node* c = add(graph, "c", "Transpose", {{b, 0}, {order, 0}});
  Node* d = add(graph, "d", "Squeeze", {{c, 0}});
  add(graph, "e", "AddN", {{d, 0}});
  Program program = program_of(graph, {"e"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph) == "x = Placeholder()\n");
  CHECK(program.fetches[0].to_string() == "x:0");
}

TEST_CASE("identities: a reshape to a shape that comes later waits for it") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {2, 3});
  Node* y = placeholder(graph, "y", DataType::kFloat, {2, 3});
  Node* shape = add(graph, "shape", "Shape", {{y, 0}});
  add(graph, "a", "Reshape", {{x, 0}, {shape, 0}});
  Program program = program_of(graph, {"a"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph, "a_1") == "a_1 = Identity(x, ^shape)");
}

TEST_CASE("identities: a node that may change its input stays") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {-1, 3});
  Node* shape = constant(graph, "shape", Tensor::vector<int32_t>({2, 3}));
  Node* order = constant(graph, "order", Tensor::vector<int32_t>({1, 0}));
  add(graph, "a", "Reshape", {{x, 0}, {shape, 0}});
  add(graph, "b", "Cast", {{x, 0}}, {{"DstT", DataType::kDouble}});
  add(graph, "c", "Transpose", {{x, 0}, {order, 0}});
  add(graph, "d", "AddN", {{x, 0}, {x, 0}});
  Program program = program_of(graph, {"a", "b", "c", "d"});
  CHECK(!run_pass(remove_identities, program));
}

TEST_CASE("identities: a lost constant's control inputs are not multiplied") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32, {3});
  std::vector<Node*> awaited;
  for (int i = 0; i < 17; ++i)
    awaited.push_back(
        placeholder(graph, fmt::format("y{}", i), DataType::kInt32));
  const AttrMap value = {{"value", Tensor::vector<int32_t>({3})},
                         {"dtype", DataType::kInt32}};
  Node* much = add(graph, "much", "Const", {}, value, awaited);
  Node* little = add(graph, "little", "Const", {}, value,
                     {awaited.begin(), awaited.begin() + 2});
  add(graph, "a", "Reshape", {{x, 0}, {much, 0}});
  add(graph, "b", "Reshape", {{x, 0}, {little, 0}});
  Program program = program_of(graph, {"a", "b"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph, "a_1") == "a_1 = Identity(x, ^much)");
  CHECK(dump(program.graph, "b_1") == "b_1 = Identity(x, ^y0, ^y1)");
}

TEST_CASE("identities: a wait for a constant passes on to its control inputs") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* y = placeholder(graph, "y", DataType::kFloat);
  // As a frozen graph has it: the result waits until all weights are read.
  Node* weights = constant(graph, "weights", Tensor::scalar(2.0f));
  Node* read = add(graph, "read", "Identity", {{weights, 0}});
  Node* all = add(graph, "all", "NoOp", {}, {}, {read});
  Node* product = add(graph, "product", "Mul", {{x, 0}, {read, 0}});
  add(graph, "result", "Identity", {{product, 0}}, {}, {all});
  // What a constant waits for is not lost, nor is an effect.
  Node* late = number(graph, "late", 1, {y});
  Node* later = add(graph, "later", "NoOp", {}, {}, {late});
  add(graph, "waits", "Neg", {{x, 0}}, {}, {later, weights});
  Node* both = add(graph, "both", "NoOp", {}, {}, {x, y});
  add(graph, "waits_for_both", "Neg", {{x, 0}}, {}, {both});
  Program program =
      program_of(graph, {"result", "waits", "waits_for_both"}, {"later"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "y = Placeholder()\n"
        "weights = Const()\n"
        "product = Mul(x, weights)\n"
        "later = NoOp(^y)\n"
        "waits = Neg(x, ^y)\n"
        "both = NoOp(^x, ^y)\n"
        "waits_for_both = Neg(x, ^both)\n");
  CHECK(program.fetches[0].to_string() == "product:0");
  CHECK(program.targets[0]->name() == "later");
  CHECK(!run_pass(remove_identities, program));
}

TEST_CASE("identities: a node that brings a tensor to another device stays") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {2, 3});
  Node* shape = constant(graph, "shape", Tensor::vector<int32_t>({2, 3}));
  const auto on = [&](Node* node, const char* device) {
    graph.set_device(node, device);
    return node;
  };
  const AttrMap classes = {{"_class", std::vector<std::string>{"loc:@c"}}};
  Node* a = on(add(graph, "a", "Identity", {{x, 0}}), "/cpu:1");
  Node* b = on(add(graph, "b", "Identity", {{a, 0}}), "/cpu:1");
  Node* c = add(graph, "c", "Identity", {{b, 0}}, classes);
  Node* d = add(graph, "d", "Identity", {{c, 0}}, classes);
  Node* e = on(add(graph, "e", "Reshape", {{d, 0}, {shape, 0}}), "/cpu:0");
  Node* f = add(graph, "f", "Identity", {{e, 0}});
  add(graph, "g", "Identity", {{f, 0}}, {{"_class", EmptyList()}});
  Program program = program_of(graph, {"g"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "shape = Const()\n"
        "a = Identity(x)\n"
        "c = Identity(a)\n"
        "e = Reshape(c, shape)\n");
  CHECK(program.fetches[0].to_string() == "e:0");
}

TEST_CASE("an IdentityN goes if its other inputs come with the one") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* y = placeholder(graph, "y", DataType::kFloat);
  Node* one = constant(graph, "one", Tensor::scalar(1.0f));
  Node* a = add(graph, "a", "Sigmoid", {{x, 0}});
  Node* b = add(graph, "b", "Mul", {{a, 0}, {x, 0}});
  // As Keras writes swish: the result, what it is made of, a constant.
  Node* three = add(graph, "three", "IdentityN", {{b, 0}, {x, 0}, {one, 0}});
  add(graph, "r0", "Neg", {{three, 0}});
  add(graph, "r1", "Neg", {{three, 1}});  // live where b is, not where x is
  // One of y, which has nothing to do with b.
  Node* two = add(graph, "two", "IdentityN", {{b, 0}, {y, 0}});
  add(graph, "r2", "Neg", {{two, 0}});
  Node* waits = add(graph, "waits", "IdentityN", {{b, 0}, {x, 0}}, {}, {y});
  add(graph, "r3", "Neg", {{waits, 0}});
  Node* far = add(graph, "far", "IdentityN", {{b, 0}, {x, 0}});
  graph.set_device(far, "/cpu:1");
  add(graph, "r4", "Neg", {{far, 0}});
  Program program = program_of(graph, {"r0", "r1", "r2", "r3", "r4"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph, "r0") == "r0 = Neg(b)");
  CHECK(dump(program.graph, "r1") == "r1 = Neg(three:1)");
  CHECK(dump(program.graph, "r2") == "r2 = Neg(two)");
  CHECK(dump(program.graph, "r3") == "r3 = Neg(waits)");
  CHECK(dump(program.graph, "r4") == "r4 = Neg(far)");
}

TEST_CASE("an IdentityN of both sides of a Switch stays") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* p = placeholder(graph, "p", DataType::kBool, PartialShape::scalar());
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  Node* both = add(graph, "both", "IdentityN", {{branch, 0}, {branch, 1}});
  add(graph, "r", "Neg", {{both, 0}});
  Program program = program_of(graph, {"r"});
  CHECK(!run_pass(remove_identities, program));
  CHECK(dump(program.graph, "r") == "r = Neg(both)");
}

TEST_CASE("identities: a reduction along no axis goes") {
  for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min", "All", "Any"})
    for (const bool keeps : {false, true}) {
      CAPTURE(op);
      CAPTURE(keeps);
      const std::string_view name = op;
      const bool is_bool = name == "All" || name == "Any";
      Graph graph;
      Node* x =
          placeholder(graph, "x", is_bool ? DataType::kBool : DataType::kFloat);
      Node* y = placeholder(graph, "y", DataType::kInt32);
      Node* late = placeholder(graph, "late", DataType::kInt32, {0});
      const auto reduced = [&](const char* result, Node* axes) {
        add(graph, result, op, {{x, 0}, {axes, 0}}, {{"keep_dims", keeps}});
      };
      const Tensor none = Tensor::make(DataType::kInt32, {0});
      reduced("none", constant(graph, "no_axes", none));
      reduced("none_wide", constant(graph, "no_axes_wide",
                                    Tensor::make(DataType::kInt64, {0})));
      reduced("waits",
              add(graph, "no_axes_late", "Const", {},
                  {{"value", none}, {"dtype", DataType::kInt32}}, {y}));
      reduced("one", constant(graph, "axes", Tensor::vector<int32_t>({0})));
      reduced("scalar", constant(graph, "axis", Tensor::scalar(0)));
      reduced("open", late);
      Program program = program_of(
          graph, {"none", "none_wide", "waits", "one", "scalar", "open"});
      CHECK(run_pass(remove_identities, program));
      CHECK(program.fetches[0].to_string() == "x:0");
      CHECK(program.fetches[1].to_string() == "x:0");
      CHECK(dump(program.graph, "waits_1") == "waits_1 = Identity(x, ^y)");
      for (const size_t stays : {3, 4, 5})
        CHECK(program.fetches[stays].node->op() == op);
    }
}

TEST_CASE("identities: a norm along no axis is not an identity") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* axes = constant(graph, "axes", Tensor::make(DataType::kInt32, {0}));
  add(graph, "norm", "EuclideanNorm", {{x, 0}, {axes, 0}});
  Program program = program_of(graph, {"norm"});
  CHECK(!run_pass(remove_identities, program));
}

TEST_CASE("identities: readers take over the control inputs of one that goes") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* y = placeholder(graph, "y", DataType::kFloat);
  Node* z = placeholder(graph, "z", DataType::kFloat);
  Node* a = add(graph, "a", "Tanh", {{x, 0}});
  Node* waits = add(graph, "waits", "Identity", {{a, 0}}, {}, {y});
  Node* plain = add(graph, "plain", "Identity", {{waits, 0}});
  add(graph, "b", "Neg", {{waits, 0}});
  add(graph, "c", "AddV2", {{waits, 0}, {plain, 0}}, {}, {z});
  add(graph, "d", "AddV2", {{z, 0}, {waits, 0}}, {}, {y, z});
  Program program = program_of(graph, {"b", "c", "d"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "y = Placeholder()\n"
        "z = Placeholder()\n"
        "a = Tanh(x)\n"
        "b = Neg(a, ^y)\n"
        "c = AddV2(a, a, ^z, ^y)\n"
        "d = AddV2(z, a, ^y, ^z)\n");
  CHECK(!run_pass(remove_identities, program));
}

TEST_CASE("identities: a chain's control inputs are kept from end to start") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* y = placeholder(graph, "y", DataType::kFloat);
  Node* z = placeholder(graph, "z", DataType::kFloat);
  Node* w = placeholder(graph, "w", DataType::kFloat);
  Node* first = add(graph, "first", "Identity", {{x, 0}}, {}, {y});
  Node* second = add(graph, "second", "Identity", {{first, 0}}, {}, {z});
  add(graph, "b", "Neg", {{second, 0}}, {}, {w});
  // One after the other, with ops between.
  Node* tanh = add(graph, "tanh", "Tanh", {{first, 0}});
  Node* third = add(graph, "third", "Identity", {{tanh, 0}}, {}, {z});
  add(graph, "c", "Neg", {{third, 0}});
  Program program = program_of(graph, {"b", "c"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph, "tanh") == "tanh = Tanh(x, ^y)");
  CHECK(dump(program.graph, "c") == "c = Neg(tanh, ^z)");
  while (run_pass(remove_identities, program)) continue;
  CHECK(dump(program.graph, "b") == "b = Neg(x, ^w, ^z, ^y)");
  CHECK(program.graph.find("first") == nullptr);
}

TEST_CASE("identities: a reader takes over a bounded number of nodes") {
  const auto goes = [](int of_identity, int of_reader, int shared) {
    Graph graph;
    const auto some = [&](const char* name, int count) {
      std::vector<Node*> nodes;
      for (int i = 0; i < count; ++i)
        nodes.push_back(
            placeholder(graph, fmt::format("{}{}", name, i), DataType::kInt32));
      return nodes;
    };
    std::vector<Node*> a = some("a", of_identity), b = some("b", of_reader);
    for (Node* node : some("s", shared)) {
      a.push_back(node);
      b.push_back(node);
    }
    Node* x = placeholder(graph, "x", DataType::kFloat);
    Node* waits = add(graph, "waits", "Identity", {{x, 0}}, {}, a);
    add(graph, "neg", "Neg", {{waits, 0}}, {}, b);
    Program program = program_of(graph, {"neg"});
    const bool changed = run_pass(remove_identities, program);
    const Node* neg = program.graph.find("neg");
    CHECK(neg->inputs()[0].node->name() == (changed ? "x" : "waits"));
    CHECK(neg->control_inputs().size() ==
          size_t(of_reader + shared + (changed ? of_identity : 0)));
    return changed;
  };
  CHECK(goes(16, 0, 0));
  CHECK_FALSE(goes(17, 0, 0));
  CHECK(goes(8, 8, 0));
  CHECK_FALSE(goes(8, 9, 0));
  CHECK(goes(1, 1, 14));
  CHECK_FALSE(goes(2, 1, 14));
}

TEST_CASE("identities: one of two stays if their control inputs are too many") {
  Graph graph;
  std::vector<Node*> awaited;
  for (int i = 0; i < 20; ++i)
    awaited.push_back(
        placeholder(graph, fmt::format("y{}", i), DataType::kInt32));
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* few = add(graph, "few", "Identity", {{x, 0}}, {},
                  {awaited.begin(), awaited.begin() + 10});
  Node* more = add(graph, "more", "Identity", {{x, 0}}, {},
                   {awaited.begin() + 10, awaited.end()});
  add(graph, "sum", "AddV2", {{few, 0}, {more, 0}});
  Program program = program_of(graph, {"sum"});
  CHECK(run_pass(remove_identities, program));
  const Node* sum = program.graph.find("sum");
  CHECK(sum->inputs()[0].node->name() == "x");
  CHECK(sum->inputs()[1].node->name() == "more");
  CHECK(sum->control_inputs().size() == 10);
}

TEST_CASE("an identity that waits on another device is read there") {
  Graph graph;
  const AttrMap classes = {{"_class", std::vector<std::string>{"loc:@c"}}};
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* y = placeholder(graph, "y", DataType::kFloat);
  Node* a = add(graph, "a", "Tanh", {{x, 0}});
  Node* far = add(graph, "far", "Identity", {{a, 0}}, {}, {y});
  graph.set_device(far, "/cpu:1");
  add(graph, "b", "Neg", {{far, 0}});
  Node* beside = add(graph, "beside", "Identity", {{a, 0}}, classes, {y});
  add(graph, "c", "Neg", {{beside, 0}});
  // Where its source is, too.
  Node* there = add(graph, "there", "Tanh", {{x, 0}});
  graph.set_device(there, "/cpu:1");
  Node* same = add(graph, "same", "Identity", {{there, 0}}, {}, {y});
  graph.set_device(same, "/cpu:1");
  add(graph, "d", "Neg", {{same, 0}});
  Program program = program_of(graph, {"b", "c", "d"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph, "b") == "b = Neg(far)");
  CHECK(dump(program.graph, "c") == "c = Neg(beside)");
  CHECK(dump(program.graph, "d") == "d = Neg(there, ^y)");
}

TEST_CASE("control flow and effects keep reading an identity that waits") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* y = placeholder(graph, "y", DataType::kFloat);
  Node* p = placeholder(graph, "p", DataType::kBool, PartialShape::scalar());
  Node* waits = add(graph, "waits", "Identity", {{x, 0}}, {}, {y});
  Node* branch = add(graph, "branch", "Switch", {{waits, 0}, {p, 0}});
  Node* merge = add(graph, "merge", "Merge", {{waits, 0}, {branch, 1}});
  Node* enter = add(graph, "enter", "Enter", {{waits, 0}},
                    {{"frame_name", "f"}, {"is_constant", true}});
  Node* exit = add(graph, "exit", "Exit", {{enter, 0}});
  add(graph, "print", "Print", {{waits, 0}, {waits, 0}});
  Program program =
      program_of(graph, {branch->name(), merge->name(), exit->name(), "print"});
  CHECK(!run_pass(remove_identities, program));
  CHECK(dump(program.graph, "branch") == "branch = Switch(waits, p)");
  CHECK(dump(program.graph, "merge") == "merge = Merge(waits, branch:1)");
  CHECK(dump(program.graph, "enter") == "enter = Enter*(waits)");
  CHECK(dump(program.graph, "print") == "print = Print(waits, waits)");
}

TEST_CASE("an identity that waits and is fetched stays beside who read it") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* y = placeholder(graph, "y", DataType::kFloat);
  Node* waits = add(graph, "waits", "Identity", {{x, 0}}, {}, {y});
  add(graph, "neg", "Neg", {{waits, 0}}, {}, {waits});
  Program program = program_of(graph, {"waits", "neg"});
  CHECK(run_pass(remove_identities, program));
  CHECK(dump(program.graph, "waits") == "waits = Identity(x, ^y)");
  CHECK(dump(program.graph, "neg") == "neg = Neg(x, ^waits, ^y)");
}
