// Runs of recursive functions with gradients: how deep they may be, their
// effects, what they save, and which ones are refused.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/recursion.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using tagflow::autodiff::testing::define_power;
using tagflow::autodiff::testing::Doubles;
using tagflow::autodiff::testing::evaluate;
using tagflow::autodiff::testing::kN;
using tagflow::autodiff::testing::kX;
using tagflow::autodiff::testing::kY;
using tagflow::autodiff::testing::numbers;
using tagflow::autodiff::testing::power;

namespace {

// noisy(count, x, n): three times x *= a random number, which adds 1 to the
// variable, and then noisy(count, x, n - 1).
void define_noisy(const Scope& s) {
  const PartialShape scalar = PartialShape::scalar();
  define_function(
      s,
      {.name = "noisy",
       .args = {{"count", DataType::kResource, scalar},
                {"x", DataType::kDouble, scalar},
                kN},
       .results = {{DataType::kDouble, scalar}},
       .body = [scalar](const Scope& in, const Outputs& a) -> Outputs {
         return cond(
             in, ops::greater(in, a[2], 0),
             [&](const Scope& b) -> Outputs {
               const Output kept = while_loop(
                   b,
                   [](const Scope& c, const Outputs& v) {
                     return ops::less(c, v[0], 3);
                   },
                   [&](const Scope& c, const Outputs& v) -> Outputs {
                     const ops::Variable count{a[0], DataType::kDouble, scalar};
                     const Output added = ops::assign_add(c, count, 1.0);
                     const Output shape =
                         ops::constant(c, Tensor::of<int32_t>({0}, {}));
                     const Output noise = c.op("RandomUniform", {shape},
                                               {{"dtype", DataType::kDouble}});
                     return {ops::add(c.with_control_dependencies({added}),
                                      v[0], 1),
                             ops::mul(c, v[1], ops::add(c, noise, 0.5))};
                   },
                   {0, a[1]})[1];
               return call(b, "noisy", {a[0], kept, ops::sub(b, a[2], 1)})[0];
             },
             [&](const Scope& b) -> Outputs { return ops::identity(b, a[1]); });
       }});
}

struct Noisy {
  Graph graph;
  const Scope s{graph};
  ops::Variable count;
  Output init, x, y;

  explicit Noisy(int n = 4) {
    define_noisy(s);
    count = ops::variable(s.named("count"), DataType::kDouble,
                          PartialShape::scalar());
    init = ops::assign(s.named("init"), count, 0.0);
    x = ops::constant(s.named("x"), 2.0);
    y = call(s.named("y"), "noisy", {count.handle, ops::square(s, x), n})[0];
  }
  // The fetches of a run with a seed, and what has been counted after it.
  std::vector<double> run(const Outputs& fetches, uint64_t& fired) const {
    actors::SessionOptions options;
    options.seed = 7;
    auto session = actors::Session::create(std::move(options));
    REQUIRE(session.ok());
    REQUIRE_MESSAGE(s.ok(), s.status().to_string());
    const Output counted = ops::read(s.named("counted"), count);
    REQUIRE((*session)->extend(graph).ok());
    REQUIRE((*session)->run({}, {}, {"init"}).ok());
    std::vector<std::string> names;
    for (const Output& fetch : fetches) names.push_back(fetch.name());
    actors::RunStats stats;
    auto results = (*session)->run({}, names, {}, {}, &stats);
    REQUIRE_MESSAGE(results.ok(), results.status().to_string());
    fired = stats.fired;
    auto after = (*session)->run({}, {counted.name()});
    REQUIRE(after.ok());
    results->push_back((*after)[0]);
    std::vector<double> numbers;
    for (const Tensor& tensor : *results)
      numbers.push_back(tensor.item<double>().value());
    return numbers;
  }
};

}  // namespace

TEST_CASE("a recursion is as deep with its gradients as without") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, 1.0);
  const Output y = power(s, x, 9999);
  const Output first = dense_gradients(s, {y}, {x})[0];
  const Output second = dense_gradients(s, {first}, {x})[0];
  CHECK(numbers(s, {y}) == Doubles{1});
  CHECK(numbers(s, {y, first}) == Doubles{1, 9999});
  CHECK(numbers(s, {second}) == Doubles{9999.0 * 9998});
}

TEST_CASE("a recursion without end is an error of the run") {
  Graph graph;
  const Scope s(graph);
  define_function(s, {.name = "f",
                      .args = {kX},
                      .results = {kY},
                      .body = [](const Scope& in, const Outputs& a) -> Outputs {
                        return ops::add(in, a[0],
                                        call(in, "f", {ops::sin(in, a[0])})[0]);
                      }});
  const Output x = ops::constant(s, 1.0);
  const Output y = call(s, "f", {x})[0];
  const Output grad = dense_gradients(s, {y}, {x})[0];
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  auto session = actors::Session::create({.max_call_depth = 100});
  REQUIRE(session.ok());
  REQUIRE((*session)->extend(graph).ok());
  const auto result = (*session)->run({}, {grad.name()});
  CHECK(result.status().code() == Code::kResourceExhausted);
}

TEST_CASE("gradients of recursions are the same to the bit over devices") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, Tensor::of<double>({3}, {0.7, -0.4, 1.1}));
  const Output y = power(s, ops::sin(s, x), 5);
  const Output first = dense_gradients(s, {y}, {x})[0];
  const Outputs all{y, first, dense_gradients(s, {first}, {x})[0]};
  const std::vector<Tensor> expected = evaluate(s, all);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    actors::SessionOptions options;
    options.devices = "cpu:3";
    options.scatter = seed;
    const std::vector<Tensor> cut = evaluate(s, all, {}, options);
    for (size_t i = 0; i < cut.size(); ++i)
      CHECK(identical(cut[i], expected[i]));
  }
}

TEST_CASE("calls fire as many nodes as before if no gradient is fetched") {
  const auto fired = [](int n, bool has_gradients) {
    Noisy made(n);
    if (has_gradients) dense_gradients(made.s, {made.y}, {made.x});
    uint64_t count = 0;
    made.run({made.y}, count);
    return count;
  };
  CHECK(fired(9, true) - fired(4, true) == fired(9, false) - fired(4, false));
}

TEST_CASE("a gradient changes no bit and no effect of the recursion") {
  uint64_t before = 0, beside = 0, together = 0;
  const Noisy plain;
  const Doubles expected = plain.run({plain.y}, before);
  CHECK(expected[1] == 12);
  Noisy made;
  const Output first = dense_gradients(made.s, {made.y}, {made.x})[0];
  const Output second = dense_gradients(made.s, {first}, {made.x})[0];
  CHECK(made.run({made.y}, beside) == expected);
  const Doubles all = made.run({made.y, first, second}, together);
  CHECK(all[0] == expected[0]);
  CHECK(all[1] == doctest::Approx(expected[0]));
  CHECK(all[2] == doctest::Approx(expected[0] / 2));
  CHECK(all[3] == 12);
}

TEST_CASE("an array that is handed to a recursion is refused by name") {
  Graph graph;
  const Scope s(graph);
  define_function(
      s,
      {.name = "f",
       .args = {{"array", DataType::kResource, {}},
                {"flow", DataType::kFloat, {}},
                kX,
                kN},
       .results = {{DataType::kFloat, {}}},
       .body = [](const Scope& in, const Outputs& a) -> Outputs {
         return cond(
             in, ops::greater(in, a[3], 0),
             [&](const Scope& b) -> Outputs {
               const Output less = ops::sub(b, a[3], 1);
               const Output flow =
                   b.op("TensorArrayWriteV3", {a[0], less, a[2], a[1]});
               return call(b, "f", {a[0], flow, a[2], less});
             },
             [&](const Scope& b) -> Outputs { return ops::identity(b, a[1]); });
       }});
  const OpResult array =
      s.op("TensorArrayV3", {3}, {{"dtype", DataType::kDouble}});
  const Output x = ops::constant(s, 2.0);
  const Output flow = call(s, "f", {array[0], array[1], x, 3})[0];
  const Output y = s.op("TensorArrayReadV3", {array[0], 1, flow},
                        {{"dtype", DataType::kDouble}});
  dense_gradients(s, {y}, {x});
  CHECK(s.status().code() == Code::kUnimplemented);
  CHECK(s.status().to_string().find("to the recursive function \"f\"") !=
        std::string::npos);
}

TEST_CASE("a recursion whose result may be dead is refused by name") {
  Graph graph;
  const Scope s(graph);
  define_function(s, {.name = "f",
                      .args = {kX},
                      .results = {kY},
                      .body = [](const Scope& in, const Outputs& a) -> Outputs {
                        const OpResult split =
                            in.op("Switch", {a[0], ops::less(in, a[0], 1.0)});
                        return ops::add(in, split[0],
                                        call(in, "f", {split[1]})[0]);
                      }});
  const Output x = ops::constant(s, 2.0);
  const Output y = call(s, "f", {x})[0];
  dense_gradients(s, {y}, {x});
  CHECK(s.status().code() == Code::kUnimplemented);
  CHECK(s.status().to_string().find(
            "function \"f\": its result 0 may be dead") != std::string::npos);
}

TEST_CASE("a recursion's saved values are listed under its function") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, 2.0);
  std::vector<KeptValue> kept;
  dense_gradients(s, {power(s, x, 3)}, {x}, {.kept = &kept});
  CHECK(std::ranges::any_of(kept, [](const KeptValue& value) {
    return value.function == "power" && value.kept == Kept::kSaved;
  }));
}

TEST_CASE("shapes in a recursion are those of all its calls") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, Tensor::of<double>({3}, {1, 2, 3}));
  std::vector<KeptValue> kept;
  dense_gradients(s, {power(s, x, 3)}, {x}, {.kept = &kept});
  for (const KeptValue& value : kept)
    if (value.dtype == DataType::kDouble)
      CHECK(value.shape == PartialShape({3}));
  // If another call has another shape, only the rank is known.
  const Output y = ops::constant(s, Tensor::of<double>({2}, {1, 2}));
  const Output sum = ops::add(s, ops::reduce_sum(s, power(s, x, 3)),
                              ops::reduce_sum(s, power(s, y, 3)));
  kept.clear();
  const Outputs grads = dense_gradients(s, {sum}, {x, y}, {.kept = &kept});
  for (const KeptValue& value : kept)
    if (value.dtype == DataType::kDouble)
      CHECK(value.shape == PartialShape({-1}));
  const auto made = evaluate(s, grads);
  CHECK(identical(made[0], Tensor::of<double>({3}, {3, 12, 27})));
  CHECK(identical(made[1], Tensor::of<double>({2}, {3, 12})));
}
