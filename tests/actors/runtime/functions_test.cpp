// Calls and functional control flow, run in every configuration.
#include <doctest/doctest.h>

#include "tests/actors/function_graph.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

TEST_CASE("a call on a branch that is not taken does not run") {
  FunctionGraph g = counting_graph();
  g.define(function("endless", {"n: int32"}, {"r: int32"},
                    {body_node("again", "endless", {"n"})},
                    {{"r", "again:r:0"}}));
  g.add({body_const("limit", Tensor::scalar(5)),
         body_int("small", "Less", "x", "limit"),
         if_node("z", {"small", "x"}, "count", "endless")});
  for (SessionOptions options : configurations()) {
    options.max_call_depth = 50;
    const auto session = g.session(options);
    const auto value = run_int(*session, 3, "z");
    INFO(value.status().to_string());
    REQUIRE(value.ok());
    CHECK(*value == 3);
    CHECK(run_int(*session, 7, "z").status().code() ==
          Code::kResourceExhausted);
  }
}

TEST_CASE("a loop may call a recursive function, and a recursion may loop") {
  // total = 0; for i in 0 .. x - 1: total += fib(i), where the loop is While.
  FunctionGraph g;
  define_fibonacci(g);
  g.define(function("more", {"i: int32", "total: int32", "n: int32"},
                    {"b: bool"}, {body_int("less", "Less", "i", "n")},
                    {{"b", "less:z:0"}}));
  g.define(function(
      "add", {"i: int32", "total: int32", "n: int32"},
      {"i2: int32", "total2: int32", "n2: int32"},
      {body_const("one", Tensor::scalar(1)),
       body_int("next", "Add", "i", "one:output:0"),
       body_node("f", "fib", {"i"}), body_int("plus", "Add", "total", "f:f:0")},
      {{"i2", "next:z:0"}, {"total2", "plus:z:0"}, {"n2", "n"}}));
  const std::vector<DataType> types(3, kInt);
  g.add(
      {int_placeholder("x"), body_const("zero", Tensor::scalar(0)),
       body_node(
           "loop", "While", {"zero", "zero", "x"},
           {{"T", types}, {"cond", call_of("more")}, {"body", call_of("add")}}),
       body_node("y", "Identity", {"loop:1"})});
  // tower(n) = n <= 0 ? 0 : (the loop to n) + tower(n - 1)
  g.define(function("tower", {"n: int32"}, {"t: int32"},
                    {body_const("zero", Tensor::scalar(0)),
                     body_int("end", "LessEqual", "n", "zero:output:0"),
                     if_node("choose", {"end:z:0", "n"}, "nothing", "level")},
                    {{"t", "choose:output:0"}}));
  g.define(function("nothing", {"n: int32"}, {"t: int32"},
                    {body_const("zero", Tensor::scalar(0))},
                    {{"t", "zero:output:0"}}));
  g.define(function(
      "level", {"n: int32"}, {"t: int32"},
      {body_const("zero", Tensor::scalar(0)),
       body_const("one", Tensor::scalar(1)),
       body_node(
           "loop", "While", {"zero:output:0", "zero:output:0", "n"},
           {{"T", types}, {"cond", call_of("more")}, {"body", call_of("add")}}),
       body_int("less", "Sub", "n", "one:output:0"),
       body_node("rest", "tower", {"less:z:0"}),
       body_int("plus", "Add", "loop:output:1", "rest:t:0")},
      {{"t", "plus:z:0"}}));
  g.add({body_node("z", "tower", {"x"})});
  // Sums of Fibonacci numbers below n: f(n + 1) - 1; sums of these.
  for (const SessionOptions& options : configurations()) {
    const auto session = g.session(options);
    expect_int(*session, 10, 88);
    const auto value = run_int(*session, 6, "z");
    INFO(value.status().to_string());
    REQUIRE(value.ok());
    CHECK(*value == 0 + 1 + 2 + 4 + 7 + 12);
  }
}

TEST_CASE("an error inside a call names the node and ends the step") {
  FunctionGraph g;
  g.define(function("crash", {"n: int32"}, {"r: int32"},
                    {body_const("zero", Tensor::scalar(0)),
                     body_int("end", "Equal", "n", "zero:output:0"),
                     if_node("choose", {"end:z:0", "n"}, "divide", "next")},
                    {{"r", "choose:output:0"}}));
  g.define(function("divide", {"n: int32"}, {"r: int32"},
                    {body_int("by_zero", "FloorDiv", "n", "n")},
                    {{"r", "by_zero:z:0"}}));
  g.define(function("next", {"n: int32"}, {"r: int32"},
                    {body_const("one", Tensor::scalar(1)),
                     body_int("less", "Sub", "n", "one:output:0"),
                     body_node("again", "crash", {"less:z:0"})},
                    {{"r", "again:r:0"}}));
  g.add({int_placeholder("x"), body_node("y", "crash", {"x"})});
  for (const SessionOptions& options : configurations()) {
    const auto session = g.session(options);
    for (int i = 0; i < 2; ++i) {
      const auto value = run_int(*session, 4);
      CHECK(value.status().code() == Code::kInvalidArgument);
      CHECK(value.status().message().find(
                "node \"crash/choose/then/by_zero\", iteration "
                "\"crash/0/crash/0/crash/0") != std::string::npos);
    }
  }
}

TEST_CASE("Case takes the last branch if its index is out of range") {
  FunctionGraph g;
  for (int32_t i = 0; i < 3; ++i)
    g.define(function("times_" + std::to_string(i), {"n: int32"}, {"r: int32"},
                      {body_const("factor", Tensor::scalar(i)),
                       body_int("times", "Mul", "n", "factor:output:0")},
                      {{"r", "times:z:0"}}));
  g.add({int_placeholder("x"), body_const("ten", Tensor::scalar(10)),
         body_node(
             "y", "Case", {"x", "ten"},
             int_ports(1, 1,
                       {{"branches", std::vector<FunctionRef>{
                                         call_of("times_0"), call_of("times_1"),
                                         call_of("times_2")}}}))});
  for (const SessionOptions& options : configurations()) {
    const auto session = g.session(options);
    expect_int(*session, 0, 0);
    expect_int(*session, 1, 10);
    expect_int(*session, 2, 20);
    expect_int(*session, 3, 20);
    expect_int(*session, -1, 20);
  }
}

TEST_CASE("For counts up and down, and refuses a loop that never ends") {
  // body: (i, a) -> 10 a + i
  FunctionGraph g;
  g.define(function("digit", {"i: int32", "a: int32"}, {"r: int32"},
                    {body_const("ten", Tensor::scalar(10)),
                     body_int("shift", "Mul", "a", "ten:output:0"),
                     body_int("plus", "Add", "shift:z:0", "i")},
                    {{"r", "plus:z:0"}}));
  g.add({int_placeholder("x"), int_placeholder("limit"),
         int_placeholder("delta"), body_const("zero", Tensor::scalar(0)),
         body_node("y", "For", {"x", "limit", "delta", "zero"},
                   {{"T", std::vector<DataType>{kInt}},
                    {"body", call_of("digit")}})});
  const auto session = g.session({});
  const auto digits = [&](int32_t start, int32_t limit, int32_t delta) {
    return session->run({{"x", Tensor::scalar(start)},
                         {"limit", Tensor::scalar(limit)},
                         {"delta", Tensor::scalar(delta)}},
                        {"y:0"});
  };
  CHECK(digits(1, 4, 1).value()[0].item<int32_t>().value() == 123);
  CHECK(digits(5, 1, -2).value()[0].item<int32_t>().value() == 53);
  CHECK(digits(1, 6, 2).value()[0].item<int32_t>().value() == 135);
  CHECK(digits(3, 3, 0).value()[0].item<int32_t>().value() == 0);
  CHECK(digits(1, 4, -1).status().message().find(
            "[For] from 1 to 4 by -1 never ends") != std::string::npos);
}

TEST_CASE("an op that waits for a call runs after the call's side effects") {
  FunctionGraph g;
  g.define(function(
      "check", {"n: int32"}, {},
      {body_const("zero", Tensor::scalar(0)),
       body_int("positive", "Greater", "n", "zero:output:0"),
       body_node("assert", "Assert", {"positive:z:0", "n"},
                 {{"T", std::vector<DataType>{kInt}}, {"summarize", 3}})},
      {}));
  g.add({int_placeholder("x"),
         body_node("call", "StatefulPartitionedCall", {"x"},
                   int_ports(1, 0, {{"f", call_of("check")}})),
         body_node("y", "Identity", {"x", "^call"})});
  for (const SessionOptions& options : configurations()) {
    const auto session = g.session(options);
    expect_int(*session, 3, 3);
    CHECK(run_int(*session, -3).status().message().find("[Assert]") !=
          std::string::npos);
  }
}

TEST_CASE("a loop without variables is as dead as its input") {
  FunctionGraph g;
  g.define(function("never", {"n: int32"}, {"b: bool"},
                    {body_const("no", Tensor::scalar(false))},
                    {{"b", "no:output:0"}}));
  g.define(function("same", {"n: int32"}, {"m: int32"}, {}, {{"m", "n"}}));
  const DataType boolean = DataType::kBool;
  g.add({int_placeholder("x"),
         body_node("p", "Placeholder", {}, {{"dtype", boolean}}),
         body_node("branch", "Switch", {"x", "p"}),
         body_node("loop", "While", {"branch:1"},
                   {{"T", std::vector<DataType>{kInt}},
                    {"cond", call_of("never")},
                    {"body", call_of("same")}}),
         body_node("y", "Identity", {"x", "^loop"})});
  for (const SessionOptions& options : configurations()) {
    const auto session = g.session(options);
    const auto fetch = [&](bool taken) {
      return session->run(
          {{"x", Tensor::scalar(7)}, {"p", Tensor::scalar(taken)}}, {"y"}, {},
          within_a_minute());
    };
    CHECK(fetch(true).value()[0].item<int32_t>().value() == 7);
    CHECK(fetch(false).status().code() == Code::kInvalidArgument);
    CHECK(fetch(false).status().message().find("Switch \"branch\"") !=
          std::string::npos);
  }
}

TEST_CASE("a function may have any name, and call itself by it") {
  const std::string name = "__inference_<lambda> gr\xc3\xb6\xc3\x9f:e_7";
  FunctionGraph g;
  g.define(function("same", {"n: int32"}, {"f: int32"}, {}, {{"f", "n"}}));
  FunctionDef half =
      function("half", {"n: int32"}, {"f: int32"},
               {body_const("two", Tensor::scalar(2)),
                body_int("small", "Less", "n", "two:output:0"),
                if_node("choose", {"small:z:0", "n"}, "same", "again")},
               {{"f", "choose:output:0"}});
  half.signature.name = name;
  g.define(std::move(half));
  g.define(function("again", {"n: int32"}, {"f: int32"},
                    {body_const("two", Tensor::scalar(2)),
                     body_int("less", "FloorDiv", "n", "two:output:0"),
                     body_node("rest", name, {"less:z:0"})},
                    {{"f", "rest:f:0"}}));
  g.add({int_placeholder("x"), body_node("y", name, {"x"})});
  for (const SessionOptions& options : configurations()) {
    const auto session = g.session(options);
    expect_int(*session, 1000, 1);
    expect_int(*session, 1, 1);
  }
}

TEST_CASE("a recursion calls the functions that it was given") {
  // use(x, k; f) = k > 0 ? use(f(x), k - 1; f) : x
  FunctionGraph g;
  const AttrMap same_f = {{"f", AttrPlaceholder{"f"}}};
  const auto given = [&](const std::string& name) {
    return call_of(name, same_f);
  };
  g.define(function("use", {"x: int32", "k: int32"}, {"r: int32"},
                    {body_const("zero", Tensor::scalar(0)),
                     body_int("more", "Greater", "k", "zero:output:0"),
                     body_node("choose", "StatelessIf", {"more:z:0", "x", "k"},
                               int_ports(2, 1,
                                         {{"Tcond", DataType::kBool},
                                          {"then_branch", given("step")},
                                          {"else_branch", given("end")}}))},
                    {{"r", "choose:output:0"}}, {"f: func"}));
  g.define(function("end", {"x: int32", "k: int32"}, {"r: int32"}, {},
                    {{"r", "x"}}, {"f: func"}));
  g.define(function(
      "step", {"x: int32", "k: int32"}, {"r: int32"},
      {body_const("one", Tensor::scalar(1)),
       body_int("less", "Sub", "k", "one:output:0"),
       body_node("call", "PartitionedCall", {"x"}, int_ports(1, 1, same_f)),
       body_node("rest", "use", {"call:output:0", "less:z:0"}, same_f)},
      {{"r", "rest:r:0"}}, {"f: func"}));
  g.define(
      function("plus", {"x: int32"}, {"r: int32"},
               {body_node("value", "Const", {},
                          {{"value", AttrPlaceholder{"v"}}, {"dtype", kInt}}),
                body_int("sum", "Add", "x", "value:output:0")},
               {{"r", "sum:z:0"}}, {"v: tensor"}));
  const auto use = [](const std::string& name, int32_t v) {
    return body_node(name, "use", {"x", "times"},
                     {{"f", call_of("plus", {{"v", Tensor::scalar(v)}})}});
  };
  g.add({int_placeholder("x"), body_const("times", Tensor::scalar(4)),
         use("y", 1), use("z", 10)});
  for (const SessionOptions& options : configurations()) {
    const auto session = g.session(options);
    const auto results = session->run({{"x", Tensor::scalar(3)}}, {"y", "z"},
                                      {}, within_a_minute());
    INFO(results.status().to_string());
    REQUIRE(results.ok());
    CHECK((*results)[0].item<int32_t>().value() == 7);
    CHECK((*results)[1].item<int32_t>().value() == 43);
  }
}

TEST_CASE("a body that gives another type than its function says never runs") {
  FunctionGraph g;
  const DataType real = DataType::kDouble;
  g.define(function("f", {"n: int32"}, {"r: T"},
                    {body_const("half", Tensor::scalar(0.5f)),
                     body_node("again", "f", {"n"}, {{"T", real}}),
                     body_node("check", "CheckNumerics", {"again:r:0"},
                               {{"T", real}, {"message", "no number"}})},
                    {{"r", "half:output:0"}}, {"T: type"}));
  g.define(function("g", {"n: int32"}, {"r: double"},
                    {body_const("half", Tensor::scalar(0.5f))},
                    {{"r", "half:output:0"}}));
  g.add({int_placeholder("x"),
         body_node("y", "f", {"x"}, {{"T", DataType::kFloat}}),
         body_node("z", "g", {"x"})});
  const auto session = g.session({});
  CHECK(run_int(*session, 1).status().message() ==
        "[f] node \"y/again\": result 0 of function \"f\" is double, its body "
        "gives float");
  CHECK(run_int(*session, 1, "z").status().message() ==
        "[g] node \"z\": result 0 of function \"g\" is double, its body gives "
        "float");
}

TEST_CASE("calls and loops with a dead result of a call as input do nothing") {
  FunctionGraph g;
  const DataType boolean = DataType::kBool;
  g.define(function("split", {"n: int32", "p: bool"}, {"r: int32"},
                    {body_node("s", "Switch", {"n", "p"}, {{"T", kInt}})},
                    {{"r", "s:output_true:0"}}));
  // Each reads one argument, and fails if it runs at all.
  const NodeDef no = body_const("no", Tensor::scalar(false));
  const auto fails = [](const std::string& arg) {
    return body_node("assert", "Assert", {"no:output:0", arg},
                     {{"T", std::vector<DataType>{kInt}}, {"summarize", 3}});
  };
  g.define(function("second", {"a: int32", "b: int32"}, {"r: int32"},
                    {no, fails("b")}, {{"r", "b"}}));
  g.define(function("test", {"a: int32", "b: int32"}, {"t: bool"},
                    {no, fails("b")}, {{"t", "no:output:0"}}));
  g.define(function("swap", {"a: int32", "b: int32"},
                    {"a2: int32", "b2: int32"}, {},
                    {{"a2", "b"}, {"b2", "a"}}));
  g.define(function("count", {"i: int32", "a: int32", "b: int32"},
                    {"a2: int32", "b2: int32"}, {no, fails("b")},
                    {{"a2", "a"}, {"b2", "b"}}));
  // The same call, by a recursion: split if n is not below 0.
  g.define(function("deep", {"n: int32", "p: bool"}, {"r: int32"},
                    {body_const("zero", Tensor::scalar(0)),
                     body_int("small", "Less", "n", "zero:output:0"),
                     body_node("choose", "If", {"small:z:0", "n", "p"},
                               {{"Tin", std::vector<DataType>{kInt, boolean}},
                                {"Tout", std::vector<DataType>{kInt}},
                                {"Tcond", boolean},
                                {"then_branch", call_of("deeper")},
                                {"else_branch", call_of("split")}})},
                    {{"r", "choose:output:0"}}));
  g.define(function("deeper", {"n: int32", "p: bool"}, {"r: int32"},
                    {body_const("one", Tensor::scalar(1)),
                     body_int("next", "Add", "n", "one:output:0"),
                     body_node("rest", "deep", {"next:z:0", "p"}),
                     body_node("read", "second", {"rest:r:0", "n"})},
                    {{"r", "read:r:0"}}));
  const std::vector<DataType> two(2, kInt);
  g.add(
      {int_placeholder("x"),
       body_node("p", "Placeholder", {}, {{"dtype", boolean}}),
       body_const("w", Tensor::scalar(7)), body_const("one", Tensor::scalar(1)),
       body_node("y", "split", {"x", "p"}),
       body_node("call", "second", {"y", "w"}),
       body_node(
           "while", "While", {"y", "w"},
           {{"T", two}, {"cond", call_of("test")}, {"body", call_of("swap")}}),
       body_node("for", "For", {"one", "w", "one", "y", "w"},
                 {{"T", two}, {"body", call_of("count")}}),
       if_node("if", {"p", "y", "w"}, "second", "second"),
       body_node("deep", "deep", {"x", "p"})});
  for (const SessionOptions& options : configurations()) {
    const auto session = g.session(options);
    for (const char* fetch : {"call", "while:0", "while:1", "for:1", "if"}) {
      CAPTURE(fetch);
      const auto run = [&](bool p) {
        return session
            ->run({{"x", Tensor::scalar(7)}, {"p", Tensor::scalar(p)}}, {fetch},
                  {}, within_a_minute())
            .status();
      };
      CHECK(run(true).message().find("[Assert]") != std::string::npos);
      const Status dead = run(false);
      CHECK(dead.code() == Code::kInvalidArgument);
      CHECK(dead.message().find("Switch \"y/s\"") != std::string::npos);
    }
    const Status deep =
        session
            ->run({{"x", Tensor::scalar(-2)}, {"p", Tensor::scalar(false)}},
                  {"deep"}, {}, within_a_minute())
            .status();
    CHECK(deep.code() == Code::kInvalidArgument);
    CHECK(deep.message().find("[Assert]") == std::string::npos);
  }
}

TEST_CASE("sessions that may not call at all are refused") {
  SessionOptions options;
  options.max_call_depth = 0;
  CHECK(Session::create(options).status().message() ==
        "[session] max_call_depth must be at least 1, but is 0");
  options.max_call_depth = 1;
  options.max_open_calls = 0;
  CHECK(Session::create(options).status().message() ==
        "[session] max_open_calls must be at least 1, but is 0");
}
