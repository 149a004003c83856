// Error messages for dead fetches.
#include <doctest/doctest.h>

#include "tests/actors/program.h"
#include "tests/graph/hand_made.h"
#include "tests/graph/hand_made_functions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

TEST_CASE("a dead output of a switch of many names the index") {
  for (const PassSet passes : {PassSet(), PassSet::none()}) {
    const Program p;
    const Output index = p.input("index", DataType::kInt32, {});
    const OpResult sw =
        p.s.named("sw").op("_SwitchN", {3.f, index}, {{"num_outs", 3}});
    const Output dead = ops::neg(p.s.named("dead"), sw[1]);
    SessionOptions options;
    options.passes = passes;
    const auto out = p.try_run({{"index", Tensor::scalar(2)}}, {dead}, options);
    REQUIRE(!out.ok());
    CHECK(out.status().code() == Code::kInvalidArgument);
    CHECK(out.status().message().find(
              "_SwitchN \"sw\" sent its value to output 2, by its index "
              "\"index:0\" (root frame, iteration 0)") != std::string::npos);
    CHECK(p.run({{"index", Tensor::scalar(1)}}, {dead}, options)[0]
              .scalar_value<float>() == -3.f);
  }
}

// f(n) calls itself, and then lets its result pass only if n < 2.
TEST_CASE("a dead result of a call names the call") {
  Program p;
  REQUIRE(p.graph.library()
              .add(function(
                  "f", {"n: int32"}, {"r: int32"},
                  {body_const("two", Tensor::scalar(2)),
                   body_int("small", "Less", "n", "two:output:0"),
                   body_node("choose", "If", {"small:z:0", "n"},
                             int_ports(1, 1,
                                       {{"Tcond", DataType::kBool},
                                        {"then_branch", call_of("same")},
                                        {"else_branch", call_of("again")}})),
                   body_node("sw", "Switch", {"choose:output:0", "small:z:0"},
                             {{"T", DataType::kInt32}})},
                  {{"r", "sw:output_true:0"}}))
              .ok());
  REQUIRE(
      p.graph.library()
          .add(function("same", {"n: int32"}, {"r: int32"}, {}, {{"r", "n"}}))
          .ok());
  REQUIRE(p.graph.library()
              .add(function("again", {"n: int32"}, {"r: int32"},
                            {body_const("one", Tensor::scalar(1)),
                             body_int("less", "Sub", "n", "one:output:0"),
                             body_node("rest", "f", {"less:z:0"})},
                            {{"r", "rest:r:0"}}))
              .ok());
  const Output n = p.input("n", DataType::kInt32, {});
  const OpResult y = p.s.named("y").op("f", {n});
  CHECK(p.run({{"n", Tensor::scalar(1)}}, {y[0]})[0].scalar_value<int>() == 1);
  CHECK(p.error({{"n", Tensor::scalar(2)}}, {y[0]})
            .find("Switch \"y/sw\" sent its value to output 0") !=
        std::string::npos);
  const std::string error = p.error({{"n", Tensor::scalar(3)}}, {y[0]});
  CHECK(error.find("no value in this run: the call \"y/choose/") !=
        std::string::npos);
  CHECK(error.ends_with("returned a dead value"));
}

TEST_CASE("a loop that waits for what entered once says who waits") {
  using graph::testing::const_def;
  using graph::testing::def;
  const AttrMap enter = {{"frame_name", std::string("loop")}};
  Program p;
  graph::testing::must(p.graph.extend(std::vector<NodeDef>{
      const_def("zero", Tensor::scalar(0)), const_def("n", Tensor::scalar(3)),
      def("i", "Enter", {"zero"}, enter), def("limit", "Enter", {"n"}, enter),
      def("merge", "Merge", {"i", "next"}, {{"T", DataType::kInt32}}),
      def("more", "Less", {"merge", "limit"}),
      def("cond", "LoopCond", {"more"}),
      def("switch", "Switch", {"merge", "cond"}),
      const_def("one", Tensor::scalar(1)),
      def("step", "Enter", {"one"},
          {{"frame_name", std::string("loop")}, {"is_constant", true}}),
      def("add", "Add", {"switch:1", "step"}),
      def("next", "NextIteration", {"add"}), def("exit", "Exit", {"switch"})}));
  for (const PassSet passes : {PassSet(), PassSet::none()}) {
    SessionOptions options;
    options.passes = passes;
    const auto out = p.try_run({}, {Output(p.graph.find("exit"))}, options);
    REQUIRE(!out.ok());
    CHECK(out.status().message().find(
              "Exit \"exit\" was live in no iteration of its loop; in its "
              "last iteration, \"loop/1\", an input never came to ") !=
          std::string::npos);
    CHECK(out.status().message().find("Less \"more\"") != std::string::npos);
  }
}

TEST_CASE("a Switch's predicate and a _SwitchN's index are scalars") {
  const Program p;
  const Output b = p.input("b", DataType::kBool, PartialShape());
  const Output k = p.input("k", DataType::kInt32, PartialShape());
  const OpResult sw = p.s.named("sw").op("Switch", {3.f, b});
  const OpResult many =
      p.s.named("many").op("_SwitchN", {3.f, k}, {{"num_outs", 2}});
  CHECK(p.error({{"b", Tensor::vector<bool>({true})}}, {sw[1]})
            .starts_with("[Switch] the predicate must be a scalar bool, not "));
  CHECK(p.error({{"k", Tensor::vector<int32_t>({1})}}, {many[1]})
            .starts_with("[_SwitchN] the index must be a scalar int32, not "));
}

TEST_CASE("a diagnosis says nothing of a loop that an earlier run entered") {
  Program p;
  const Output x = p.input("x", DataType::kInt32, PartialShape::scalar());
  const Output b = p.input("b", DataType::kBool, PartialShape::scalar());
  const Output entered = p.s.named("sw").op("Switch", {x, b})[1];
  const Output last = while_loop(
      p.s.named("loop"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 9); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1)};
      },
      {entered})[0];
  REQUIRE(p.s.ok());
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, p.graph);
    const auto run = [&](bool taken) {
      return session->run(
          {{"x", Tensor::scalar(3)}, {"b", Tensor::scalar(taken)}},
          {last.name()}, {}, within_a_minute());
    };
    for (int i = 0; i < 2; ++i) {
      CHECK(run(true).value()[0].scalar_value<int32_t>() == 9);
      CHECK(run(false).status().message() ==
            "[session] the fetched tensor \"" + last.name() +
                "\" is dead and has no value in this run: Switch \"sw\" sent "
                "its value to output 0, since its predicate \"b:0\" was false "
                "(root frame, iteration 0). Fetch the Merge after the "
                "conditional, which has the value of the branch that was "
                "taken");
    }
  }
}

// After iteration 0 nothing comes from "once" any more, and the inner loop is
// entered only if the Switch lets something through. So in the second run
// what its actors hold is of the first run, or of an iteration before.
TEST_CASE("a diagnosis says nothing of a loop that this run did not enter") {
  using graph::testing::const_def;
  using graph::testing::def;
  const auto enter = [](const std::string& frame, bool is_constant = false) {
    return AttrMap{{"frame_name", frame}, {"is_constant", is_constant}};
  };
  Program p;
  p.input("b", DataType::kBool, PartialShape::scalar());
  p.input("n", DataType::kInt32, PartialShape::scalar());
  graph::testing::must(p.graph.extend(std::vector<NodeDef>{
      const_def("zero", Tensor::scalar(0)),
      const_def("one", Tensor::scalar(1)),
      def("i", "Enter", {"zero"}, enter("outer")),
      def("once", "Enter", {"one"}, enter("outer")),
      def("step", "Enter", {"one"}, enter("outer", true)),
      def("choice", "Enter", {"b"}, enter("outer", true)),
      def("merge", "Merge", {"i", "next"}, {{"T", DataType::kInt32}}),
      def("limit", "Enter", {"n"}, enter("outer", true)),
      def("more", "Less", {"merge", "limit"}),
      def("cond", "LoopCond", {"more"}),
      def("switch", "Switch", {"merge", "cond"}),
      def("plus", "AddV2", {"switch:1", "step"}),
      def("next", "NextIteration", {"plus"}),
      def("gate", "Switch", {"merge", "choice"}),
      def("late", "Neg", {"once"}),
      def("either", "Merge", {"gate:1", "late"}),
      def("in", "Enter", {"either"}, enter("inner")),
      def("inside", "Neg", {"in"}),
      def("out", "Exit", {"inside"}),
      def("end", "Switch", {"out", "cond"}),
      def("exit", "Exit", {"end"})}));
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, p.graph);
    for (const int n : {1, 2, 1, 2}) {
      CAPTURE(n);
      const auto run = [&](bool taken) {
        return session->run(
            {{"b", Tensor::scalar(taken)}, {"n", Tensor::scalar(n)}}, {"exit"},
            {}, within_a_minute());
      };
      const auto alive = run(true);
      REQUIRE_MESSAGE(alive.ok(), alive.status().to_string());
      CHECK((*alive)[0].scalar_value<int32_t>() == -n);
      const std::string text(run(false).status().message());
      CAPTURE(text);
      CHECK(graph::testing::contains(
          text,
          "Exit \"exit\" was live in no iteration of its loop; Switch "
          "\"gate\" sent its value to output 0, since its predicate"));
      CHECK(graph::testing::contains(
          text, fmt::format("(iteration \"outer/{}\")", n)));
    }
  }
}

TEST_CASE("an Exit by another Switch than the loop's blames that one") {
  for (const std::string there : {"/cpu:0", "/cpu:1"})
    for (const PassSet passes :
         {PassSet::only(Pass::kEdges), PassSet::none()}) {
      Program p;
      const Output b = p.input("b", DataType::kBool, PartialShape::scalar());
      const Output last = while_loop(
          p.s.named("loop").with_device("/cpu:0"),
          [](const Scope& in, const Outputs& v) {
            return ops::less(in, v[0], 3);
          },
          [&](const Scope& in, const Outputs& v) -> Outputs {
            return {ops::add(in, v[0], 1)};
          },
          {0})[0];
      REQUIRE(p.s.ok());
      // Beside the loop's own Exit one of a Switch behind it.
      Node* exit = last.node();
      const Endpoint ended = exit->inputs()[0];
      Graph& graph = p.graph;
      Node* enter = graph::testing::add(
          graph, "choice", "Enter", {{b.node(), 0}},
          {{"frame_name", std::string("loop/while_context")},
           {"is_constant", true}});
      Node* gate =
          graph::testing::add(graph, "gate", "Switch", {ended, {enter, 0}});
      graph.set_device(gate, there);
      Node* out = graph::testing::add(graph, "out", "Exit", {{gate, 1}});
      SessionOptions options;
      options.devices = "cpu:2";
      options.passes = passes;
      const auto run = [&](bool taken) {
        return p.try_run({{"b", Tensor::scalar(taken)}}, {Output(out)},
                         options);
      };
      const auto alive = run(true);
      REQUIRE_MESSAGE(alive.ok(), alive.status().to_string());
      CHECK((*alive)[0].scalar_value<int32_t>() == 3);
      const std::string text(run(false).status().message());
      CAPTURE(text);
      CHECK(graph::testing::contains(
          text,
          "Exit \"out\" was live in no iteration of its loop; Switch \"gate\" "
          "sent its value to output 0, since its predicate "));
      CHECK(graph::testing::contains(text,
                                     "(iteration \"loop/while_context/3\""));
    }
}
