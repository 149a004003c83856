// Layers that behave differently in training and afterwards.
#include "autodiff/train/layer.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/train/trainer.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

namespace {

const Doubles kBatch{1, 10, 3, 30, 5, 50};  // three rows of two

// (x - mean) / sqrt(variance + 0.001), of the two columns in turn.
Doubles normalized(const Doubles& x, const Doubles& mean,
                   const Doubles& variance) {
  Doubles all;
  for (size_t i = 0; i < x.size(); ++i)
    all.push_back((x[i] - mean[i % 2]) / std::sqrt(variance[i % 2] + 1e-3));
  return all;
}

struct Fixture : Program {
  Output x = ops::constant(
      s, Tensor::of<double>({3, 2}, std::span<const double>(kBatch)));

  Outputs moving() {
    Outputs all;
    for (const ScopedVariable& variable : vars.variables())
      if (!variable.trainable()) all.push_back(variable.read(s));
    return all;
  }
};

const Doubles kMean{3, 30}, kVariance{8.0 / 3, 800.0 / 3};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a batch is normalized by itself in training") {
  const auto norm =
      layers::batch_norm(s, vars, x, {.training = true, .momentum = 0.75});
  const Output update = ops::group(s, norm.updates);
  const Outputs averages = moving();
  Trainer trainer(s, vars);
  CHECK(names() == Names{"batch_normalization/gamma",
                         "batch_normalization/beta",
                         "batch_normalization/moving_mean",
                         "batch_normalization/moving_variance"});
  check_close(trainer.fetch({norm.output}),
              normalized(kBatch, kMean, kVariance));
  CHECK(trainer.fetch(averages) == Doubles{0, 0, 1, 1});
  trainer.run(update);
  check_close(trainer.fetch(averages),
              {0.75, 7.5, 0.75 + 2.0 / 3, 0.75 + 200.0 / 3});
}

TEST_CASE_FIXTURE(Fixture, "a batch is normalized by the averages afterwards") {
  const auto norm = layers::batch_norm(s, vars, x);
  CHECK(norm.updates.empty());
  Trainer trainer(s, vars);
  check_close(trainer.fetch({norm.output}), normalized(kBatch, {0, 0}, {1, 1}));
}

TEST_CASE_FIXTURE(Fixture, "a tensor says whether a batch is for training") {
  const Output training = ops::placeholder(s.named("training"), DataType::kBool,
                                           PartialShape::scalar());
  const auto norm =
      layers::batch_norm(s, vars, x, {.training = training, .momentum = 0.75});
  const Output update = ops::group(s, norm.updates);
  const Outputs averages = moving();
  Trainer trainer(s, vars);
  const auto said = [](bool value) {
    return std::vector<actors::Feed>{{"training", Tensor::scalar(value)}};
  };
  check_close(trainer.fetch({norm.output}, {}, said(true)),
              normalized(kBatch, kMean, kVariance));
  check_close(trainer.fetch({norm.output}, {}, said(false)),
              normalized(kBatch, {0, 0}, {1, 1}));
  trainer.run(update, said(false));
  CHECK(trainer.fetch(averages) == Doubles{0, 0, 1, 1});
  trainer.run(update, said(true));
  check_close(trainer.fetch(averages),
              {0.75, 7.5, 0.75 + 2.0 / 3, 0.75 + 200.0 / 3});
}

TEST_CASE_FIXTURE(Fixture, "batch_norm computes halves in float") {
  const auto norm = layers::batch_norm(
      s, vars, ops::cast(s, x, DataType::kHalf), {.training = true});
  CHECK(norm.output.dtype() == DataType::kHalf);
  CHECK(vars.variables()[0].dtype() == DataType::kFloat);
  const Output wide = ops::cast(s, norm.output, DataType::kDouble);
  Trainer trainer(s, vars);
  check_close(trainer.fetch({wide}), normalized(kBatch, kMean, kVariance),
              1e-3);
}

TEST_CASE_FIXTURE(Fixture, "a batch without channels says why") {
  layers::batch_norm(s, vars, ops::constant(s, 1.0));
  CHECK(fails_with("[batch_norm]"));
  CHECK(fails_with("the input is of shape []"));
}

TEST_CASE("dropout follows from its seed") {
  Program p;
  const Output x = ops::fill(p.s, {1000}, 2.0);
  const Output seed =
      ops::placeholder(p.s.named("seed"), DataType::kInt64, {2});
  const Output y = layers::dropout(p.s, x, seed, {.rate = 0.2});
  const Output slope = dense_gradients(p.s, {y}, {x})[0];
  const auto drawn = [&](int64_t step) {
    const auto results = evaluate(
        p.s, {y, slope}, {{"seed", Tensor::vector<int64_t>({7, step})}});
    Doubles kept = doubles_of(results[0]);
    const Doubles slopes = doubles_of(results[1]);
    int dropped = 0;
    for (size_t i = 0; i < kept.size(); ++i) {
      CHECK((kept[i] == 0 || kept[i] == 2.5));
      CHECK(slopes[i] == kept[i] / 2);
      dropped += kept[i] == 0 ? 1 : 0;
    }
    CHECK(dropped > 130);
    CHECK(dropped < 270);
    return kept;
  };
  const Doubles first = drawn(0);
  CHECK(drawn(0) == first);
  CHECK(drawn(1) != first);
}

TEST_CASE("dropout drops nothing at a rate of zero, nor after training") {
  Program p;
  const Output x = ops::fill(p.s, {100}, 2.0);
  CHECK(layers::dropout(p.s, x, {1, 2}, {.rate = 0}) == x);
  CHECK(layers::dropout(p.s, x, {1, 2}, {.training = false}) == x);
  const Output training = ops::placeholder(
      p.s.named("training"), DataType::kBool, PartialShape::scalar());
  const Output y = layers::dropout(p.s, x, {1, 2}, {.training = training});
  const auto count_of = [&](bool value) {
    const auto results =
        evaluate(p.s, {y}, {{"training", Tensor::scalar(value)}});
    int dropped = 0;
    for (const double element : doubles_of(results[0]))
      dropped += element == 0 ? 1 : 0;
    return dropped;
  };
  CHECK(count_of(false) == 0);
  CHECK(count_of(true) > 20);
  layers::dropout(p.s, x, {1, 2}, {.rate = 1});
  CHECK(p.fails_with("the rate 1 is not within [0, 1)"));
}
