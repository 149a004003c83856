// What is said of fetches that are dead.
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

// f(n) calls itself, and then lets its result pass only where n < 2.
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
  CHECK(error.ends_with("gave back a dead value"));
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
              "last iteration, 1, an input never came to ") !=
          std::string::npos);
    CHECK(out.status().message().find("Less \"more\"") != std::string::npos);
  }
}

TEST_CASE("a predicate and an index are scalars") {
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
