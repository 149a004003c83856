// Training as a whole: with a loop outside, and with a loop in the graph.
#include <limits>

#include "autodiff/train/layer.h"
#include "autodiff/train/loss.h"
#include "autodiff/train/optimizers.h"
#include "autodiff/train/schedule.h"
#include "tests/autodiff/train/trainer.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

namespace {

struct Step {
  Output loss, update;
};
// Builds one step in the scope.
using StepFn = Step (*)(const Scope&, const VariableScope&, const Optimizer&);

// A line through points of y = 3 x + 2.
Step line_step(const Scope& s, const VariableScope& vars,
               const Optimizer& optimizer) {
  const Output x = ops::constant(s, Tensor::of<float>({4, 1}, {-1, 0, 1, 2}));
  const Output y = ops::constant(s, Tensor::of<float>({4, 1}, {-1, 2, 5, 8}));
  const Output guess = layers::dense(
      s, vars, x, {.units = 1, .kernel_initializer = initializers::zeros()});
  const Output loss = losses::mean_squared_error(s, guess, y);
  return {loss, optimizer.minimize(s, loss, vars.trainable_variables())};
}

// Two layers over rows of a table, of which some come twice.
Step embedding_step(const Scope& s, const VariableScope& vars,
                    const Optimizer& optimizer) {
  const Output rows = layers::embedding(
      s, vars, {1, 3, 1, 0},
      {.rows = 5,
       .columns = 3,
       .initializer = initializers::random_uniform(-1, 1, {1, 2})});
  const Output guess = layers::dense(
      s, vars, rows,
      {.units = 1, .kernel_initializer = initializers::glorot_uniform({3, 4})});
  const Output y = ops::constant(s, Tensor::of<float>({4, 1}, {1, 0, 0, 1}));
  const Output loss = losses::sigmoid_cross_entropy(s, guess, y);
  return {loss, optimizer.minimize(s, loss, vars.trainable_variables())};
}

struct State {
  Output steps, loss;
  TAGFLOW_FIELDS(steps, loss)
};

// Steps until the loss is small enough: each after the one before.
State train(const Scope& s, const VariableScope& vars,
            const Optimizer& optimizer, StepFn build, int most, double enough,
            int64_t window) {
  return while_loop(
      s,
      [&](const Scope& in, const State& v) {
        return ops::logical_and(in, ops::less(in, v.steps, most),
                                ops::greater(in, v.loss, enough));
      },
      [&](const Scope& in, const State& v) {
        const Step step = build(in.with_control_dependencies({v.steps, v.loss}),
                                vars, optimizer);
        const Scope after = in.with_control_dependencies({step.update});
        return State{ops::add(after, v.steps, 1),
                     ops::identity(after, step.loss)};
      },
      State{ops::constant(s, 0),
            ops::constant(s, std::numeric_limits<float>::infinity())},
      {.parallel_iterations = window});
}

// What the variables are when all of `done` is.
Outputs variables_after(const Program& p, const Outputs& done) {
  Outputs all;
  for (const ScopedVariable& variable : p.vars.variables())
    all.push_back(variable.read(p.s.with_control_dependencies(done)));
  return all;
}

}  // namespace

TEST_CASE_FIXTURE(Program, "a network of two layers learns XOR") {
  const Output x =
      ops::constant(s, Tensor::of<float>({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}));
  const Output y = ops::constant(s, Tensor::of<float>({4, 1}, {0, 1, 1, 0}));
  const Output hidden = layers::dense(
      s, vars, x,
      {.units = 8,
       .activation = ops::tanh,
       .kernel_initializer = initializers::glorot_uniform({1, 2})});
  const Output logits = layers::dense(
      s, vars, hidden,
      {.units = 1, .kernel_initializer = initializers::glorot_uniform({3, 4})});
  const Output loss = losses::sigmoid_cross_entropy(s, logits, y);
  const ScopedVariable step = global_step(s, vars);
  const Output rate =
      schedules::cosine_decay(s, 0.1, step.read(s), {.decay_steps = 300});
  const Output update =
      optimizers::adam(vars, rate)
          .minimize(s, loss, vars.trainable_variables(), {.global_step = step});
  Trainer trainer(s, vars);
  CHECK(trainer.fetch({loss})[0] > 0.4);
  for (int i = 0; i < 300; ++i) trainer.run(update);
  CHECK(trainer.fetch({loss})[0] < 0.05);
  const Doubles found = trainer.fetch({logits});
  for (size_t i = 0; i < 4; ++i) CHECK((found[i] > 0) == (i == 1 || i == 2));
}

TEST_CASE_FIXTURE(Program, "a recurrent network learns to add") {
  const Output x = ops::constant(
      s, Tensor::of<float>({3, 3, 1}, {1, 0, 1, 0, 0, 1, 1, 1, 1}));
  const Output y = ops::constant(s, Tensor::of<float>({3, 1}, {2, 1, 3}));
  const RnnCellPtr cell = gru_cell(
      {.units = 4, .kernel_initializer = initializers::glorot_uniform({5, 6})});
  const RnnResult rnn = dynamic_rnn(s, vars, *cell, x);
  const Output guess = layers::dense(
      s, vars, rnn.state[0],
      {.units = 1, .kernel_initializer = initializers::glorot_uniform({7, 8})});
  const Output loss = losses::mean_squared_error(s, guess, y);
  const Output update = optimizers::adam(vars, 0.05)
                            .minimize(s, loss, vars.trainable_variables());
  Trainer trainer(s, vars);
  const double before = trainer.fetch({loss})[0];
  for (int i = 0; i < 300; ++i) trainer.run(update);
  CHECK(trainer.fetch({loss})[0] < before / 10);
}

TEST_CASE("a loop in the graph trains until the loss is small enough") {
  for (const int64_t window : {1, 32}) {
    Program p;
    const State last = train(p.s, p.vars, optimizers::sgd(p.vars, 0.2),
                             line_step, 1000, 1e-6, window);
    const Outputs line = variables_after(p, {last.loss});
    Trainer trainer(p.s, p.vars);
    const Doubles found =
        trainer.fetch({last.steps, last.loss, line[0], line[1]});
    CHECK(found[0] > 10);
    CHECK(found[0] < 200);
    CHECK(found[1] <= 1e-6);
    CHECK(found[2] == doctest::Approx(3).epsilon(1e-2));
    CHECK(found[3] == doctest::Approx(2).epsilon(1e-2));
    // Another run goes on where this one was: one step is enough.
    CHECK(trainer.fetch({last.steps}) == Doubles{1});
  }
}

TEST_CASE("steps in a loop are those from outside") {
  constexpr int kSteps = 5;
  for (const StepFn build : {line_step, embedding_step}) {
    Program inside, outside;
    const State last =
        train(inside.s, inside.vars, optimizers::adam(inside.vars, 0.1), build,
              kSteps, 0, 32);
    const Outputs looped = variables_after(inside, {last.loss});
    Trainer loop(inside.s, inside.vars);

    const Step step =
        build(outside.s, outside.vars, optimizers::adam(outside.vars, 0.1));
    const Outputs stepped = variables_after(outside, {});
    Trainer trainer(outside.s, outside.vars);
    double loss = 0;
    for (int i = 0; i < kSteps; ++i)
      loss = trainer.fetch({step.loss}, {step.update})[0];

    CHECK(inside.names() == outside.names());
    check_close(loop.fetch(looped), trainer.fetch(stepped), 1e-6);
    CHECK(loss > 0);
  }
}

TEST_CASE("a conditional in the graph decides whether a step is made") {
  Program p;
  const ScopedVariable w = p.number("w", 4);
  const Output go = ops::placeholder(p.s.named("go"), DataType::kBool,
                                     PartialShape::scalar());
  const Optimizer sgd = optimizers::sgd(p.vars, 0.25);
  const Output done = cond(
      p.s, go,
      [&](const Scope& in) -> Outputs {
        const Output loss = ops::square(in, w.read(in));
        return sgd.minimize(in, loss, {w});
      },
      [](const Scope& in) -> Outputs { return ops::no_op(in); })[0];
  const Output now = w.read(p.s);
  Trainer trainer(p.s, p.vars);
  for (const bool value : {false, true, false, true})
    trainer.fetch({done}, {}, {{"go", Tensor::scalar(value)}});
  CHECK(trainer.fetch({now}) == Doubles{1});
}
