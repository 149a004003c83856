// Nodes without a gradient; errors name them.
#include <doctest/doctest.h>

#include "autodiff/rule.h"
#include "graph/analysis/extract.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "tests/autodiff/evaluate.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT

namespace {

// An op of which the table says nothing: x, somehow.
const char* op_without_rule() {
  static const char* const name = [] {
    OpRegistry::global().add(OpDefBuilder("TestWithoutRule")
                                 .input("x: T")
                                 .output("y: T")
                                 .attr("T: type")
                                 .shape(unchanged_shape));
    return "TestWithoutRule";
  }();
  return name;
}

Status refusal(const Scope& s, const Output& y, const Output& x) {
  CHECK(!dense_gradients(s, {y}, {x})[0].valid());
  return s.status();
}

}  // namespace

TEST_CASE("a Const whose value a gradient was made by cannot be fed") {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kDouble, Shape{2, 2});
  const Output v = ops::constant(s.named("v"), Tensor::vector<double>({1, 2}));
  const Output axis = ops::constant(s.named("axis"), 0);
  const Output y = ops::mul(s, s.op("Sum", {x, axis}), v);
  const Output grad = dense_gradients(s, {y}, {x})[0];
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  const auto refusal_of = [&](const Output& fed) {
    return extract(graph, std::vector<Endpoint>{fed.endpoint()},
                   std::vector<Endpoint>{grad.endpoint()}, {})
        .status()
        .to_string();
  };
  CHECK(refusal_of(axis) ==
        "InvalidArgument: [session] Const \"axis\" cannot be fed: gradients of "
        "the graph were made by its value; a PlaceholderWithDefault can be "
        "fed");
  CHECK(refusal_of(v) == "OK");
}

TEST_CASE("an op without a rule is named, with the path from x to y") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s.named("x"), 2.0);
  const Output a = ops::square(s.named("a"), x);
  const Output b = s.named("b").op(op_without_rule(), {a});
  SUBCASE("on the way") {
    const Output y = ops::exp(s.named("y"), ops::neg(s.named("c"), b));
    const Status status = refusal(s, y, x);
    CHECK(status.code() == Code::kUnimplemented);
    CHECK(status.message() ==
          "[gradients] there is no gradient rule for op \"TestWithoutRule\" of "
          "node \"b\", on the path x:0 -> a:0 -> b:0 -> c:0 -> y:0");
  }
  SUBCASE("in a loop") {
    const Output y = while_loop(
        s.named("loop"),
        [](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], 3);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          return {ops::add(in, v[0], 1),
                  in.named("inside").op(op_without_rule(), {v[1]})};
        },
        {0, x})[1];
    const Status status = refusal(s, y, x);
    CHECK(status.code() == Code::kUnimplemented);
    INFO(status.to_string());
    CHECK(status.message().find("of node \"loop/inside\", on the path x:0 -> "
                                "loop/") != std::string::npos);
    CHECK(status.message().ends_with(y.node()->name() + ":0"));
  }
  SUBCASE("not where no gradient goes") {
    const Output y = ops::mul(s, a, ops::stop_gradient(s, b));
    CHECK(dense_gradients(s, {y}, {x})[0].valid());
    CHECK(s.ok());
  }
}

TEST_CASE("a custom gradient that nobody has registered is refused") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, 2.0);
  // Its op has a rule, which is not what the node asks for.
  const Output y =
      ops::square(s.named("y").with_attr("_gradient_op_type", "PyFunc7"), x);
  const Status status = refusal(s, y, x);
  CHECK(status.code() == Code::kNotFound);
  CHECK(
      status.message() ==
      "[gradients] node \"y\" asks for the custom gradient \"PyFunc7\", which "
      "is not registered");
}

TEST_CASE("a custom gradient is asked for if the op itself has none") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, 2.5);
  const Scope custom =
      s.with_attr("_gradient_op_type", "test_straight_through");
  SUBCASE("nobody has registered it") {
    CHECK(refusal(s, ops::floor(custom, x), x).code() == Code::kNotFound);
  }
  SUBCASE("it is registered") {
    RuleTable::global().add_custom(
        "test_straight_through_2",
        [](RuleContext& r) { r.set(0, r.slices()); });
    const Output y = ops::floor(
        s.with_attr("_gradient_op_type", "test_straight_through_2"), x);
    CHECK(testing::numbers(s, {y, dense_gradients(s, {y}, {x})[0]}) ==
          std::vector<double>{2, 1});
  }
}
