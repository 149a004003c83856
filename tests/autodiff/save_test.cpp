// Gradients of loops that save only some of their values.
#include <doctest/doctest.h>

#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/gradient_check.h"
#include "tests/autodiff/programs.h"
#include "tests/autodiff/recompute_check.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using tagflow::autodiff::testing::check_gradients;
using tagflow::autodiff::testing::check_same;
using tagflow::autodiff::testing::Doubles;
using tagflow::autodiff::testing::less_than;
using tagflow::autodiff::testing::numbers;
using tagflow::autodiff::testing::sum_of;
using tagflow::autodiff::testing::values;

namespace {

std::vector<Save> plans() {
  return {Save::every(1), Save::every(3), Save::every(100), Save::log()};
}

// A loop whose variables and constants are of any shape.
WhileOptions options_of(Save save, size_t variables) {
  WhileOptions options;
  options.save = std::move(save);
  options.shape_invariants = {PartialShape::scalar()};
  options.shape_invariants.resize(variables);
  return options;
}

// x^8, by a loop of three iterations.
Output squared_in_a_loop(const Scope& s, const Output& x) {
  return while_loop(s, less_than(3),
                    [](const Scope& l, const Outputs& v) -> Outputs {
                      return {ops::add(l, v[0], 1), ops::square(l, v[1])};
                    },
                    {0, x})[1];
}

}  // namespace

TEST_CASE("a loop that keeps little has the gradients of one that keeps all") {
  for (const Save& save : plans())
    for (const int trips : {0, 1, 2, 7, 30}) {
      CAPTURE(trips);
      check_same(
          [&](const Scope& s, const Outputs& x, bool again) {
            const Output y = while_loop(
                s, less_than(trips),
                [&](const Scope& l, const Outputs& v) -> Outputs {
                  const Output i = ops::cast(l, v[0], DataType::kDouble);
                  const Output next =
                      ops::tanh(l, ops::add(l, ops::mul(l, v[1], x[1]),
                                            ops::mul(l, i, x[1])));
                  return {ops::add(l, v[0], 1), next,
                          ops::add(l, v[2], ops::square(l, next))};
                },
                {0, x[0], x[2]}, options_of(again ? save : Save(), 3))[2];
            return sum_of(s, y);
          },
          {values({4}), values({4}), values({4})});
    }
}

TEST_CASE("Save::every takes a tensor as k, also in nested loops") {
  check_same(
      [&](const Scope& s, const Outputs& x, bool again) {
        const Output every = ops::identity(s, ops::constant(s, 2));
        const Save save = again ? Save::every(every) : Save();
        const Output y = while_loop(
            s, less_than(5),
            [&](const Scope& l, const Outputs& v) -> Outputs {
              const Output made = while_loop(
                  l, less_than(7),
                  [&](const Scope& in, const Outputs& w) -> Outputs {
                    return {ops::add(in, w[0], 1),
                            ops::sin(in, ops::mul(in, w[1], x[1]))};
                  },
                  {0, v[1]}, options_of(save, 2))[1];
              return {ops::add(l, v[0], 1), made};
            },
            {0, x[0]}, options_of(save, 2))[1];
        return sum_of(s, y);
      },
      {values({3}), values({3})});
}

TEST_CASE("Save::every takes a tensor as k") {
  for (const int k : {-2, 1, 4}) {
    check_same(
        [&](const Scope& s, const Outputs& x, bool again) {
          const Output every = ops::identity(s, ops::constant(s, k));
          const Output y = while_loop(
              s, less_than(9),
              [&](const Scope& l, const Outputs& v) -> Outputs {
                return {ops::add(l, v[0], 1),
                        ops::sin(l, ops::mul(l, v[1], x[1]))};
              },
              {0, x[0]}, options_of(again ? Save::every(every) : Save(), 2))[1];
          return sum_of(s, y);
        },
        {values({4}), values({4})});
  }
}

TEST_CASE("loops that keep little are differentiated to second order") {
  for (const Save& save : plans())
    check_gradients(
        [&](const Scope& s, const Outputs& x) -> Outputs {
          return while_loop(
              s, less_than(10),
              [&](const Scope& l, const Outputs& v) -> Outputs {
                return {ops::add(l, v[0], 1),
                        ops::sin(l, ops::mul(l, v[1], x[1]))};
              },
              {0, x[0]}, options_of(save, 2))[1];
        },
        {values({2}), values({2})});
}

TEST_CASE("loops that keep little nest") {
  for (const Save& outer : plans())
    for (const Save& inner : {Save::every(2), Save::log()})
      check_same(
          [&](const Scope& s, const Outputs& x, bool again) {
            const Output y = while_loop(
                s, less_than(4),
                [&](const Scope& l, const Outputs& v) -> Outputs {
                  const Output made = while_loop(
                      l, less_than(ops::add(l, v[0], 9)),
                      [&](const Scope& in, const Outputs& w) -> Outputs {
                        return {ops::add(in, w[0], 1),
                                ops::sin(in, ops::mul(in, w[1], x[1]))};
                      },
                      {0, v[1]}, options_of(again ? inner : Save(), 2))[1];
                  return {ops::add(l, v[0], 1), made};
                },
                {0, x[0]}, options_of(again ? outer : Save(), 2))[1];
            return sum_of(s, y);
          },
          {values({3}), values({3})});
}

TEST_CASE("a loop that keeps little may be in a branch, and have branches") {
  for (const Save& save : plans())
    for (const double at : {0.5, -0.5})
      check_same(
          [&](const Scope& s, const Outputs& x, bool again) {
            const Output y = cond(
                s, ops::greater(s, sum_of(s, x[0]), 0.0),
                [&](const Scope& b) -> Outputs {
                  return while_loop(
                      b, less_than(20),
                      [&](const Scope& l, const Outputs& v) -> Outputs {
                        const Output even =
                            ops::equal(l, ops::floor_mod(l, v[0], 2), 0);
                        const Output next = cond(
                            l, even,
                            [&](const Scope& t) -> Outputs {
                              return ops::sin(t, ops::mul(t, v[1], x[1]));
                            },
                            [&](const Scope& e) -> Outputs {
                              return ops::mul(e, v[1], ops::exp(e, v[1]));
                            })[0];
                        return {ops::add(l, v[0], 1), next};
                      },
                      {0, x[0]}, options_of(again ? save : Save(), 2))[1];
                },
                [&](const Scope& b) -> Outputs {
                  return ops::mul(b, x[0], 2.0);
                })[0];
            return sum_of(s, y);
          },
          {Tensor::vector<double>({at, 0.1}), values({2})});
}

TEST_CASE("a loop that keeps little keeps the random numbers that it draws") {
  for (const Save& save : plans())
    check_same(
        [&](const Scope& s, const Outputs& x, bool again) {
          const auto noise = [](const Scope& in, const Output& like) -> Output {
            return in.op("RandomUniform", {ops::shape(in, like)},
                         {{"dtype", DataType::kDouble},
                          {"seed", int64_t(3)},
                          {"seed2", int64_t(4)}});
          };
          const Output y = while_loop(
              s, less_than(11),
              [&](const Scope& l, const Outputs& v) -> Outputs {
                const Output drawn = ops::mul(l, v[1], noise(l, v[1]));
                const Output next = cond(
                    l, ops::less(l, v[0], 5),
                    [&](const Scope& t) -> Outputs {
                      return ops::mul(t, ops::sin(t, drawn), noise(t, drawn));
                    },
                    [&](const Scope& e) -> Outputs {
                      return ops::sin(e, ops::mul(e, drawn, 3.0));
                    })[0];
                return {ops::add(l, v[0], 1), next};
              },
              {0, x[0]}, options_of(again ? save : Save(), 2))[1];
          return sum_of(s, y);
        },
        {values({3})});
}

TEST_CASE("arrays go through loops that keep little") {
  for (const Save& save : plans())
    check_same(
        [&](const Scope& s, const Outputs& x, bool again) {
          const TensorArray in =
              TensorArray(s, 12, DataType::kDouble).unstack(s, x[0]);
          const TensorArray out = TensorArray(s, 12, DataType::kDouble);
          WhileOptions options = options_of(again ? save : Save(), 3);
          options.shape_invariants[2] = PartialShape::scalar();
          const Outputs last = while_loop(
              s, less_than(12),
              [&](const Scope& l, const Outputs& v) -> Outputs {
                const Output next =
                    ops::sin(l, ops::mul(l, v[1], in.read(l, v[0])));
                return {ops::add(l, v[0], 1), next,
                        out.with_flow(v[2]).write(l, v[0], next).flow()};
              },
              {0, x[1], out.flow()}, options);
          return sum_of(s, out.with_flow(last[2]).stack(s));
        },
        {values({12, 3}), values({3})});
}

TEST_CASE("lists and gradients of rows go through loops that keep little") {
  for (const Save& save : plans())
    check_same(
        [&](const Scope& s, const Outputs& x, bool again) {
          const Output any = ops::constant(s, -1);
          const Output list = s.op("EmptyTensorList", {any, any},
                                   {{"element_dtype", DataType::kDouble}});
          WhileOptions options = options_of(again ? save : Save(), 3);
          options.shape_invariants[2] = PartialShape::scalar();
          const Output last = while_loop(
              s, less_than(10),
              [&](const Scope& l, const Outputs& v) -> Outputs {
                const Output row =
                    ops::gather(l, x[0], ops::floor_mod(l, v[0], 3));
                const Output next = ops::sin(l, ops::mul(l, v[1], row));
                return {ops::add(l, v[0], 1), next,
                        l.op("TensorListPushBack", {v[2], next})};
              },
              {0, x[1], list}, options)[2];
          return sum_of(s, s.op("TensorListStack", {last, any},
                                {{"element_dtype", DataType::kDouble}}));
        },
        {values({3, 2}), values({2})});
}

TEST_CASE("a variable that a loop reads and writes counts as it was read") {
  for (const Save& save : plans()) {
    Graph graph;
    const Scope s(graph);
    const Output x = ops::constant(s, 2.0);
    const ops::Variable w = ops::variable(s, DataType::kDouble, {});
    const Output init = ops::assign(s, w, 3.0);
    WhileOptions options = options_of(save, 2);
    options.parallel_iterations = 1;
    const Output y = while_loop(
        s, less_than(12),
        [&](const Scope& l, const Outputs& v) -> Outputs {
          const Output now =
              ops::read(l.with_control_dependencies({v[0], v[1]}), w);
          const Output done =
              ops::assign(l, w, ops::add(l, ops::stop_gradient(l, now), 1.0));
          const Output i =
              ops::add(l.with_control_dependencies({done}), v[0], 1);
          return {i, ops::add(l, v[1], ops::mul(l, ops::square(l, now), x))};
        },
        {0, ops::constant(s, 0.0)}, options)[1];
    const Outputs grads = dense_gradients(s, {y}, {x, w.handle});
    // The sums of w^2 and of 2 w x for w = 3 ... 14.
    CHECK(numbers(s, {y, grads[0], grads[1]}, {}, {}, init) ==
          Doubles{2020, 1010, 408});
  }
}

TEST_CASE("a loop that was a While op is found by the op's name") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, 2.0);
  const Output y = squared_in_a_loop(s, x);
  for (Node* node : graph.nodes())
    if (node->op() == "Enter")
      graph.set_attr(node, "frame_name", std::string("loop/frame"));
  GradientOptions options;
  options.save["loop"] = "log";
  dense_gradients(s, {y}, {x}, options);
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  const Node* cond = graph.find("while/LoopCond");
  CHECK(cond->attr<std::string>(kSaveAttr).value() == "log");
}

TEST_CASE("a Save plan that makes no sense is refused") {
  const auto error_of = [](const auto& change) {
    Graph graph;
    const Scope s(graph);
    const Output x = ops::constant(s, 2.0);
    const Output y = squared_in_a_loop(s, x);
    GradientOptions options;
    change(graph, options);
    dense_gradients(s, {y}, {x}, options);
    return s.status().to_string();
  };
  const auto contains = [](const std::string& text, const char* part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  contains(error_of([](Graph&, GradientOptions& options) {
             options.save["nowhere"] = "log";
           }),
           "loop \"nowhere\": no loop has a frame of this name; the graph has "
           "\"while/while_context\"");
  for (const char* text : {"every", "every:", "every:0", "every:x", "some"})
    contains(error_of([&](Graph&, GradientOptions& options) {
               options.save["while/while_context"] = text;
             }),
             "loop \"while/while_context\"");
  for (const char* text : {"every", "every:-3", "some"})
    contains(error_of([&](Graph& graph, GradientOptions&) {
               graph.set_attr(graph.find("while/LoopCond"),
                              std::string(kSaveAttr), std::string(text));
             }),
             "node \"while/LoopCond\"");
  CHECK(error_of([](Graph&, GradientOptions& options) {
          options.save["while/while_context"] = "every:2";
        }) == "OK");
}
