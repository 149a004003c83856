// Which node waits for which in lowered calls, conditionals and loops, and
// nodes that run only for their effects.
#include "tests/graph/functions/lowered.h"

namespace tagflow::graph {

using namespace testing;

namespace {

NodeDef printing(const std::string& name, const std::string& value) {
  return body_node(name, "Print", {value, value},
                   {{"T", kInt}, {"U", std::vector<DataType>{kInt}}});
}

std::vector<std::string> waits_of(const Lowered& l, const std::string& name) {
  std::vector<std::string> names;
  for (const Node* control : l.node(name).control_inputs())
    names.push_back(control->name());
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a call that may be dead waits for its control inputs, too") {
  Lowered l;
  l.define(function("three", {"a: int32"}, {"r: int32"},
                    {body_const("value", Tensor::scalar(3))},
                    {{"r", "value:output:0"}}));
  l.define(function("four", {}, {"r: int32"},
                    {body_const("value", Tensor::scalar(4))},
                    {{"r", "value:output:0"}}));
  l.expect_lowered(
      {placeholder("p", DataType::kBool), placeholder("x"),
       body_node("s", "Switch", {"x", "p"}), body_node("no", "Neg", {"s:1"}),
       body_node("one_dead", "three", {"s:1", "^x"}),
       body_node("control_dead", "three", {"x", "^no"}),
       body_node("both_dead", "four", {"^no", "^x"}),
       body_node("alive", "three", {"x", "^x"}),
       body_node("sum", "AddN",
                 {"one_dead", "control_dead", "both_dead", "alive"},
                 {{"N", 4}, {"T", kInt}})},
      "sum");
  CHECK(waits_of(l, "one_dead/gate") == Names{"one_dead/input_0", "x"});
  CHECK(waits_of(l, "one_dead/a") == Names{"one_dead/gate"});
  CHECK(waits_of(l, "control_dead/gate") ==
        Names{"control_dead/input_0", "no"});
  CHECK(waits_of(l, "control_dead/a") == Names{"control_dead/gate"});
  CHECK(waits_of(l, "both_dead/gate") == Names{"no", "x"});
  CHECK(waits_of(l, "both_dead/pivot") == Names{"both_dead/gate"});
  CHECK(waits_of(l, "alive/a") == Names{"x"});
}

TEST_CASE("a loop runs for the effects of its condition or body alone") {
  const NodeDef print =
      body_node("print", "Print", {"i", "i"},
                {{"T", kInt}, {"U", std::vector<DataType>{kInt}}});
  const NodeDef no = body_const("no", Tensor::scalar(false));
  for (const bool in_condition : {false, true})
    for (const bool in_body : {false, true}) {
      CAPTURE(in_condition);
      CAPTURE(in_body);
      Lowered l;
      l.define(function("test", {"i: int32"}, {"b: bool"},
                        in_condition ? std::vector{no, print} : std::vector{no},
                        {{"b", "no:output:0"}}));
      l.define(function(
          "step", {"i: int32"}, {"r: int32"},
          in_body ? std::vector{body_int("twice", "Add", "i", "i"), print}
                  : std::vector{body_int("twice", "Add", "i", "i")},
          {{"r", "twice:z:0"}}));
      l.expect_lowered(
          {placeholder("x"), body_node("unread", "StatelessWhile", {"x"},
                                       loop_attrs(1, "test", "step"))},
          "x");
      std::vector<std::string> targets;
      for (const Node* target : l.program.targets)
        targets.push_back(target->name());
      CHECK(targets == (in_condition || in_body
                            ? std::vector<std::string>{"unread/done"}
                            : std::vector<std::string>()));
    }
}

TEST_CASE("a call's input from an Exit or an Enter may be dead") {
  Lowered l;
  const AttrMap frame = {{"T", kInt}, {"frame_name", "f"}};
  l.define(function("first", {"a: int32", "b: int32"}, {"r: int32"},
                    {body_int("plus", "Add", "a", "a")}, {{"r", "plus:z:0"}}));
  l.expect_lowered({placeholder("x"), body_node("enter", "Enter", {"x"}, frame),
                    body_node("exit", "Exit", {"enter"}, {{"T", kInt}}),
                    body_node("outside", "first", {"x", "exit"}),
                    body_node("inside", "first", {"enter", "enter"}),
                    body_node("again", "Exit", {"inside"}, {{"T", kInt}}),
                    body_node("both", "Add", {"outside", "again"})},
                   "both");
  CHECK(waits_of(l, "outside/a") == Names{"outside/gate"});
  CHECK(waits_of(l, "inside/a") == Names{"inside/gate"});
}

TEST_CASE("a call without results is as dead as its inputs") {
  Lowered l;
  l.define(function("noisy", {"n: int32"}, {}, {printing("print", "n")}, {}));
  l.expect_lowered({placeholder("p", DataType::kBool), placeholder("x"),
                    body_node("s", "Switch", {"x", "p"}),
                    body_node("y", "noisy", {"s:1", "^x"}),
                    body_node("z", "Identity", {"x", "^y"}, {{"T", kInt}})},
                   "z");
  CHECK(waits_of(l, "y/done") == Names{"y/effects", "y/live_0", "y/gate"});
  CHECK(waits_of(l, "z") == Names{"y/done"});
}

TEST_CASE("a conditional is done when what its branch does is done") {
  for (const bool effects_first : {false, true}) {
    CAPTURE(effects_first);
    Lowered l;
    l.define(function("noisy", {"n: int32"}, {"r: int32"},
                      {printing("print", "n")}, {{"r", "n"}}));
    l.define(function("quiet", {"n: int32"}, {"r: int32"}, {}, {{"r", "n"}}));
    l.expect_lowered(
        {placeholder("p", DataType::kBool), placeholder("x"),
         body_node("y", "StatelessIf", {"p", "x"},
                   int_ports(1, 1,
                             {{"Tcond", DataType::kBool},
                              {"then_branch",
                               call_of(effects_first ? "quiet" : "noisy")},
                              {"else_branch",
                               call_of(effects_first ? "noisy" : "quiet")}}))},
        "x");
    const std::string noisy = effects_first ? "y/else" : "y/then";
    const std::string quiet = effects_first ? "y/then" : "y/else";
    CHECK(waits_of(l, noisy + "_end") == Names{noisy + "_effects"});
    CHECK(waits_of(l, quiet + "_end").empty());
    CHECK(waits_of(l, "y/done") == Names{"y/merge_0", "y/merge_end"});
    REQUIRE(l.program.targets.size() == 1);
    CHECK(l.program.targets[0]->name() == "y/done");
  }
}

TEST_CASE("a loop waits for what its node waits for, and for its effects") {
  Lowered l;
  l.define(function("less", {"i: int32", "n: int32"}, {"b: bool"},
                    {body_int("less", "Less", "i", "n"), printing("ask", "i")},
                    {{"b", "less:z:0"}}));
  l.define(function("step", {"i: int32", "n: int32"},
                    {"i2: int32", "n2: int32"},
                    {body_int("plus", "Add", "i", "i"), printing("tell", "i")},
                    {{"i2", "plus:z:0"}, {"n2", "n"}}));
  l.expect_lowered({placeholder("x"), placeholder("first"),
                    body_node("y", "While", {"x", "x", "^first"},
                              loop_attrs(2, "less", "step"))},
                   "y");
  CHECK(waits_of(l, "y/enter_0") == Names{"first"});
  CHECK(waits_of(l, "y/enter_constant_1") == Names{"first"});
  CHECK(waits_of(l, "y/constant_1") == Names{"first"});
  CHECK(waits_of(l, "y/loop_cond") == Names{"y/cond_effects"});
  CHECK(waits_of(l, "y/next_0") == Names{"y/body_effects"});
  CHECK(waits_of(l, "y/done") == Names{"y/exit_0"});
}

// A function with a loop of the primitives in a loop of them, which prints.
TEST_CASE("a body's own loops are waited for by their outermost Exits") {
  const AttrMap type = {{"T", kInt}};
  const auto frame = [](const char* name) {
    return AttrMap{{"T", kInt}, {"frame_name", name}};
  };
  FunctionDef loop =
      function("loop", {"n: int32"}, {"r: int32"},
               {body_node("in", "Enter", {"n"}, frame("outer")),
                body_node("deeper", "Enter", {"in:output:0"}, frame("inner")),
                printing("print", "deeper:output:0"),
                body_node("back", "Exit", {"print:output:0"}, type),
                body_node("out", "Exit", {"back:output:0"}, type)},
               {{"r", "n"}});
  loop.control_ret = {{"printed", "print"}};
  loop.control_outputs = {"printed"};
  Lowered l;
  l.define(std::move(loop));
  l.expect_lowered({placeholder("x"), body_node("y", "loop", {"x"})}, "y");
  CHECK(waits_of(l, "y/effects") == Names{"y/out"});
}

}  // namespace tagflow::graph
