// Bodies of calls: when calls share one, and what each of them needs.
#include "tests/graph/functions/lowered.h"

namespace tagflow::graph {

using namespace testing;

TEST_CASE("recursions that are given other functions have other bodies") {
  // What they are given differs in the attributes of a function, or behind
  // what a message shows of a list.
  const auto define = [](Lowered& l) {
    l.define(function(
        "use", {"n: int32"}, {"r: int32"},
        {body_node("call", "PartitionedCall", {"n"},
                   int_ports(1, 1, {{"f", AttrPlaceholder{"f"}}})),
         body_node(
             "again", "use", {"call:output:0"},
             {{"f", AttrPlaceholder{"f"}}, {"list", AttrPlaceholder{"list"}}})},
        {{"r", "again:r:0"}}, {"f: func", "list: list(int)"}));
    l.define(
        function("plus", {"n: int32"}, {"r: int32"},
                 {body_node("value", "Const", {},
                            {{"value", AttrPlaceholder{"v"}}, {"dtype", kInt}}),
                  body_int("sum", "Add", "n", "value:output:0")},
                 {{"r", "sum:z:0"}}, {"v: tensor"}));
  };
  std::vector<int64_t> list(20, 7);
  std::vector<int64_t> other_list = list;
  other_list.back() = 8;
  const auto used = [](const std::string& name, int32_t v,
                       const std::vector<int64_t>& values) {
    return body_node(
        name, "use", {"x"},
        {{"f", call_of("plus", {{"v", Tensor::scalar(v)}})}, {"list", values}});
  };
  const auto bodies = [&](const NodeDef& a, const NodeDef& b) {
    Lowered l;
    define(l);
    l.expect_lowered({placeholder("x"), a, b, body_int("z", "Add", "a", "b")},
                     "z");
    return l.program.bodies.size();
  };
  CHECK(bodies(used("a", 1, list), used("b", 1, list)) == 1);
  CHECK(bodies(used("a", 1, list), used("b", 2, list)) == 2);
  CHECK(bodies(used("a", 1, list), used("b", 1, other_list)) == 2);
}

TEST_CASE("a recursion makes no new body for attributes of the call alone") {
  Lowered l;
  l.define(function("again", {"n: int32"}, {"r: int32"},
                    {body_node("call", "again", {"n"}, {{"_note", "inside"}})},
                    {{"r", "call:r:0"}}));
  l.expect_lowered({placeholder("x"),
                    body_node("y", "again", {"x"}, {{"_note", "outside"}})},
                   "y");
  CHECK(l.program.bodies.size() == 1);
}

TEST_CASE("a recursion that is given ever new functions is refused") {
  const auto refuse = [](const FunctionRef& next, const Limits& limits,
                         const std::string& message) {
    Lowered l;
    l.define(function("f", {"n: int32"}, {"r: int32"},
                      {body_node("again", "f", {"n"}, {{"g", next}})},
                      {{"r", "again:r:0"}}, {"g: func"}));
    const Status status = l.lower(
        {placeholder("x"), body_node("y", "f", {"x"}, {{"g", call_of("h")}})},
        "y", limits);
    CHECK(status.code() == Code::kResourceExhausted);
    CHECK(status.message() == message);
  };
  refuse(call_of("h", {{"h", AttrPlaceholder{"g"}}}), {},
         "[f] node \"f/again\": function \"f\": functions nest deeper than 16 "
         "in its attributes");
  AttrMap many;
  for (int i = 0; i < 10; ++i)
    many["h" + std::to_string(i)] = AttrPlaceholder{"g"};
  refuse(call_of("h", many), {},
         "[f] node \"f/again\": function \"f\": its attributes, with those of "
         "functions in them, have more than 4096 values");
}

TEST_CASE("a body's results are of the types that its function says") {
  const DataType type = DataType::kDouble;
  const auto half = [] { return body_const("half", Tensor::scalar(0.5f)); };
  const std::string wrong =
      "result 0 of function \"f\" is double, its body gives float";
  const auto refuse = [&](std::vector<NodeDef> body, const std::string& result,
                          const NodeDef& node, const std::string& message) {
    Lowered l;
    l.define(function("f", {"n: int32"}, {"r: double"}, std::move(body),
                      {{"r", result}}));
    l.define(function("never", {"n: double"}, {"b: bool"},
                      {body_const("no", Tensor::scalar(false))},
                      {{"b", "no:output:0"}}));
    l.define(function("loop", {"x: double"}, {"r: double"}, {half()},
                      {{"r", "half:output:0"}}));
    l.define(function("test", {"x: double"}, {"b: bool"}, {half()},
                      {{"b", "half:output:0"}}));
    l.define(function("count", {"i: int32", "x: double"}, {"r: double"},
                      {half()}, {{"r", "half:output:0"}}));
    l.expect_refused({placeholder("x"), placeholder("d", type),
                      placeholder("p", DataType::kBool), node},
                     Code::kInvalidArgument, message);
  };
  const AttrMap ports = {{"Tin", std::vector<DataType>{kInt}},
                         {"Tout", std::vector<DataType>{type}}};
  const auto with_ports = [&](AttrMap more) {
    for (const auto& [name, value] : ports) more[name] = value;
    return more;
  };
  const auto loop = [&](const std::string& cond, const std::string& body) {
    return body_node("y", "While", {"d"},
                     {{"T", std::vector<DataType>{type}},
                      {"cond", call_of(cond)},
                      {"body", call_of(body)}});
  };
  refuse({half()}, "half:output:0", body_node("y", "f", {"x"}),
         "[f] node \"y\": " + wrong);
  refuse({half()}, "half:output:0",
         body_node("y", "If", {"p", "x"},
                   with_ports({{"Tcond", DataType::kBool},
                               {"then_branch", call_of("f")},
                               {"else_branch", call_of("f")}})),
         "[If] node \"y\": " + wrong);
  refuse({half()}, "half:output:0", loop("test", "loop"),
         "[While] node \"y\": [LoopCond] node \"y/loop_cond\": input 0 "
         "(\"y/cond/half:0\") is float, bool is wanted as input");
  refuse({half()}, "half:output:0", loop("never", "loop"),
         "[While] node \"y\": [Merge] node \"y/merge_0\": input 1 "
         "(\"y/next_0:0\") is float, double is wanted");
  refuse({half()}, "half:output:0",
         body_node(
             "y", "For", {"x", "x", "x", "d"},
             {{"T", std::vector<DataType>{type}}, {"body", call_of("count")}}),
         "[For] node \"y\": [Merge] node \"y/merge_1\": input 1 "
         "(\"y/next_1:0\") is float, double is wanted");
}

TEST_CASE("a called body's results are of the types that its function says") {
  // Right where it is expanded, wrong where it calls itself.
  Lowered l;
  l.define(
      function("f", {"n: int32"}, {"r: T"},
               {body_const("half", Tensor::scalar(0.5f)),
                body_node("again", "f", {"n"}, {{"T", DataType::kDouble}})},
               {{"r", "half:output:0"}}, {"T: type"}));
  l.expect_refused(
      {placeholder("x"), body_node("y", "f", {"x"}, {{"T", DataType::kFloat}})},
      Code::kInvalidArgument,
      "[f] node \"y/again\": result 0 of function \"f\" is double, its body "
      "gives float");
}

TEST_CASE("a call waits for results of calls that may be dead") {
  const auto lower = [](Lowered& l, std::vector<NodeDef> body,
                        const std::string& result) {
    l.define(function("f", {"n: int32", "p: bool"}, {"r: int32"},
                      std::move(body), {{"r", result}}));
    l.define(function("first", {"a: int32", "b: int32"}, {"r: int32"}, {},
                      {{"r", "a"}}));
    l.expect_lowered(
        {placeholder("x"), placeholder("p", DataType::kBool),
         body_node("y", "f", {"x", "p"}), body_node("z", "first", {"x", "y"})},
        "z");
    return l.program.graph.find("z/gate") != nullptr;
  };
  const NodeDef split = body_node("split", "Switch", {"n", "p"}, {{"T", kInt}});
  {
    Lowered l;
    CHECK(lower(l, {split}, "split:output_true:0"));
  }
  {
    // Through other functions.
    Lowered l;
    l.define(function("inner", {"n: int32", "p: bool"}, {"r: int32"}, {split},
                      {{"r", "split:output_true:0"}}));
    CHECK(lower(l, {body_node("call", "inner", {"n", "p"})}, "call:r:0"));
  }
  {
    // By a name that an attribute gives.
    Lowered l;
    l.define(function("inner", {"n: int32", "p: bool"}, {"r: int32"}, {split},
                      {{"r", "split:output_true:0"}}));
    l.define(function(
        "use", {"n: int32", "p: bool"}, {"r: int32"},
        {body_node("call", "PartitionedCall", {"n", "p"},
                   {{"Tin", std::vector<DataType>{kInt, DataType::kBool}},
                    {"Tout", std::vector<DataType>{kInt}},
                    {"f", AttrPlaceholder{"g"}}})},
        {{"r", "call:output:0"}}, {"g: func"}));
    CHECK(lower(
        l, {body_node("call", "use", {"n", "p"}, {{"g", call_of("inner")}})},
        "call:r:0"));
  }
  {
    Lowered l;
    CHECK(!lower(l, {body_int("sum", "Add", "n", "n")}, "sum:z:0"));
  }
}

TEST_CASE("effects of a function that is given to a recursion are waited for") {
  Lowered l;
  l.define(
      function("noisy", {"n: int32"}, {"r: int32"},
               {body_node("print", "Print", {"n", "n"},
                          {{"T", kInt}, {"U", std::vector<DataType>{kInt}}})},
               {{"r", "print:output:0"}}));
  l.define(function(
      "use", {"n: int32"}, {"r: int32"},
      {body_node("call", "PartitionedCall", {"n"},
                 int_ports(1, 1, {{"f", AttrPlaceholder{"f"}}})),
       body_node("again", "use", {"n"}, {{"f", AttrPlaceholder{"f"}}})},
      {{"r", "n"}}, {"f: func"}));
  l.expect_lowered({placeholder("x"),
                    body_node("y", "use", {"x"}, {{"f", call_of("noisy")}})},
                   "y");
  REQUIRE(l.program.bodies.size() == 1);
  const auto runs = [](const Program& program, const std::string& name) {
    return std::ranges::count(program.targets, program.graph.find(name)) == 1;
  };
  CHECK(runs(l.program, "y/again/done"));
  CHECK(runs(*l.program.bodies[0], "use/again/done"));
}

}  // namespace tagflow::graph
