// The nodes that recompute() recomputes; the results stay the same.
#include "autodiff/recompute.h"

#include <doctest/doctest.h>

#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/gradient_check.h"
#include "tests/autodiff/recompute_check.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using tagflow::autodiff::testing::check_gradients;
using tagflow::autodiff::testing::check_same;
using tagflow::autodiff::testing::Doubles;
using tagflow::autodiff::testing::evaluate;
using tagflow::autodiff::testing::numbers;
using tagflow::autodiff::testing::same_bits;
using tagflow::autodiff::testing::sum_of;
using tagflow::autodiff::testing::values;

namespace {

// f as it is, or as a recomputed block; its nodes, by which random numbers go,
// have the same names.
Outputs maybe(bool again, const Scope& s, const RecomputeFn& f,
              const Outputs& args) {
  if (!again) return f(s.sub_scope("recompute"), args);
  Inputs inputs;
  for (const Output& arg : args) inputs.add(arg);
  return recompute(s, f, inputs);
}

}  // namespace

TEST_CASE("a recomputed block has the values and gradients of its function") {
  check_same(
      [](const Scope& s, const Outputs& x, bool again) {
        const Output y = maybe(
            again, s,
            [](const Scope& in, const Outputs& a) -> Outputs {
              return ops::tanh(in, ops::mul(in, ops::exp(in, a[0]), a[1]));
            },
            x)[0];
        return sum_of(s, ops::square(s, y));
      },
      {values({3, 4}), values({3, 4})});
}

TEST_CASE("a recomputed block is differentiated to second order") {
  check_gradients(
      [](const Scope& s, const Outputs& x) {
        return recompute(s,
                         [](const Scope& in, const Outputs& a) -> Outputs {
                           return ops::mul(in, ops::tanh(in, a[0]),
                                           ops::exp(in, a[1]));
                         },
                         {x[0], x[1]});
      },
      {values({2, 3}), values({3})});
}

TEST_CASE("recomputed blocks nest, and capture what they use") {
  check_same(
      [](const Scope& s, const Outputs& x, bool again) {
        const Output y =
            maybe(again, s,
                  [&](const Scope& in, const Outputs& a) -> Outputs {
                    const Output inner = maybe(
                        again, in,
                        [&](const Scope& deep, const Outputs& b) -> Outputs {
                          return ops::tanh(deep, ops::mul(deep, b[0], x[1]));
                        },
                        {ops::exp(in, a[0])})[0];
                    return ops::mul(in, inner, inner);
                  },
                  {x[0]})[0];
        return sum_of(s, y);
      },
      {values({4}), values({4})});
}

TEST_CASE("recompute: random numbers are not drawn again") {
  // Two draws would be two numbers.
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s, DataType::kDouble, {});
  const Outputs made =
      recompute(s,
                [](const Scope& in, const Outputs& a) -> Outputs {
                  const Output shape = ops::shape(in, a[0]);
                  const Output noise = in.op("RandomUniform", {shape},
                                             {{"dtype", DataType::kDouble}});
                  return {ops::mul(in, ops::exp(in, a[0]), noise), noise};
                },
                {x});
  const Output grad = dense_gradients(s, {made[0]}, {x})[0];
  const auto got =
      evaluate(s, {made[0], grad, made[1]}, {{x.name(), values({5})}});
  CHECK(same_bits(got[0], got[1]));
  CHECK(got[2].flat<double>()[0] != got[2].flat<double>()[1]);
}

TEST_CASE("recompute: a recomputed loop draws no random numbers again") {
  check_same(
      [](const Scope& s, const Outputs& x, bool again) {
        const Output y =
            maybe(again, s,
                  [](const Scope& in, const Outputs& a) -> Outputs {
                    return while_loop(
                        in,
                        [](const Scope& l, const Outputs& v) {
                          return ops::less(l, v[0], 5);
                        },
                        [](const Scope& l, const Outputs& v) -> Outputs {
                          const Output noise =
                              l.op("RandomUniform", {ops::shape(l, v[1])},
                                   {{"dtype", DataType::kDouble},
                                    {"seed", int64_t(3)},
                                    {"seed2", int64_t(4)}});
                          return {ops::add(l, v[0], 1),
                                  ops::mul(l, ops::tanh(l, v[1]), noise)};
                        },
                        {0, a[0]})[1];
                  },
                  {x[0]})[0];
        return sum_of(s, y);
      },
      {values({4})});
}

TEST_CASE("recompute: branches within loops draw no random numbers again") {
  check_same(
      [](const Scope& s, const Outputs& x, bool again) {
        const auto noisy = [](const Scope& b, const Output& v, int64_t seed) {
          const Output noise = b.op("RandomUniform", {ops::shape(b, v)},
                                    {{"dtype", DataType::kDouble},
                                     {"seed", seed},
                                     {"seed2", int64_t(4)}});
          return ops::mul(b, ops::tanh(b, v), noise);
        };
        const auto body = [&](const Scope& l, const Outputs& v) -> Outputs {
          const Output even = ops::equal(l, ops::floor_mod(l, v[0], 2), 0);
          const Output next = cond(
              l, even,
              [&](const Scope& b) -> Outputs { return noisy(b, v[1], 1); },
              [&](const Scope& b) -> Outputs { return ops::exp(b, v[1]); })[0];
          return {ops::add(l, v[0], 1), next};
        };
        const auto few = [](const Scope& l, const Outputs& v) {
          return ops::less(l, v[0], 4);
        };
        const Output y = maybe(
            again, s,
            [&](const Scope& in, const Outputs& a) -> Outputs {
              return while_loop(
                  in,
                  [](const Scope& l, const Outputs& v) {
                    return ops::less(l, v[0], 3);
                  },
                  [&](const Scope& l, const Outputs& v) -> Outputs {
                    const Output inner = while_loop(l, few, body, {0, v[1]})[1];
                    return {ops::add(l, v[0], 1), inner};
                  },
                  {0, a[0]})[1];
            },
            {x[0]})[0];
        return sum_of(s, y);
      },
      {values({4})});
}

TEST_CASE("a recomputed block in a loop keeps what enters it in each trip") {
  check_same(
      [](const Scope& s, const Outputs& x, bool again) {
        const Output y = while_loop(
            s,
            [](const Scope& l, const Outputs& v) {
              return ops::less(l, v[0], 6);
            },
            [&](const Scope& l, const Outputs& v) -> Outputs {
              const Output next = maybe(
                  again, l,
                  [&](const Scope& in, const Outputs& a) -> Outputs {
                    const Output noise =
                        in.op("RandomUniform", {ops::shape(in, a[0])},
                              {{"dtype", DataType::kDouble},
                               {"seed", int64_t(1)},
                               {"seed2", int64_t(4)}});
                    return ops::tanh(
                        in, ops::mul(in, ops::exp(in, ops::mul(in, a[0], x[1])),
                                     noise));
                  },
                  {v[1]})[0];
              return {ops::add(l, v[0], 1), next};
            },
            {0, x[0]}, {.shape_invariants = {PartialShape::scalar(), {}}})[1];
        return sum_of(s, y);
      },
      {values({4}), values({4})});
}

TEST_CASE("recompute: conditionals are recomputed, and blocks in a branch") {
  for (const double at : {0.7, -0.7}) {
    check_same(
        [](const Scope& s, const Outputs& x, bool again) {
          const Output is_high = ops::greater(s, sum_of(s, x[0]), 0.0);
          const Output y = maybe(
              again, s,
              [&](const Scope& in, const Outputs& a) -> Outputs {
                return cond(
                    in, is_high,
                    [&](const Scope& b) -> Outputs {
                      return ops::tanh(b, ops::exp(b, a[0]));
                    },
                    [&](const Scope& b) -> Outputs {
                      return ops::square(b, ops::exp(b, a[1]));
                    });
              },
              x)[0];
          const Output z = cond(
              s, is_high,
              [&](const Scope& b) -> Outputs {
                return maybe(again, b,
                             [&](const Scope& in, const Outputs& a) -> Outputs {
                               return ops::exp(in, ops::mul(in, a[0], x[1]));
                             },
                             {y});
              },
              [&](const Scope& b) -> Outputs { return ops::neg(b, y); })[0];
          return sum_of(s, z);
        },
        {Tensor::vector<double>({at, 0.1}), values({2})});
  }
}

TEST_CASE("arrays that a recomputed block makes are made again") {
  check_same(
      [](const Scope& s, const Outputs& x, bool again) {
        const Output y = maybe(
            again, s,
            [](const Scope& in, const Outputs& a) -> Outputs {
              return map_fn(
                  in,
                  [&](const Scope& l, const Output& v) {
                    return ops::tanh(l, ops::mul(l, v, ops::exp(l, a[1])));
                  },
                  a[0]);
            },
            x)[0];
        return sum_of(s, ops::square(s, y));
      },
      {values({5, 2}), values({2})});
}

TEST_CASE("arrays that a recomputed block in a loop reads are read once") {
  check_same(
      [](const Scope& s, const Outputs& x, bool again) {
        const Output y = map_fn(
            s,
            [&](const Scope& l, const Output& v) {
              return maybe(again, l,
                           [&](const Scope& in, const Outputs& a) -> Outputs {
                             return ops::tanh(
                                 in, ops::mul(in, a[0], ops::exp(in, x[1])));
                           },
                           {v})[0];
            },
            x[0]);
        return sum_of(s, ops::square(s, y));
      },
      {values({5, 2}), values({2})});
}

TEST_CASE("recompute: a gradient of rows stays one of rows") {
  check_same(
      [](const Scope& s, const Outputs& x, bool again) {
        const Output y = maybe(
            again, s,
            [](const Scope& in, const Outputs& a) -> Outputs {
              const Output indices =
                  ops::constant(in, Tensor::vector<int32_t>({1, 0, 1}));
              return ops::tanh(in, ops::gather(in, a[0], indices));
            },
            x)[0];
        return sum_of(s, y);
      },
      {values({3, 2})});
}

TEST_CASE("recompute: a variable is read once, as it was") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, 2.0);
  const ops::Variable w = ops::variable(s, DataType::kDouble, {});
  const Output init = ops::assign(s, w, 3.0);
  for (const bool in_loop : {false, true}) {
    CAPTURE(in_loop);
    const auto step = [&](const Scope& in, const Output& v) {
      return ops::mul(in, ops::square(in, ops::read(in, w)), v);
    };
    const Output y = recompute(
        s,
        [&](const Scope& in, const Outputs& a) -> Outputs {
          if (!in_loop) return step(in, a[0]);
          return while_loop(
              in,
              [](const Scope& l, const Outputs& v) {
                return ops::less(l, v[0], 2);
              },
              [&](const Scope& l, const Outputs& v) -> Outputs {
                return {ops::add(l, v[0], 1), step(l, v[1])};
              },
              {0, a[0]}, {.shape_invariants = {PartialShape::scalar(), {}}})[1];
        },
        {x})[0];
    // The assignment comes between the value and its gradient.
    const Output later = ops::assign(s.with_control_dependencies({y}), w, 5.0);
    const Output dy = ops::identity(s.with_control_dependencies({later}),
                                    ops::constant(s, 1.0));
    GradientOptions options;
    options.grad_ys = {dy};
    const Outputs first = dense_gradients(s, {y}, {x, w.handle}, options);
    const Output second = dense_gradients(s, {first[1]}, {w.handle})[0];
    // w^2 x, or w^4 x, at w = 3 and x = 2
    const Doubles expected =
        in_loop ? Doubles{162, 81, 216, 216} : Doubles{18, 9, 12, 4};
    CHECK(numbers(s, {y, first[0], first[1], second}, {}, {}, init) ==
          expected);
  }
}

TEST_CASE("a recomputed block's inner tensor can be an x") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, 2.0);
  Output inside;
  const Output y = recompute(s,
                             [&](const Scope& in, const Outputs& a) -> Outputs {
                               inside = ops::square(in, a[0]);
                               return ops::mul(in, inside, a[0]);
                             },
                             {x})[0];
  CHECK(numbers(s, dense_gradients(s, {y}, {x, inside})) == Doubles{12, 2});
}

TEST_CASE("a recomputed block has no gradient through a constant inside") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, 2.0);
  Output inside;
  const Output y = recompute(s,
                             [&](const Scope& in, const Outputs& a) -> Outputs {
                               inside = ops::square(in, a[0]);
                               return ops::mul(in, inside, a[0]);
                             },
                             {x})[0];
  GradientOptions options;
  options.stop_gradients = {inside};
  CHECK(numbers(s, dense_gradients(s, {y}, {x}, options)) == Doubles{4});
}

TEST_CASE("recompute: a node that says it stands for another one is checked") {
  const auto error_of = [](const std::string& op, int64_t outputs) {
    Graph graph;
    const Scope s(graph);
    const Output x = ops::constant(s, 2.0);
    const Output y =
        s.op("IdentityN", {x, x},
             {{"_stands_for", op}, {"_stand_in_outputs", outputs}})[0];
    dense_gradients(s, {y}, {x});
    return s.status().to_string();
  };
  for (const auto& [op, outputs] :
       std::vector<std::pair<std::string, int64_t>>{{"Mul", 1},
                                                    {"None", 1},
                                                    {"ReadVariableOp", 1},
                                                    {"ReadVariableOp", 0},
                                                    {"ReadVariableOp", 9}})
    CHECK(error_of(op, outputs).find("cannot stand for a \"" + op + "\"") !=
          std::string::npos);
}
