// Gradients through calls, and of functions by name.
#include <doctest/doctest.h>

#include "autodiff/jvp.h"
#include "autodiff/symbolic_gradient.h"
#include "graph/function.h"
#include "tests/autodiff/evaluate.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using tagflow::autodiff::testing::Doubles;
using tagflow::autodiff::testing::numbers;

namespace {

// f(x, y) = x * x * y
void define_f(const Scope& s) {
  define_function(
      s, {.name = "f",
          .args = {{"x", DataType::kDouble, {}}, {"y", DataType::kDouble, {}}},
          .results = {{DataType::kDouble, {}}},
          .body = [](const Scope& in, const Outputs& a) -> Outputs {
            return ops::mul(in, ops::square(in, a[0]), a[1]);
          }});
}

}  // namespace

TEST_CASE("a call has tangents, by primitives in its place") {
  Graph graph;
  const Scope s(graph);
  define_f(s);
  const Output x = ops::constant(s, 3.0), y = ops::constant(s, 5.0);
  const Output one = ops::constant(s, 1.0);
  const Output z = call(s.named("z"), "f", {x, y})[0];
  const Output by_x = jvp(s, {z}, {x, y}, {one, {}})[0];
  const Output by_y = jvp(s, {z}, {y}, {one})[0];
  const Output by_both = jvp(s, {by_x}, {y}, {one})[0];
  CHECK(numbers(s, {z, by_x, by_y, by_both}) == Doubles{45, 30, 9, 6});
}

TEST_CASE("a RemoteCall is differentiated on its target") {
  Graph graph;
  const Scope s(graph);
  define_f(s);
  const Output x = ops::constant(s, 3.0), y = ops::constant(s, 5.0);
  const Output target = ops::constant(s, "/device:CPU:0");
  const std::vector<DataType> in(2, DataType::kDouble), out{DataType::kDouble};
  const Output z =
      s.named("z").op("RemoteCall", {target, x, y},
                      {{"Tin", in}, {"Tout", out}, {"f", FunctionRef{"f"}}});
  const Outputs first = dense_gradients(s, {z}, {x, y});
  CHECK(numbers(s, {z, first[0], first[1]}) == Doubles{45, 30, 9});
  CHECK(numbers(s, jvp(s, {z}, {x}, {ops::constant(s, 1.0)})) == Doubles{30});
}

TEST_CASE("a call's result may be an x, and depend on another x") {
  Graph graph;
  const Scope s(graph);
  define_f(s);
  const Output x = ops::constant(s, 3.0), y = ops::constant(s, 5.0);
  const Output one = ops::constant(s, 1.0);
  const Output z = call(s.named("z"), "f", {x, y})[0];
  const Output w = ops::square(s, z);
  CHECK(numbers(s, dense_gradients(s, {w}, {x, z})) == Doubles{2700, 90});
  CHECK(numbers(s, jvp(s, {w}, {x, z}, {one, one})) == Doubles{2790});
}

TEST_CASE("a call is differentiated in place, and can still be fetched") {
  Graph graph;
  const Scope s(graph);
  define_f(s);
  const Output x = ops::constant(s, 3.0), y = ops::constant(s, 5.0);
  const Output z = call(s.named("z"), "f", {x, y})[0];
  const Outputs first = dense_gradients(s, {z}, {x, y});
  const Output second = dense_gradients(s, {first[0]}, {x})[0];
  CHECK(z.node()->name() == "z");
  CHECK(numbers(s, {z, first[0], first[1], second}) == Doubles{45, 30, 9, 10});
}

TEST_CASE("a function reads a variable whose handle it is given") {
  Graph graph;
  const Scope s(graph);
  define_function(s, {.name = "layer",
                      .args = {{"x", DataType::kDouble, {1, 3}},
                               {"w", DataType::kResource, {}}},
                      .results = {{DataType::kDouble, {}}},
                      .body = [](const Scope& in, const Outputs& a) -> Outputs {
                        const Output w = in.op("ReadVariableOp", {a[1]},
                                               {{"dtype", DataType::kDouble}});
                        return ops::reduce_sum(in, ops::matmul(in, a[0], w));
                      }});
  const ops::Variable w =
      ops::variable(s.named("w"), DataType::kDouble, {3, 1});
  const Output ones = ops::fill(s, {3, 1}, ops::constant(s, 2.0));
  const Output init = ops::assign(s, w, ones);
  const Output x = ops::fill(s, {1, 3}, ops::constant(s, 5.0));
  const Output y = call(s.named("y"), "layer", {x, w.handle})[0];
  const Outputs grads = dense_gradients(s, {y}, {x, w.handle});
  const Output by_x = ops::reduce_sum(s, grads[0]);
  const Output by_w = ops::reduce_sum(s, ops::square(s, grads[1]));
  CHECK(numbers(s, {y, by_x, by_w}, {}, {}, init) == Doubles{30, 6, 75});
}

TEST_CASE("SymbolicGradient is the gradient of its function") {
  enable_symbolic_gradients();
  Graph graph;
  const Scope s(graph);
  define_f(s);
  const Output x = ops::constant(s, 3.0), y = ops::constant(s, 5.0);
  const DataType type = DataType::kDouble;
  const OpResult grads = s.op("SymbolicGradient", {x, y, ops::constant(s, 2.0)},
                              {{"Tin", std::vector<DataType>{type, type, type}},
                               {"Tout", std::vector<DataType>{type, type}},
                               {"f", FunctionRef{"f"}}});
  CHECK(numbers(s, {grads[0], grads[1]}) == Doubles{60, 18});
}

TEST_CASE("a SymbolicGradient in a loop has its constants in the loop") {
  enable_symbolic_gradients();
  Graph graph;
  const Scope s(graph);
  define_f(s);
  const DataType type = DataType::kDouble;
  const Output last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 2); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const OpResult grads =
            in.op("SymbolicGradient", {v[1], v[1], v[1]},
                  {{"Tin", std::vector<DataType>{type, type, type}},
                   {"Tout", std::vector<DataType>{type, type}},
                   {"f", FunctionRef{"f"}}});
        return {ops::add(in, v[0], 1), grads[1]};
      },
      {0, ops::constant(s, 2.0)})[1];
  // x -> x^3, twice.
  CHECK(numbers(s, {last}) == Doubles{512});
}

TEST_CASE("a call that was lowered before is still an x") {
  Graph graph;
  const Scope s(graph);
  define_f(s);
  const Output x = ops::constant(s, 3.0), y = ops::constant(s, 5.0);
  const Output z = call(s, "f", {x, y})[0];
  const Output square = ops::square(s, z);
  const Output by_x = dense_gradients(s, {square}, {x})[0];
  const Output by_z = dense_gradients(s, {square}, {z})[0];
  const Output again = dense_gradients(s, {ops::exp(s, z)}, {z})[0];
  REQUIRE(s.ok());
  const Doubles values = numbers(s, {z, by_z, again, ops::exp(s, z)});
  CHECK(by_x.valid());
  CHECK(values[1] == 2 * values[0]);
  CHECK(values[2] == values[3]);
}

TEST_CASE("a function's own gradient function is called") {
  Graph graph;
  const Scope s(graph);
  define_f(s);
  define_function(
      s, {.name = "df",
          .args = {{"x", DataType::kDouble, {}},
                   {"y", DataType::kDouble, {}},
                   {"dz", DataType::kDouble, {}}},
          .results = {{DataType::kDouble, {}}, {DataType::kDouble, {}}},
          .body = [](const Scope& in, const Outputs& a) -> Outputs {
            return {ops::mul(in, a[2], 100.0), ops::neg(in, a[2])};
          }});
  REQUIRE(graph.library().add_gradient("f", "df").ok());
  const Output x = ops::constant(s, 3.0), y = ops::constant(s, 5.0);
  const Output z = call(s, "f", {x, y})[0];
  CHECK(numbers(s, dense_gradients(s, {z}, {x, y})) == Doubles{100, -1});
  // Forward mode is its transpose, in a loop as well.
  CHECK(numbers(s, jvp(s, {z}, {x, y}, {x, y})) == Doubles{295});
  const Output last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 2); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), call(in, "f", {v[1], y})[0]};
      },
      {0, x}, {.shapes = {{"[1]", PartialShape()}}})[1];
  CHECK(numbers(s, jvp(s, {last}, {x, y}, {x, y})) == Doubles{29495});
}

TEST_CASE(
    "a function's own gradient is used in functions, branches and loops") {
  Graph graph;
  const Scope s(graph);
  const auto define = [&](std::string name, auto body) {
    define_function(s, {.name = std::move(name),
                        .args = {{"x", DataType::kDouble, {}}},
                        .results = {{DataType::kDouble, {}}},
                        .body = [body](const Scope& in, const Outputs& a) {
                          return Outputs{body(in, a[0])};
                        }});
  };
  // x^3, whose gradient is said to be dy * 10 x; its own is that of mul.
  define("cube", [](const Scope& in, const Output& x) {
    return ops::mul(in, ops::square(in, x), x);
  });
  define_function(
      s, {.name = "own",
          .args = {{"x", DataType::kDouble, {}}, {"dy", DataType::kDouble, {}}},
          .results = {{DataType::kDouble, {}}},
          .body = [](const Scope& in, const Outputs& a) -> Outputs {
            return {ops::mul(in, a[1], ops::mul(in, a[0], 10.0))};
          }});
  REQUIRE(graph.library().add_gradient("cube", "own").ok());
  define("once", [](const Scope& in, const Output& x) {
    return ops::mul(in, call(in, "cube", {x})[0], 2.0);
  });
  define("twice", [](const Scope& in, const Output& x) {
    return call(in, "once", {call(in, "once", {x})[0]})[0];
  });
  define("chosen", [](const Scope& in, const Output& x) {
    return cond(
        in, ops::greater(in, x, 0.0),
        [&](const Scope& then) { return Outputs{call(then, "cube", {x})[0]}; },
        [&](const Scope& other) { return Outputs{ops::neg(other, x)}; })[0];
  });
  define("looped", [](const Scope& in, const Output& x) {
    return while_loop(
        in,
        [](const Scope& at, const Outputs& v) {
          return ops::less(at, v[0], 2);
        },
        [](const Scope& at, const Outputs& v) -> Outputs {
          return {ops::add(at, v[0], 1), call(at, "cube", {v[1]})[0]};
        },
        {0, x})[1];
  });
  const Output x = ops::constant(s, 3.0);
  const auto derivatives = [&](const std::string& function) {
    const Output y = call(s, function, {x})[0];
    const Output by_x = dense_gradients(s, {y}, {x})[0];
    const Output again = dense_gradients(s, {by_x}, {x})[0];
    REQUIRE(s.ok());
    return numbers(s, {y, by_x, again});
  };
  CHECK(derivatives("cube") == Doubles{27, 30, 10});
  CHECK(derivatives("once") == Doubles{54, 60, 20});
  // y = 2 u^3 and u = 2 x^3, which is 54: y' is 20 u * 20 x, of which the
  // second has u' again.
  CHECK(derivatives("twice") == Doubles{2.0 * 54 * 54 * 54, 20.0 * 54 * 60,
                                        20.0 * 60 * 60 + 20.0 * 54 * 20});
  CHECK(derivatives("chosen") == Doubles{27, 30, 10});
  CHECK(derivatives("looped") ==
        Doubles{19683, 270 * 30.0, 10.0 * 30 * 30 + 270.0 * 10});
}

TEST_CASE("a call may have an input that is named as its nodes will be") {
  Graph graph;
  const Scope s(graph);
  define_f(s);
  const Output x = ops::constant(s, 3.0);
  const Output z = call(s.named("z"), "f", {x, 5.0})[0];
  CHECK(graph.find("z/y") != nullptr);
  CHECK(numbers(s, {z, dense_gradients(s, {z}, {x})[0]}) == Doubles{45, 30});
}

TEST_CASE("a call's result stays an x after the call was lowered") {
  Graph graph;
  const Scope s(graph);
  define_f(s);
  const Output x = ops::constant(s, 3.0), y = ops::constant(s, 5.0);
  const Output z = call(s, "f", {x, y})[0];
  const Output w = ops::square(s, z);
  const Outputs both = dense_gradients(s, {w}, {x, z});
  const Output again = dense_gradients(s, {w}, {z})[0];
  const Output later = dense_gradients(s, {ops::mul(s, w, z)}, {z})[0];
  CHECK(numbers(s, {both[0], both[1], again, later}) ==
        Doubles{90 * 30, 90, 90, 3 * 45 * 45});
}
