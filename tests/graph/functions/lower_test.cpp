#include "graph/functions/lower.h"

#include "graph/functions/inlined_size.h"
#include "tests/graph/functions/lowered.h"

namespace tagflow::graph {

using namespace testing;

TEST_CASE("a function called by its name becomes its nodes") {
  Lowered l;
  l.define(doubled());
  l.expect_lowered({placeholder("x"), body_node("y", "doubled", {"x"})}, "y");
  CHECK(l.node("y/plus").inputs()[0].node->name() == "y/n");
  CHECK(l.program.fetches[0].node->name() == "y/result_0");
  CHECK(l.program.bodies.empty());
}

TEST_CASE("nodes below a call's name are not in its way") {
  Lowered l;
  l.define(doubled());
  l.expect_lowered(
      {placeholder("x"), placeholder("y/n"), body_node("y", "doubled", {"x"})},
      "y");
  CHECK(l.node("y_1/plus").inputs()[0].node->name() == "y_1/n");
}

TEST_CASE("a function's attributes are those of its call") {
  Lowered l;
  l.define(function(
      "sum_of", {"values: N * T"}, {"r: T"},
      {body_node("sum", "AddN", {"values"},
                 {{"N", AttrPlaceholder{"N"}}, {"T", AttrPlaceholder{"T"}}})},
      {{"r", "sum:sum:0"}}, {"N: int >= 1", "T: type"}));
  l.expect_lowered(
      {placeholder("a", DataType::kFloat), placeholder("b", DataType::kFloat),
       body_node("y", "sum_of", {"a", "b"})},
      "y");
  CHECK(l.node("y/sum").num_inputs() == 2);
  CHECK(l.node("y/sum").output_dtypes()[0] == DataType::kFloat);
  CHECK(l.node("y/sum").inputs()[1].node->name() == "y/values_1");
}

TEST_CASE("a body's constants wait for the arguments of its call") {
  Lowered l;
  l.define(function("three", {"n: int32"}, {"r: int32"},
                    {body_const("value", Tensor::scalar(3))},
                    {{"r", "value:output:0"}}));
  l.expect_lowered({placeholder("x"), body_node("y", "three", {"x"})}, "y");
  const Node& value = l.node("y/value");
  REQUIRE(value.control_inputs().size() == 1);
  CHECK(value.control_inputs()[0]->name() == "y/pivot");
  CHECK(value.control_inputs()[0]->control_inputs()[0]->name() == "y/n");
}

TEST_CASE("If becomes Switch and Merge, its branches hang on pivots") {
  Lowered l;
  l.define(doubled());
  l.define(function("three", {"n: int32"}, {"r: int32"},
                    {body_const("value", Tensor::scalar(3))},
                    {{"r", "value:output:0"}}));
  l.expect_lowered({placeholder("p", DataType::kBool), placeholder("x"),
                    body_node("y", "If", {"p", "x"},
                              int_ports(1, 1,
                                        {{"Tcond", DataType::kBool},
                                         {"then_branch", call_of("doubled")},
                                         {"else_branch", call_of("three")}}))},
                   "y");
  CHECK(l.count("Switch") == 2);
  CHECK(l.node("y/then/n").inputs()[0].to_string() == "y/switch_0:1");
  CHECK(l.node("y/else/value").control_inputs()[0]->name() == "y/else_pivot");
  const Node& merge = l.node("y/merge_0");
  CHECK(merge.inputs()[0].node->name() == "y/else/value");
  CHECK(merge.inputs()[1].node->name() == "y/then/plus");
  CHECK(l.program.fetches[0] == Endpoint{l.program.graph.find("y/merge_0"), 0});
}

TEST_CASE("a condition that is not a bool is true if it is not zero") {
  Lowered l;
  l.define(doubled());
  l.expect_lowered(
      {placeholder("x"),
       body_node("y", "StatelessIf", {"x", "x"},
                 int_ports(1, 1,
                           {{"Tcond", kInt},
                            {"then_branch", call_of("doubled")},
                            {"else_branch", call_of("doubled")}}))},
      "y");
  CHECK(l.count("ToBool") == 1);
}

TEST_CASE("a While's variable that stays unchanged becomes a loop constant") {
  Lowered l;
  l.define(function("less", {"i: int32", "n: int32"}, {"b: bool"},
                    {body_int("less", "Less", "i", "n")}, {{"b", "less:z:0"}}));
  l.define(function("step", {"i: int32", "n: int32"},
                    {"i2: int32", "n2: int32"},
                    {body_int("plus", "Add", "i", "i"),
                     body_node("same", "Identity", {"n"}, {{"T", kInt}})},
                    {{"i2", "plus:z:0"}, {"n2", "same:output:0"}}));
  l.expect_lowered(
      {placeholder("x"), placeholder("limit"),
       body_node("y", "While", {"x", "limit"}, loop_attrs(2, "less", "step"))},
      "y");
  CHECK(l.count("Merge") == 1);
  CHECK(l.node("y/enter_constant_1").attr<bool>("is_constant").value());
  CHECK(l.program.fetches[0].node->name() == "y/exit_0");
}

TEST_CASE("a While's constant results wait for the body") {
  // Else it would start iterations for ever.
  Lowered l;
  l.define(function("less", {"i: int32", "n: int32"}, {"b: bool"},
                    {body_int("less", "Less", "i", "n")}, {{"b", "less:z:0"}}));
  l.define(function("jump", {"i: int32", "n: int32"},
                    {"i2: int32", "n2: int32"},
                    {body_int("twice", "Add", "n", "n")},
                    {{"i2", "twice:z:0"}, {"n2", "n"}}));
  l.define(function("swap", {"i: int32", "n: int32"},
                    {"i2: int32", "n2: int32"}, {},
                    {{"i2", "n"}, {"n2", "n"}}));
  l.expect_lowered(
      {placeholder("x"), placeholder("limit"),
       body_node("y", "While", {"x", "limit"}, loop_attrs(2, "less", "jump")),
       body_node("z", "While", {"y", "limit"}, loop_attrs(2, "less", "swap"))},
      "z");
  const Node& twice = l.node("y/body/twice");
  REQUIRE(twice.control_inputs().size() == 1);
  CHECK(twice.control_inputs()[0]->name() == "y/body_pivot");
  const Node& next = l.node("z/next_0");
  REQUIRE(next.inputs()[0].node->control_inputs().size() == 1);
  CHECK(next.inputs()[0].node->control_inputs()[0]->name() == "z/body_pivot");
}

TEST_CASE("a While's variable is followed through many Identities") {
  // b becomes a by the end of a long chain, c remains c by its own.
  Lowered l;
  std::vector<NodeDef> nodes;
  const auto chain = [&](const std::string& name, const std::string& first) {
    std::string last = first;
    for (int i = 0; i < 100; ++i) {
      nodes.push_back(body_node(name + std::to_string(i), "Identity", {last},
                                {{"T", kInt}}));
      last = nodes.back().name + ":output:0";
    }
  };
  chain("from_a", "a");
  chain("from_c", "c");
  l.define(function("less", {"a: int32", "b: int32", "c: int32"}, {"r: bool"},
                    {body_int("less", "Less", "a", "b")}, {{"r", "less:z:0"}}));
  l.define(function("step", {"a: int32", "b: int32", "c: int32"},
                    {"a2: int32", "b2: int32", "c2: int32"}, nodes,
                    {{"a2", "from_a50:output:0"},
                     {"b2", "from_a99:output:0"},
                     {"c2", "from_c99:output:0"}}));
  l.expect_lowered({placeholder("x"), body_node("y", "While", {"x", "x", "x"},
                                                loop_attrs(3, "less", "step"))},
                   "y");
  CHECK(l.program.graph.find("y/enter_constant_0") != nullptr);
  CHECK(l.program.graph.find("y/enter_constant_1") == nullptr);
  CHECK(l.program.graph.find("y/enter_constant_2") != nullptr);
}

TEST_CASE("a While whose body has a circle of Identities is refused") {
  Lowered l;
  l.define(function("never", {"i: int32"}, {"b: bool"},
                    {body_const("no", Tensor::scalar(false))},
                    {{"b", "no:output:0"}}));
  l.define(function("circle", {"i: int32"}, {"r: int32"},
                    {body_node("a", "Identity", {"b:output:0"}, {{"T", kInt}}),
                     body_node("b", "Identity", {"a:output:0"}, {{"T", kInt}})},
                    {{"r", "a:output:0"}}));
  const Status status = l.lower(
      {placeholder("x"),
       body_node("y", "While", {"x"}, loop_attrs(1, "never", "circle"))},
      "y");
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(
      status.message() ==
      "[While] node \"y\": [graph] the cycle y/body/a -> y/body/b -> y/body/a "
      "does not go through a NextIteration into a Merge");
}

TEST_CASE("a While that changes nothing still has something go round") {
  Lowered l;
  l.define(function("never", {"i: int32"}, {"b: bool"},
                    {body_const("no", Tensor::scalar(false))},
                    {{"b", "no:output:0"}}));
  l.define(function("same", {"i: int32"}, {"r: int32"}, {}, {{"r", "i"}}));
  l.expect_lowered(
      {placeholder("x"),
       body_node("y", "While", {"x"}, loop_attrs(1, "never", "same"))},
      "y");
  CHECK(l.count("NextIteration") == 1);
  CHECK(l.program.fetches[0].node->name() == "y/constant_0");
}

TEST_CASE("a call whose arguments may be dead waits for all of them") {
  Lowered l;
  l.define(function("first", {"a: int32", "b: int32"}, {"r: int32"},
                    {body_int("plus", "Add", "a", "a")}, {{"r", "plus:z:0"}}));
  l.expect_lowered({placeholder("p", DataType::kBool), placeholder("x"),
                    body_node("s", "Switch", {"x", "p"}),
                    body_node("y", "first", {"x", "s:1"}),
                    body_node("z", "first", {"x", "x"}),
                    body_node("both", "Add", {"y", "z"})},
                   "both");
  const Node& arg = l.node("y/a");
  REQUIRE(arg.control_inputs().size() == 1);
  CHECK(arg.control_inputs()[0]->name() == "y/gate");
  CHECK(arg.control_inputs()[0]->control_inputs().size() == 2);
  CHECK(l.node("z/a").control_inputs().empty());
}

TEST_CASE("a recursive function is expanded once, then called") {
  Lowered l;
  l.define(function("again", {"n: int32"}, {"r: int32"},
                    {body_node("call", "again", {"n"})}, {{"r", "call:r:0"}}));
  l.expect_lowered({placeholder("x"), body_node("y", "again", {"x"}),
                    body_node("z", "again", {"y"})},
                   "z");
  CHECK(l.count("_Call") == 2);
  REQUIRE(l.program.bodies.size() == 1);
  CHECK(l.program.bodies[0]->name == "again");
  CHECK(l.program.bodies[0]->feeds.size() == 1);
  CHECK(l.program.bodies[0]->fetches.size() == 1);
}

TEST_CASE("a recursion with other attributes has a body of its own") {
  Lowered l;
  l.define(function("cycle", {"n: int32"}, {"r: int32"},
                    {body_node("call", "cycle", {"n"},
                               {{"kind", AttrPlaceholder{"other"}},
                                {"other", AttrPlaceholder{"kind"}}})},
                    {{"r", "call:r:0"}}, {"kind: string", "other: string"}));
  l.expect_lowered(
      {placeholder("x"),
       body_node("y", "cycle", {"x"}, {{"kind", "a"}, {"other", "b"}})},
      "y");
  CHECK(l.program.bodies.size() == 2);
}

TEST_CASE("a function that does not fit its node is refused") {
  const auto call = [](const std::string& name, AttrMap more = {}) {
    more["f"] = call_of(name);
    return body_node("y", "PartitionedCall", {"x"},
                     int_ports(1, 1, std::move(more)));
  };
  {
    Lowered l;
    l.expect_refused({placeholder("x"), call("nobody")}, Code::kNotFound,
                     "[PartitionedCall] node \"y\": no function \"nobody\" in "
                     "the library");
  }
  {
    Lowered l;
    l.define(function("two", {"a: int32", "b: int32"}, {"r: int32"}, {},
                      {{"r", "a"}}));
    l.expect_refused({placeholder("x"), call("two")}, Code::kInvalidArgument,
                     "[PartitionedCall] node \"y\": function \"two\" has 2 "
                     "arguments, the node 1");
  }
  {
    Lowered l;
    l.define(function("real", {"a: int32"}, {"r: float"}, {}, {{"r", "a"}}));
    l.expect_refused({placeholder("x"), call("real")}, Code::kInvalidArgument,
                     "[PartitionedCall] node \"y\": result 0 of function "
                     "\"real\" is float, the node's int32");
  }
  {
    Lowered l;
    l.define(
        function("open", {"a: T"}, {"r: T"}, {}, {{"r", "a"}}, {"T: type"}));
    l.expect_refused({placeholder("x"), call("open")}, Code::kInvalidArgument,
                     "[PartitionedCall] node \"y\": function \"open\" needs an "
                     "attribute \"T\"");
  }
}

TEST_CASE("a body that contradicts itself is refused") {
  const auto refuse = [](FunctionDef body, Code code,
                         const std::string& message) {
    Lowered l;
    l.define(std::move(body));
    l.expect_refused({placeholder("x"), body_node("y", "f", {"x"})}, code,
                     "[f] node \"y\": " + message);
  };
  refuse(function("f", {"a: int32"}, {"r: int32"}, {}, {}),
         Code::kInvalidArgument,
         "function \"f\": nothing gives its result \"r\"");
  refuse(function("f", {"a: int32"}, {"r: int32"}, {}, {{"r", "b:z:0"}}),
         Code::kInvalidArgument,
         "function \"f\": no node or argument \"b\" for \"b:z:0\"");
  refuse(function("f", {"a: int32"}, {"r: int32"},
                  {body_int("b", "Add", "a", "c")}, {{"r", "b:z:0"}}),
         Code::kInvalidArgument,
         "function \"f\": [Add] node \"b\": no node or argument \"c\" for "
         "\"c\"");
  refuse(function("f", {"a: int32"}, {"r: int32"},
                  {body_int("b", "Add", "a", "a")}, {{"r", "b:sum:0"}}),
         Code::kInvalidArgument,
         "function \"f\": node \"b\": Add has no output \"sum\"");
  refuse(function("f", {"a: int32"}, {"r: int32"},
                  {body_int("b", "Add", "a", "a")}, {{"r", "b:z:1"}}),
         Code::kInvalidArgument,
         "function \"f\": \"b:z:1\" is out of range, there are 1");
  refuse(function(
             "f", {"a: int32"}, {"r: int32"},
             {body_node("b", "Add", {"a", "a"}, {{"T", AttrPlaceholder{"T"}}})},
             {{"r", "b:z:0"}}),
         Code::kInvalidArgument,
         "function \"f\": [Add] node \"b\": no attribute \"T\" for \"$T\"");
  refuse(function("f", {"a: int32"}, {"r: int32"},
                  {body_int("b", "Nonsense", "a", "a")}, {{"r", "b:z:0"}}),
         Code::kUnimplemented,
         "function \"f\": [Nonsense] node \"b\": [ops] unknown op "
         "\"Nonsense\"");
}

TEST_CASE("a body's references to lists and control edges are checked") {
  const auto sum = [](std::map<std::string, std::string> ret) {
    return function("f", {"values: N * int32"}, {"r: int32"},
                    {body_node("sum", "AddN", {"values"},
                               {{"N", AttrPlaceholder{"N"}}, {"T", kInt}})},
                    std::move(ret), {"N: int"});
  };
  const auto refuse = [](FunctionDef body, int64_t count,
                         const std::string& message) {
    Lowered l;
    l.define(std::move(body));
    l.expect_refused(
        {placeholder("x"),
         body_node("y", "PartitionedCall", {"x", "x"},
                   int_ports(2, 1, {{"f", call_of("f", {{"N", count}})}}))},
        Code::kInvalidArgument,
        "[PartitionedCall] node \"y\": function \"f\": " + message);
  };
  refuse(sum({{"r", "values:2"}}), 2,
         "\"values:2\" is out of range, there are 2");
  refuse(sum({{"r", "values"}}), 2,
         "\"values\" is 2 tensor(s), result \"r\" is 1");
  // What calls name by an attribute is checked by nobody else.
  refuse(sum({{"r", "sum:sum:0"}}), -1, "\"values\" stands for -1 tensors");
  refuse(sum({{"r", "sum:sum:0"}}), int64_t(1) << 40,
         "\"values\" stands for 1099511627776 tensors");

  FunctionDef waits = sum({{"r", "sum:sum:0"}});
  waits.nodes[0].inputs.push_back("^nobody");
  refuse(waits, 2, "[AddN] node \"sum\": no node or argument \"nobody\"");
  FunctionDef ends = sum({{"r", "sum:sum:0"}});
  ends.control_ret = {{"end", "nobody"}};
  refuse(ends, 2, "no node \"nobody\" for its control output \"end\"");
}

TEST_CASE("a function may read one of a list of arguments, and wait for all") {
  Lowered l;
  l.define(function("second", {"values: N * int32"}, {"r: int32"},
                    {body_node("r", "Identity", {"values:1"}, {{"T", kInt}}),
                     body_node("after", "NoOp", {"^values", "^r"})},
                    {{"r", "r:output:0"}}, {"N: int"}));
  l.expect_lowered({placeholder("a"), placeholder("b"),
                    body_node("y", "second", {"a", "b"}, {{"N", 2}})},
                   "y");
  CHECK(l.node("y/r").inputs()[0].node->name() == "y/values_1");
  CHECK(l.node("y/after").control_inputs().size() == 3);
}

TEST_CASE("colocation with nodes of the body follows them, other stays") {
  Lowered l;
  const std::vector<std::string> classes = {"loc:@a", "loc:@x", "kind"};
  l.define(function("f", {"n: int32"}, {"r: int32"},
                    {body_int("a", "Add", "n", "n"),
                     body_node("b", "Identity", {"a:z:0"},
                               {{"T", kInt}, {"_class", classes}})},
                    {{"r", "b:output:0"}}));
  l.expect_lowered({placeholder("x"), body_node("y", "f", {"x"})}, "y");
  CHECK(l.node("y/b").attr<std::vector<std::string>>("_class").value() ==
        std::vector<std::string>{"loc:@y/a", "loc:@x", "kind"});
}

TEST_CASE("attributes go on to the functions that a body names in a list") {
  Lowered l;
  l.define(function(
      "f", {"i: int32", "x: T"}, {"r: T"},
      {body_node("c", "Case", {"i", "x"},
                 {{"Tin", std::vector<DataType>{kInt}},
                  {"Tout", std::vector<DataType>{kInt}},
                  {"branches", std::vector<FunctionRef>{call_of(
                                   "same", {{"T", AttrPlaceholder{"T"}}})}}})},
      {{"r", "c:output:0"}}, {"T: type"}));
  l.define(function("same", {"x: T"}, {"r: T"}, {}, {{"r", "x"}}, {"T: type"}));
  l.expect_lowered({placeholder("i"), body_node("y", "f", {"i", "i"})}, "y");
  CHECK(l.node("y/c/branch_0/x").output_dtypes()[0] == kInt);
}

TEST_CASE("stateful nodes in a body's own loop run, and are waited for") {
  Lowered l;
  const AttrMap frame = {{"T", kInt}, {"frame_name", "f"}};
  const AttrMap type = {{"T", kInt}};
  l.define(function(
      "loop", {"n: int32"}, {"r: int32"},
      {body_node("enter", "Enter", {"n"}, frame),
       body_node("merge", "Merge", {"enter:output:0", "next:output:0"},
                 {{"T", kInt}, {"N", 2}}),
       body_int("less", "Less", "merge:output:0", "merge:output:0"),
       body_node("cond", "LoopCond", {"less:z:0"}),
       body_node("switch", "Switch", {"merge:output:0", "cond:output:0"}, type),
       body_node("print", "Print",
                 {"switch:output_true:0", "switch:output_true:0"},
                 {{"T", kInt}, {"U", std::vector<DataType>{kInt}}}),
       body_node("next", "NextIteration", {"print:output:0"}, type),
       body_node("exit", "Exit", {"switch:output_false:0"}, type)},
      {{"r", "n"}}));
  l.expect_lowered({placeholder("x"), body_node("y", "loop", {"x"})}, "y");
  CHECK(l.node("y/enter").attr<std::string>("frame_name").value() == "y/f");
  std::vector<std::string> targets;
  for (const Node* target : l.program.targets)
    targets.push_back(target->name());
  CHECK(targets == std::vector<std::string>{"y/done", "y/print"});
  REQUIRE(l.node("y/effects").control_inputs().size() == 1);
  CHECK(l.node("y/effects").control_inputs()[0]->name() == "y/exit");
}

TEST_CASE("a body of Enters that go in a circle is refused") {
  Lowered l;
  const AttrMap frame = {{"T", kInt}, {"frame_name", "f"}};
  l.define(function("circle", {"n: int32"}, {"r: int32"},
                    {body_node("a", "Enter", {"b:output:0"}, frame),
                     body_node("b", "Enter", {"a:output:0"}, frame)},
                    {{"r", "n"}}));
  const Status status =
      l.lower({placeholder("x"), body_node("y", "circle", {"x"})}, "y");
  CHECK(status.code() == Code::kInvalidArgument);
  INFO(status.to_string());
  CHECK(status.message().find("y/a") != std::string::npos);
}

TEST_CASE("a condition has one result") {
  Lowered l;
  l.define(function("both", {"i: int32"}, {"a: int32", "b: int32"}, {},
                    {{"a", "i"}, {"b", "i"}}));
  l.define(function("same", {"i: int32"}, {"r: int32"}, {}, {{"r", "i"}}));
  l.expect_refused(
      {placeholder("x"),
       body_node("y", "While", {"x"}, loop_attrs(1, "both", "same"))},
      Code::kInvalidArgument,
      "[While] node \"y\": function \"both\" has 2 results, a condition one");
}

TEST_CASE("functions that unfold without bound are refused") {
  // Each calls the one below twice.
  Lowered l;
  Limits limits;
  limits.max_nodes = 1000;
  l.define(doubled());
  std::string below = "doubled";
  for (int i = 0; i < 30; ++i) {
    const std::string name = "twice_" + std::to_string(i);
    l.define(function(
        name, {"n: int32"}, {"r: int32"},
        {body_node("a", below, {"n"}), body_node("b", below, {"a:r:0"})},
        {{"r", "b:r:0"}}));
    below = name;
  }
  const Status status =
      l.lower({placeholder("x"), body_node("y", below, {"x"})}, "y", limits);
  // `doubled` is two nodes, one of them its argument; each of the others has
  // three more than twice that below.
  CHECK(status.to_string() ==
        fmt::format("ResourceExhausted: [function] with its functions expanded "
                    "the graph has more than 1000 nodes, the limit: twice_29 "
                    "\"y\", which calls \"twice_29\", becomes {}",
                    5 * (int64_t(1) << 30) - 3));
  // They are counted, not made.
  CHECK(l.program.graph.size() == 2);
}

TEST_CASE("what functions become is counted through conditionals and loops") {
  Lowered l;
  l.define(doubled());
  l.define(function(
      "big", {"n: int32"}, {"r: int32"},
      {body_node("a", "doubled", {"n"}), body_node("b", "doubled", {"a:r:0"})},
      {{"r", "b:r:0"}}));
  l.define(function("less", {"n: int32"}, {"r: bool"},
                    {body_const("nine", Tensor::scalar(9)),
                     body_int("less", "Less", "n", "nine:output:0")},
                    {{"r", "less:z:0"}}));
  const auto becomes = [&](const NodeDef& node) {
    Program program;
    program.graph.library() = l.library;
    const Status added = program.graph.extend(std::vector<NodeDef>{
        placeholder("p", DataType::kBool), placeholder("x"), node});
    REQUIRE_MESSAGE(added.ok(), added.to_string());
    size_t nodes = 0;
    const Status status = lower_functions(program, {.max_nodes = 3}, &nodes);
    CHECK(status.code() == Code::kResourceExhausted);
    return nodes - program.graph.size();
  };
  CHECK(becomes(body_node("y", "big", {"x"})) == 3 + 2 * 2);
  CHECK(becomes(body_node("y", "If", {"p", "x"},
                          int_ports(1, 1,
                                    {{"Tcond", DataType::kBool},
                                     {"then_branch", call_of("big")},
                                     {"else_branch", call_of("doubled")}}))) ==
        7 + 2);
  CHECK(becomes(body_node("y", "While", {"x"},
                          {{"T", std::vector<DataType>{kInt}},
                           {"cond", call_of("less")},
                           {"body", call_of("big")}})) == 3 + 7);
  // A call that keeps its frame is one node.
  Program program;
  program.graph.library() = l.library;
  REQUIRE(
      program.graph
          .extend(std::vector<NodeDef>{
              placeholder("x"), body_node("y", "PartitionedCall", {"x"},
                                          int_ports(1, 1,
                                                    {{"f", call_of("big")},
                                                     {"_own_frame", true}}))})
          .ok());
  CHECK(check_inlined_size(program.graph, {.max_nodes = 2}, nullptr).ok());
}

TEST_CASE("functions are counted however deep they are") {
  FunctionLibrary library;
  REQUIRE(library.add(doubled()).ok());
  std::string below = "doubled";
  constexpr int kDeep = 20'000;
  for (int i = 0; i < kDeep; ++i) {
    const std::string name = "level_" + std::to_string(i);
    REQUIRE(library
                .add(function(name, {"n: int32"}, {"r: int32"},
                              {body_node("a", below, {"n"})}, {{"r", "a:r:0"}}))
                .ok());
    below = name;
  }
  CHECK(InlinedSize(library).of(below, {}) == 2 * (kDeep + 1));
}

TEST_CASE("a recursion adds nothing to what is counted of functions") {
  Lowered l;
  Limits limits;
  limits.max_nodes = 1000;
  // Each calls both, so the expansion would not end.
  for (const char* name : {"ping", "pong"})
    l.define(function(
        name, {"n: int32"}, {"r: int32"},
        {body_node("a", "ping", {"n"}), body_node("b", "pong", {"a:r:0"})},
        {{"r", "b:r:0"}}));
  const Status status =
      l.lower({placeholder("x"), body_node("y", "ping", {"x"})}, "y", limits);
  CHECK_MESSAGE(status.ok(), status.to_string());
}

TEST_CASE("functions inside functions have a greatest depth") {
  Lowered l;
  Limits limits;
  limits.max_function_depth = 5;
  l.define(doubled());
  std::string below = "doubled";
  for (int i = 0; i < 10; ++i) {
    const std::string name = "level_" + std::to_string(i);
    l.define(function(name, {"n: int32"}, {"r: int32"},
                      {body_node("a", below, {"n"})}, {{"r", "a:r:0"}}));
    below = name;
  }
  const Status status =
      l.lower({placeholder("x"), body_node("y", below, {"x"})}, "y", limits);
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK(status.message().find("functions nest deeper than 5, at \"level_4\"") !=
        std::string::npos);
}

TEST_CASE("stateful nodes of a body run though nothing reads them") {
  Lowered l;
  l.define(
      function("noisy", {"n: int32"}, {"r: int32"},
               {body_node("print", "Print", {"n", "n"},
                          {{"T", kInt}, {"U", std::vector<DataType>{kInt}}})},
               {{"r", "n"}}));
  l.expect_lowered({placeholder("x"), body_node("y", "noisy", {"x"})}, "y");
  REQUIRE(l.program.targets.size() == 1);
  CHECK(l.program.targets[0]->name() == "y/done");
  const Node& effects = l.node("y/effects");
  CHECK(std::ranges::count(l.program.targets[0]->control_inputs(), &effects) ==
        1);
  CHECK(effects.is_control_trigger());
  CHECK(effects.control_inputs()[0]->name() == "y/print");
}

}  // namespace tagflow::graph
