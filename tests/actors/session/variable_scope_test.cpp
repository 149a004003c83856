// Variables of the builder at run time: initial values, slices that are joined,
// and checkpoints that do not depend on how a variable is cut.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "tests/actors/program.h"
#include "tests/temp_path.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

// A program whose session stays.
struct Kept : Program {
  VariableScope vars;
  std::unique_ptr<Session> session;

  void start(std::optional<uint64_t> seed = {}) {
    const Output init = vars.initialize(s.named("init"));
    must(s.status());
    SessionOptions options;
    options.seed = seed;
    session = make_session(options, graph);
    run_target(init);
  }
  void run_target(const Output& op) {
    must(session->run({}, {}, {op.name()}, within_a_minute()));
  }
  std::vector<float> fetch(const Output& output) {
    return elements<float>(must_run(*session, {}, {output.name()})[0]);
  }
};

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

Initializer counted(const Shape& shape) {
  const std::vector<float> values = counting(size_t(shape.num_elements()));
  return initializers::constant(
      Tensor::of<float>(shape, std::span<const float>(values)));
}

double mean_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         double(values.size());
}
double deviation_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double(value) * double(value);
  const double mean = mean_of(values);
  return std::sqrt(sum / double(values.size()) - mean * mean);
}

}  // namespace

TEST_CASE("initializers give the values that their names say") {
  Kept p;
  const auto get = [&](const char* name, const Shape& shape, DataType dtype,
                       Initializer initializer) {
    return p.vars
        .get(p.s, name, shape, {.dtype = dtype, .initializer = initializer})
        .read(p.s);
  };
  using namespace initializers;
  const Output zero = get("zeros", {2}, DataType::kFloat, zeros());
  const Output one = get("ones", {2}, DataType::kFloat, ones());
  const Output half = get("half", {3}, DataType::kFloat, constant(0.5));
  const Output scalar = get("scalar", {}, DataType::kFloat, constant(7));
  const Output list = get("list", {2}, DataType::kFloat, constant({1.5, 2.5}));
  const Output yes = get("yes", {2}, DataType::kBool, ones());
  const Output no = get("no", {2}, DataType::kBool, zeros());
  const Output text = get("text", {2}, DataType::kString, zeros());
  const Output whole = get("whole", {2}, DataType::kInt64, {});
  p.start();
  CHECK(p.fetch(zero) == std::vector<float>{0, 0});
  CHECK(p.fetch(one) == std::vector<float>{1, 1});
  CHECK(p.fetch(half) == std::vector<float>{0.5, 0.5, 0.5});
  CHECK(p.fetch(scalar) == std::vector<float>{7});
  CHECK(p.fetch(list) == std::vector<float>{1.5, 2.5});
  const auto others = must_run(
      *p.session, {}, {yes.name(), no.name(), text.name(), whole.name()});
  CHECK(elements<bool>(others[0]) == std::vector<bool>{true, true});
  CHECK(elements<bool>(others[1]) == std::vector<bool>{false, false});
  CHECK(elements<std::string>(others[2]) == std::vector<std::string>{"", ""});
  CHECK(elements<int64_t>(others[3]) == std::vector<int64_t>{0, 0});
}

TEST_CASE("random initializers have the spread that fans ask for") {
  using namespace initializers;
  const auto values = [](const Initializer& initializer) {
    Kept p;
    const Output v =
        p.vars.get(p.s, "v", {200, 100}, {.initializer = initializer})
            .read(p.s);
    p.start(1234);
    return p.fetch(v);
  };
  const auto within = [&](const Initializer& initializer, double low,
                          double high, double mean, double deviation) {
    const std::vector<float> all = values(initializer);
    CHECK(*std::min_element(all.begin(), all.end()) >= low);
    CHECK(*std::max_element(all.begin(), all.end()) <= high);
    // Of 20,000 values: five standard errors.
    CHECK(std::abs(mean_of(all) - mean) < 5 * deviation / 141);
    CHECK(std::abs(deviation_of(all) / deviation - 1) < 0.03);
  };
  within(random_uniform(-1, 3), -1, 3, 1, 4 / std::sqrt(12.0));
  within(random_normal(2, 0.5), -2, 6, 2, 0.5);
  within(truncated_normal(0, 1), -2, 2, 0, 0.8796);
  // Fans of 200 and 100.
  const double limit = std::sqrt(3.0 / 150);
  within(glorot_uniform(), -limit, limit, 0, std::sqrt(1.0 / 150));
  within(glorot_normal(), -1, 1, 0, std::sqrt(1.0 / 150));
  within(he_normal(), -1, 1, 0, std::sqrt(2.0 / 200));
  within(he_uniform(), -std::sqrt(6.0 / 200), std::sqrt(6.0 / 200), 0,
         std::sqrt(2.0 / 200));
  within(variance_scaling({.scale = 4,
                           .fan = VarianceScaling::Fan::kOut,
                           .distribution = VarianceScaling::Draw::kNormal}),
         -2, 2, 0, std::sqrt(4.0 / 100));
}

TEST_CASE("seeds make initial values agree, and no seeds make them differ") {
  Kept p;
  const VariableScope seeded = p.vars.with_initializer(
      initializers::random_normal(0, 1, {.seed = 3, .seed2 = 4}));
  const VariableScope free =
      p.vars.with_initializer(initializers::random_normal());
  const Output a = seeded.get(p.s, "a", {4}).read(p.s);
  const Output b = seeded.get(p.s, "b", {4}).read(p.s);
  const Output c = free.get(p.s, "c", {4}).read(p.s);
  const Output d = free.get(p.s, "d", {4}).read(p.s);
  p.start();
  CHECK(p.fetch(a) == p.fetch(b));
  CHECK(p.fetch(c) != p.fetch(d));
}

TEST_CASE("an orthogonal matrix has orthogonal rows or columns") {
  for (const Shape& shape : {Shape{6, 4}, Shape{4, 6}, Shape{2, 3, 4}}) {
    CAPTURE(shape.to_string());
    Kept p;
    const ScopedVariable v = p.vars.get(
        p.s, "v", shape, {.initializer = initializers::orthogonal(2)});
    const int64_t columns = shape.dim(shape.rank() - 1);
    const Output m = ops::reshape(p.s, v.read(p.s), {int64_t{-1}, columns});
    const bool tall = shape.num_elements() / columns >= columns;
    const Output product =
        ops::matmul(p.s, m, m, {.transpose_a = tall, .transpose_b = !tall});
    p.start();
    const std::vector<float> all = p.fetch(product);
    const auto size = size_t(std::sqrt(double(all.size())));
    for (size_t i = 0; i < all.size(); ++i)
      CHECK(all[i] == doctest::Approx(i % (size + 1) == 0 ? 4 : 0));
  }
}

TEST_CASE("a partitioned variable is read and assigned as one value") {
  for (const int axis : {0, 1}) {
    CAPTURE(axis);
    Kept p;
    const ScopedVariable v =
        p.vars.get(p.s, "v", {5, 4},
                   {.initializer = counted({5, 4}),
                    .partitioner = partitioners::fixed_size(3, axis)});
    const Output whole = v.read(p.s.named("whole"));
    const Output negative = v.assign(
        p.s.named("negate"), ops::neg(p.s, v.read(p.s.named("before"))));
    p.start();
    std::vector<float> values = counting(20);
    CHECK(p.fetch(whole) == values);
    p.run_target(negative);
    for (float& value : values) value = -value;
    CHECK(p.fetch(whole) == values);
  }
}

TEST_CASE("a checkpoint is restored in other parts than it was saved") {
  const std::filesystem::path folder =
      tagflow::testing::temp_path("variable_scope");
  std::filesystem::create_directories(folder);
  const std::string prefix = folder / "model";
  const auto cut = [](int64_t parts) {
    return parts == 0 ? Partitioner() : partitioners::fixed_size(parts);
  };
  for (const int64_t from : {0, 1, 3}) {
    Kept writer;
    writer.vars.get(writer.s, "a/v", {5, 2},
                    {.initializer = counted({5, 2}), .partitioner = cut(from)});
    writer.vars.get(writer.s, "n", {}, {.initializer = initializers::ones()});
    const Output save = writer.vars.save(writer.s, prefix);
    writer.start();
    writer.run_target(save);
    for (const int64_t to : {0, 2, 3}) {
      CAPTURE(from);
      CAPTURE(to);
      Kept reader;
      const ScopedVariable v = reader.vars.get(
          reader.s, "a/v", {5, 2},
          {.initializer = initializers::zeros(), .partitioner = cut(to)});
      const Output n = reader.vars.get(reader.s, "n", {}).read(reader.s);
      const Output whole = v.read(reader.s);
      const Output restore = reader.vars.restore(reader.s, prefix);
      reader.start();
      CHECK(reader.fetch(whole) == std::vector<float>(10, 0));
      reader.run_target(restore);
      CHECK(reader.fetch(whole) == counting(10));
      CHECK(reader.fetch(n) == std::vector<float>{1});
    }
  }
  std::filesystem::remove_all(folder);
}
