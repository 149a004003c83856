// Gradients of loops and conditionals, in closed form.
#include <doctest/doctest.h>

#include <array>
#include <map>
#include <mutex>

#include "actors/watch/observer.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/programs.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using tagflow::autodiff::testing::cube_by_array;
using tagflow::autodiff::testing::doubled;
using tagflow::autodiff::testing::Doubles;
using tagflow::autodiff::testing::evaluate;
using tagflow::autodiff::testing::less_than;
using tagflow::autodiff::testing::nested_power;
using tagflow::autodiff::testing::numbers;
using tagflow::autodiff::testing::power;
using tagflow::autodiff::testing::power_where;
using tagflow::autodiff::testing::product_of_reads;
using tagflow::autodiff::testing::ScalarProgram;
using tagflow::autodiff::testing::tripled_and_squared;

namespace {

struct Program : ScalarProgram {
  Outputs grad(const Output& y, const Outputs& xs) {
    return dense_gradients(s, {y}, xs, {.zeros_if_unconnected = true});
  }
};

// Counts what iterations receive from other devices, and on how many devices
// each op has run.
struct Crossings : actors::Observer {
  void on_fired(const actors::Location& location, const Node& node,
                std::span<const Tensor> outputs) override {
    const std::lock_guard lock(mutex);
    ++fired[node.op()][std::string(location.device)];
    if (node.op() == "_Recv" && !location.frame.empty())
      ++received[outputs[0].dtype()];
  }

  std::map<std::string, std::map<std::string, int>, std::less<>> fired;
  std::map<DataType, int> received;
  std::mutex mutex;
};

}  // namespace

TEST_CASE("the gradient of a loop is a loop, to any order") {
  for (const int64_t window : {1, 32}) {
    Program p;
    const Output x = p.number(2, "x"), w = p.number(3, "w");
    const Output y = power(p.s, x, w, 3, window);
    const Outputs first = p.grad(y, {x, w});
    Outputs all{y, first[0], first[1]};
    Output higher = first[1];
    for (int order = 2; order <= 4; ++order) {
      higher = p.grad(higher, {w})[0];
      all.push_back(higher);
    }
    CHECK(numbers(p.s, all) == Doubles{54, 27, 54, 36, 12, 0});
  }
}

TEST_CASE("a loop without a trip has the gradient of its variable") {
  Program p;
  const Output x = p.number(2, "x"), w = p.number(3, "w");
  const Outputs grads = p.grad(power(p.s, x, w, 0), {x, w});
  CHECK(numbers(p.s, grads) == Doubles{1, 0});
}

TEST_CASE("an inner loop saves its values for each outer iteration") {
  Program p;
  const Output x = p.number(1, "x"), w = p.number(2, "w");
  const Output y = nested_power(p.s, x, w);
  const Output first = p.grad(y, {w})[0];
  const Output second = p.grad(first, {w})[0];
  CHECK(numbers(p.s, {y, first, second}) == Doubles{64, 192, 480});
}

TEST_CASE("the gradient of a loop over devices saves and adds where it is") {
  Program p;
  const auto at = [](const Scope& in, size_t k) {
    return in.with_device(fmt::format("/cpu:{}", k));
  };
  const Tensor twos = Tensor::of<float>({2, 2}, {2, 2, 2, 2});
  Outputs first{ops::constant(at(p.s, 0), 0)}, weights;
  for (size_t k = 0; k < 2; ++k) {
    const Scope here = at(p.s, k);
    const Output w = ops::placeholder_with_default(
        here, ops::constant(here, twos), PartialShape({2, 2}));
    first.push_back(ops::neg(here, w));
    weights.push_back(w);
  }
  const Outputs last = while_loop(
      p.s,
      [&](const Scope& in, const Outputs& v) {
        return ops::less(at(in, 0), v[0], 3);
      },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(at(in, 0), v[0], 1),
                ops::matmul(at(in, 0), v[1], weights[0]),
                ops::matmul(at(in, 1), v[2], weights[1])};
      },
      first);
  const Outputs grads =
      p.grad(ops::add(p.s, ops::reduce_sum(at(p.s, 0), last[1], {0, 1}),
                      ops::reduce_sum(at(p.s, 1), last[2], {0, 1})),
             weights);
  actors::SessionOptions options;
  options.devices = "cpu:2";
  const auto session = actors::Session::create(options).value();
  REQUIRE(session->extend(p.s.graph()).ok());
  Crossings crossings;
  actors::RunOptions watched;
  watched.observer = &crossings;
  const auto results =
      session->run({}, {grads[0].name(), grads[1].name()}, {}, watched);
  REQUIRE_MESSAGE(results.ok(), results.status().to_string());
  for (const Tensor& grad : *results)
    CHECK(identical(grad, Tensor::of<float>({2, 2}, {-256, -256, -256, -256})));
  CHECK(crossings.received[DataType::kBool] > 0);  // the predicates
  CHECK(crossings.received[DataType::kFloat] == 0);
  CHECK(crossings.received[DataType::kVariant] == 0);
  CHECK(crossings.fired["PersistentStackPush"].size() == 2);
  CHECK(crossings.fired["_ProductSumAdd"].size() == 2);
}

TEST_CASE("a loop on a branch that is not taken has a gradient of zero") {
  for (const bool taken : {false, true}) {
    Program p;
    const Output x = p.number(2, "x"), w = p.number(3, "w");
    const Output flag = p.flag();
    const Output y = power_where(p.s, flag, x, w);
    const Outputs grads = p.grad(y, {x, w});
    CHECK(numbers(p.s, grads, {{"flag", Tensor::scalar(taken)}}) ==
          (taken ? Doubles{27, 54} : Doubles{1, 0}));
  }
}

TEST_CASE("a conditional in a loop saves what its taken branch needs") {
  Program p;
  const Output x = p.number(2, "x");
  const Output y = tripled_and_squared(p.s, x);
  const Output first = p.grad(y, {x})[0];
  const Output second = p.grad(first, {x})[0];
  const Output third = p.grad(second, {x})[0];
  CHECK(numbers(p.s, {y, first, second, third}) == Doubles{108, 108, 54, 0});
}

TEST_CASE("each read of a variable counts as the version that it saw") {
  Program p;
  const ops::Variable w =
      ops::variable(p.s.named("w"), DataType::kDouble, PartialShape::scalar());
  const Output init = ops::assign(p.s, w, 1.0);
  const Output y = product_of_reads(p.s, w);
  const Output grad = p.grad(y, {w.handle})[0];
  CHECK(numbers(p.s, {y, grad}, {}, {}, init) == Doubles{8, 14});
}

TEST_CASE("loops in branches of loops may read a variable") {
  // y becomes 2 y + 3 w^2, twice: TensorFlow's loops of primitives have a wrong
  // gradient here.
  Program p;
  const ops::Variable w =
      ops::variable(p.s.named("w"), DataType::kDouble, PartialShape::scalar());
  const Output init = ops::assign(p.s, w, 3.0);
  const Output x = p.number(0, "x");
  const Output yes = ops::placeholder(p.s.named("yes"), DataType::kBool,
                                      PartialShape::scalar());
  const Output y = while_loop(
      p.s, less_than(2),
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const auto inner = [&](const Scope& b) -> Outputs {
          return while_loop(b, less_than(3),
                            [&](const Scope& c, const Outputs& u) -> Outputs {
                              const Output now =
                                  ops::reshape(c, ops::read(c, w),
                                               Tensor::of<int32_t>({0}, {}));
                              return {ops::add(c, u[0], 1),
                                      ops::add(c, u[1], ops::square(c, now))};
                            },
                            {0, v[1]})[1];
        };
        const auto none = [&](const Scope& b) -> Outputs {
          return ops::constant(b, 0.0);
        };
        return {ops::add(in, v[0], 1),
                ops::add(in, v[1], cond(in, yes, inner, none)[0])};
      },
      {0, x})[1];
  const Outputs first = p.grad(y, {x, w.handle});
  const Outputs second = p.grad(first[1], {w.handle});
  CHECK(numbers(p.s, {y, first[0], first[1], second[0]},
                {{"yes", Tensor::scalar(true)}}, {},
                init) == Doubles{81, 4, 54, 18});
}

TEST_CASE("an element of an array that is read three times has three parts") {
  for (const int64_t window : {1, 32}) {
    Program p;
    const Output x = p.number(2, "x");
    const Output y = cube_by_array(p.s, x, window);
    const Output first = p.grad(y, {x})[0];
    const Output again = p.grad(y, {x})[0];
    const Output second = p.grad(first, {x})[0];
    const Output third = p.grad(second, {x})[0];
    CHECK(numbers(p.s, {first, again, second, third}) ==
          Doubles{12, 12, 12, 6});
  }
}

TEST_CASE("a loop's gradient computes cheap values anew from the counter") {
  Program p;
  const Output x =
      ops::constant(p.s.named("x"), Tensor::of<double>({3}, {2, 3, 5}));
  // Each trip multiplies by x[i] x[2 - i], and by i + 1 as a number.
  const Output y = while_loop(
      p.s, less_than(3),
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output next = ops::add(in, v[0], 1);
        const Output other = ops::sub(in, 2, v[0]);
        const Output factor =
            ops::mul(in, ops::gather(in, x, v[0]), ops::gather(in, x, other));
        const Output number = ops::cast(in, next, DataType::kDouble);
        return {next, ops::mul(in, ops::mul(in, v[1], factor), number)};
      },
      {0, ops::constant(p.s, 1.0)})[1];
  std::vector<KeptValue> kept;
  const Output first = dense_gradients(p.s, {y}, {x}, {.kept = &kept})[0];
  const Output second = dense_gradients(p.s, {first}, {x})[0];
  int recomputed = 0;
  for (const KeptValue& value : kept) {
    CAPTURE(value.tensor);
    recomputed += value.kept == Kept::kRecomputed;
    if (value.kept == Kept::kSaved) CHECK(value.dtype == DataType::kDouble);
  }
  CHECK(recomputed == 3);
  // y = 6 (x0 x1 x2)^2: dy/dx = 2 y / x, and d(sum of that)/dx_i =
  // 4 y (sum over j of 1 / x_j) / x_i - 2 y / x_i^2.
  const std::vector<Tensor> results = evaluate(p.s, {y, first, second});
  CHECK(results[0].item<double>().value() == 5400);
  const double sum = 1.0 / 2 + 1.0 / 3 + 1.0 / 5;
  for (int i = 0; i < 3; ++i) {
    const double xi = std::array{2, 3, 5}[size_t(i)];
    CHECK(results[1].data<double>()[i] == doctest::Approx(10800 / xi));
    CHECK(results[2].data<double>()[i] ==
          doctest::Approx(21600 * sum / xi - 10800 / (xi * xi)));
  }
}

TEST_CASE("rows that a loop gathers keep their gradient sparse") {
  Program p;
  const Output table =
      ops::constant(p.s, Tensor::of<double>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  const Output sum = while_loop(
      p.s, less_than(3),
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output row = ops::gather(in, table, v[0]);
        return {ops::add(in, v[0], 1),
                ops::add(in, v[1], ops::reduce_sum(in, ops::square(in, row)))};
      },
      {0, ops::constant(p.s, 0.0)})[1];
  const std::vector<Gradient> grads = gradients(p.s, {sum}, {table});
  REQUIRE_MESSAGE(p.s.ok(), p.s.status().to_string());
  CHECK(grads[0].is_sparse());
  const Output dense = p.grad(sum, {table})[0];
  const Tensor result = evaluate(p.s, {dense})[0];
  CHECK(result.shape() == Shape{4, 2});
  const Doubles values(result.flat<double>().begin(),
                       result.flat<double>().end());
  CHECK(values == Doubles{2, 4, 6, 8, 10, 12, 0, 0});
}

TEST_CASE("rows that a branch of a loop gathers are those of its branch") {
  Program p;
  const Output x =
      ops::constant(p.s, Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Output y = while_loop(
      p.s, less_than(4),
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output next = ops::add(in, v[0], 1);
        const Output row = cond(
            in, ops::less(in, v[0], 2),
            [&](const Scope& b) -> Outputs { return ops::gather(b, x, next); },
            [&](const Scope& b) -> Outputs {
              return ops::constant(b, Tensor::of<double>({2}, {7, 8}));
            })[0];
        return {next, ops::add(in, v[1], ops::reduce_sum(in, row))};
      },
      {0, p.number(0, "zero")})[1];
  CHECK(identical(evaluate(p.s, p.grad(y, {x}))[0],
                  Tensor::of<double>({3, 2}, {0, 0, 1, 1, 1, 1})));
}

TEST_CASE("a y and an x of one iteration may be in the body of a loop") {
  Program p;
  const Output last = while_loop(
      p.s, less_than(4),
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output cube = ops::mul(in, v[1], ops::mul(in, v[1], v[1]));
        // Its rule needs a comparison, which is made beside it.
        const Output y = ops::maximum(in, cube, 0.5);
        const Output grad = dense_gradients(in, {y}, {v[1]})[0];
        // Newton's step towards the cube root of 8.
        const Output next =
            ops::sub(in, v[1], ops::real_div(in, ops::sub(in, y, 8.0), grad));
        return {ops::add(in, v[0], 1), next};
      },
      {0, ops::constant(p.s, 3.0)})[1];
  const Output slope = p.grad(last, {last})[0];
  const Doubles results = numbers(p.s, {last, slope});
  CHECK(results[0] == doctest::Approx(2.0).epsilon(1e-3));
  CHECK(results[1] == 1);
}

TEST_CASE("a loop in the body of a loop has gradients there, of any order") {
  Program p;
  const Output last = while_loop(
      p.s, less_than(2),
      [&](const Scope& in, const Outputs& v) -> Outputs {
        // w^4, by a loop of 2 trips around one of 2.
        const Output y =
            while_loop(in, less_than(2),
                       [&](const Scope& b, const Outputs& u) -> Outputs {
                         return {ops::add(b, u[0], 1), power(b, u[1], v[1], 2)};
                       },
                       {0, ops::constant(in, 1.0)})[1];
        const Output first = dense_gradients(in, {y}, {v[1]})[0];
        const Output second = dense_gradients(in, {first}, {v[1]})[0];
        return {ops::add(in, v[0], 1), ops::mul(in, second, 0.1)};
      },
      {0, p.number(2, "w")})[1];
  // 12 w^2 / 10, twice.
  const double once = 1.2 * 2 * 2;
  CHECK(numbers(p.s, {last})[0] == doctest::Approx(1.2 * once * once));
}

TEST_CASE("a training in a loop has a gradient by where it began") {
  Program p;
  const Output w = p.number(2, "w"), a = p.number(3, "a");
  const Output last =
      while_loop(p.s, less_than(4),
                 [&](const Scope& in, const Outputs& v) -> Outputs {
                   const Output loss = ops::mul(in, ops::square(in, v[1]), a);
                   const Output slope = dense_gradients(in, {loss}, {v[1]})[0];
                   return {ops::add(in, v[0], 1),
                           ops::sub(in, v[1], ops::mul(in, slope, 0.1))};
                 },
                 {0, w})[1];
  // w (1 - 0.2 a)^4
  const Outputs slopes = p.grad(last, {w, a});
  const double shrinks = 1 - 0.2 * 3;
  const Doubles results = numbers(p.s, {slopes[0], slopes[1]});
  CHECK(results[0] == doctest::Approx(std::pow(shrinks, 4)));
  CHECK(results[1] == doctest::Approx(-2 * 4 * 0.2 * std::pow(shrinks, 3)));
}

TEST_CASE("an x may be outside of the loop in which its y is") {
  // Three steps of descent, each down the slope of (w v - 6)^2 at v, where w is
  // 2 u, by v and by u.
  Program p;
  const Output u = p.number(1, "u");
  const Output w = ops::mul(p.s, u, 2.0);
  const Outputs last = while_loop(
      p.s, less_than(3),
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output off = ops::sub(in, ops::mul(in, w, v[1]), 6.0);
        const Output y = ops::square(in, off);
        const Outputs grads = dense_gradients(in, {y}, {v[1], u, w});
        const Output next = ops::sub(in, v[1], ops::mul(in, grads[0], 0.125));
        return {ops::add(in, v[0], 1), next, ops::add(in, v[2], grads[1]),
                ops::add(in, v[3], grads[2])};
      },
      {0, p.number(1, "v"), p.number(0, "sum_u"), p.number(0, "sum_w")});
  // v: 1, 3, 3, 3; only the first of the slopes is not 0: 2 (2 - 6) times v by
  // w, and twice that by u.
  CHECK(numbers(p.s, {last[1], last[2], last[3]}) == Doubles{3, -16, -8});
  // The first step again: v - (2 u) (2 u v - 6) / 4, by u, and no way from then
  // on, since there v is at its end: 3 / u.
  const Output by_u = p.grad(last[1], {u})[0];
  CHECK(numbers(p.s, {by_u})[0] == doctest::Approx(-3));
}

TEST_CASE("reverse mode says why an x has no gradient") {
  Program p;
  const Output x = p.number(2, "x");
  SUBCASE("a y of integers") {
    p.grad(ops::cast(p.s.named("y"), x, DataType::kInt32), {x});
    CHECK(p.s.status().to_string().find("y 0 (\"y:0\") is int32") !=
          std::string::npos);
  }
  SUBCASE("an x in a loop that y is outside of") {
    const auto [y, inside] = doubled(p.s, x);
    p.grad(y, {inside});
    CHECK(p.s.status().to_string().find("\"while/inside:0\" is in the loop") !=
          std::string::npos);
  }
  SUBCASE("a y in a complete loop that x is outside of") {
    const auto [y, inside] = doubled(p.s, x);
    p.grad(inside, {x});
    CHECK(p.s.status().message() ==
          "[gradients] y \"while/inside:0\" is in the loop of frame "
          "\"while/while_context\", but x \"x:0\" is outside of all loops");
  }
}
