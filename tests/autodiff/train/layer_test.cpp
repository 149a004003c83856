// Layers: their variables, what they compute, and their gradients.
#include "autodiff/train/layer.h"

#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/gradient_check.h"
#include "tests/autodiff/train/trainer.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

namespace {

// The numbers 1, 2, ... as a variable's first value.
Initializer counted() {
  return [](const Scope& s, const InitialPart& part) {
    Tensor values = Tensor::make(DataType::kDouble, part.shape);
    for (int64_t i = 0; i < part.shape.num_elements(); ++i)
      values.mutable_data<double>()[i] = double(i + 1);
    return ops::cast(s, ops::constant(s, values), part.dtype);
  };
}

Output doubles(const Scope& s, const Shape& shape, const Doubles& values) {
  return ops::constant(
      s, Tensor::of<double>(shape, std::span<const double>(values)));
}

}  // namespace

TEST_CASE_FIXTURE(Program,
                  "a dense layer is a product, a bias, an activation") {
  const Output x = doubles(s, {2, 2}, {1, 0, -1, 2});
  const Output y = layers::dense(s, vars, x,
                                 {.units = 3,
                                  .activation = ops::relu,
                                  .kernel_initializer = counted(),
                                  .bias_initializer = counted()});
  Trainer trainer(s, vars);
  CHECK(names() == Names{"dense/kernel", "dense/bias"});
  // The kernel is [1, 2, 3; 4, 5, 6].
  CHECK(trainer.fetch({y}) == Doubles{2, 4, 6, 8, 10, 12});
}

TEST_CASE_FIXTURE(Program,
                  "dense layers get names of their own, or share one") {
  const Output x = doubles(s, {1, 2}, {1, 2});
  const Output a = layers::dense(s, vars, x, {.units = 2});
  layers::dense(s, vars, a, {.units = 1, .use_bias = false});
  const VariableScope shared = vars.with_reuse(Reuse::kAuto);
  for (int i = 0; i < 2; ++i)
    layers::dense(s, shared, x, {.units = 4, .name = "both"});
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  CHECK(names() == Names{"dense/kernel", "dense/bias", "dense_1/kernel",
                         "both/kernel", "both/bias"});
}

TEST_CASE_FIXTURE(Program, "a dense layer is for the last of all dimensions") {
  const Output x = doubles(s, {2, 1, 2}, {1, 0, 0, 1});
  const Output y =
      layers::dense(s, vars, x, {.units = 2, .kernel_initializer = counted()});
  const Output shape = ops::shape(s, y);
  Trainer trainer(s, vars);
  CHECK(trainer.fetch({shape}) == Doubles{2, 1, 2});
  CHECK(trainer.fetch({y}) == Doubles{1, 2, 3, 4});
}

TEST_CASE_FIXTURE(Program, "layers convolve, pool and flatten images") {
  const Output x = doubles(s, {1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  // The kernel is [1, 2; 3, 4].
  const Output y = layers::conv2d(s, vars, x,
                                  {.filters = 1,
                                   .kernel_size = {2, 2},
                                   .kernel_initializer = counted(),
                                   .bias_initializer = counted()});
  const Output most = layers::max_pool(s, y);
  const Output mean = layers::avg_pool(s, y);
  const Output flat = layers::flatten(s, y);
  CHECK(flat.shape() == PartialShape{1, 4});
  Trainer trainer(s, vars);
  CHECK(names() == Names{"conv2d/kernel", "conv2d/bias"});
  CHECK(trainer.fetch({flat}) == Doubles{38, 48, 68, 78});
  CHECK(trainer.fetch({most, mean}) == Doubles{78, 58});
}

TEST_CASE_FIXTURE(Program, "flatten takes an input of unknown shape") {
  const Output x = ops::placeholder(s.named("x"), DataType::kDouble);
  const Output y = layers::flatten(s, x);
  const Tensor value = Tensor::of<double>({2, 1, 2}, {1, 2, 3, 4});
  const Tensor found = evaluate(s, {y}, {{"x", value}})[0];
  CHECK(found.shape() == Shape{2, 2});
  const Tensor none = Tensor::of<double>({2, 0, 3}, {});
  CHECK(evaluate(s, {y}, {{"x", none}})[0].shape() == Shape{2, 0});
}

TEST_CASE_FIXTURE(Program, "an embedding gives rows, and a sparse gradient") {
  const Output ids =
      ops::constant(s, Tensor::of<int32_t>({2, 2}, {2, 0, 0, 1}));
  const layers::EmbeddingOptions options{.rows = 3,
                                         .columns = 2,
                                         .dtype = DataType::kDouble,
                                         .initializer = counted()};
  const Output y = layers::embedding(s, vars, ids, options);
  CHECK(y.shape() == PartialShape{2, 2, 2});
  const Output handle = vars.variables()[0].parts()[0].variable.handle;
  const auto sparse = gradients(s, {ops::square(s, y)}, {handle});
  CHECK(sparse[0].is_sparse());
  const Output dense = dense_gradients(s, {ops::square(s, y)}, {handle})[0];
  Trainer trainer(s, vars);
  CHECK(names() == Names{"embedding/embeddings"});
  CHECK(trainer.fetch({y}) == Doubles{5, 6, 1, 2, 1, 2, 3, 4});
  CHECK(trainer.fetch({dense}) == Doubles{4, 8, 6, 8, 10, 12});
}

TEST_CASE_FIXTURE(Program, "an embedding in parts is whole to its reader") {
  const VariableScope cut = vars.with_partitioner(partitioners::fixed_size(2));
  const Output y = layers::embedding(
      s, cut, {2, 0}, {.rows = 3, .columns = 1, .dtype = DataType::kDouble});
  const Output whole = vars.variables()[0].read(s);
  Trainer trainer(s, vars);
  const Doubles rows = trainer.fetch({whole});
  CHECK(trainer.fetch({y}) == Doubles{rows[2], rows[0]});
}

TEST_CASE("layers have the gradients that differences say") {
  check_gradients(
      [&](const Scope& s, const Outputs& x) -> Outputs {
        const VariableScope own =
            VariableScope().with_values([](const Scope& at, const std::string&,
                                           const Shape& shape, DataType dtype) {
              return counted()(at, {dtype, shape, shape});
            });
        const Output y = ops::reshape(s, x[0], {4, 3});
        return layers::batch_norm(s, own,
                                  layers::dense(s, own, y, {.units = 2}),
                                  {.training = true})
            .output;
      },
      {values({4, 3})});
}

TEST_CASE_FIXTURE(Program, "a layer says why it refuses an input") {
  const auto refuses = [&](const char* text) {
    CAPTURE(s.status().to_string());
    CHECK(fails_with(text));
  };
  const Output vector = doubles(s, {2}, {1, 2});
  SUBCASE("too few dimensions") {
    CHECK_FALSE(layers::dense(s, vars, vector, {.units = 1}).valid());
    refuses("[dense] \"dense\": the input is of shape [2]");
  }
  SUBCASE("an unknown number of channels") {
    const Output x = ops::placeholder(s, DataType::kFloat, {1, 2, 2, -1});
    layers::conv2d(s, vars, x, {.filters = 1});
    refuses("[conv2d] \"conv2d\": the input is of shape [1,2,2,?]");
  }
  SUBCASE("no units") {
    layers::dense(s, vars, doubles(s, {1, 1}, {1}), {});
    refuses("units is 0, not positive");
  }
  SUBCASE("a scalar") {
    layers::flatten(s, ops::constant(s, 1.0));
    refuses("the input is a scalar");
  }
}
