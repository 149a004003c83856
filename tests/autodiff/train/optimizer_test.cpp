// Each optimizer against its formula, by dense and by sparse gradients.
#include <functional>

#include "autodiff/train/optimizers.h"
#include "tests/autodiff/train/trainer.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

namespace {

constexpr double kRate = 0.1;

// An optimizer, and what it does to one element at step t, from 1 on.
struct Case {
  const char* name;
  std::function<Optimizer(const VariableScope&)> make;
  Doubles slots;  // as they begin
  std::function<void(int t, double g, double& w, Doubles& slots)> step;
  bool moves_all = false;  // rows of which there is no gradient, too
};

void adam_step(int t, double g, double& w, Doubles& s) {
  s[0] = 0.9 * s[0] + 0.1 * g;
  s[1] = 0.99 * s[1] + 0.01 * g * g;
  const double rate =
      kRate * std::sqrt(1 - std::pow(0.99, t)) / (1 - std::pow(0.9, t));
  w -= rate * s[0] / (std::sqrt(s[1]) + 1e-3);
}

const optimizers::AdamOptions kAdam{
    .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-3};

Case adam_case(bool lazy) {
  optimizers::AdamOptions options = kAdam;
  options.lazy = lazy;
  return {lazy ? "adam" : "adam of all rows",
          [=](const VariableScope& vars) {
            return optimizers::adam(vars, kRate, options);
          },
          {0, 0},
          adam_step,
          !lazy};
}

Case momentum_case(bool nesterov) {
  return {nesterov ? "nesterov" : "momentum",
          [=](const VariableScope& vars) {
            return optimizers::momentum(
                vars, kRate, {.momentum = 0.7, .nesterov = nesterov});
          },
          {0},
          [=](int, double g, double& w, Doubles& s) {
            s[0] = 0.7 * s[0] + g;
            w -= kRate * (nesterov ? g + 0.7 * s[0] : s[0]);
          }};
}

Case rmsprop_case(bool centered) {
  return {centered ? "centered rmsprop" : "rmsprop",
          [=](const VariableScope& vars) {
            return optimizers::rmsprop(vars, kRate,
                                       {.decay = 0.8,
                                        .momentum = 0.5,
                                        .epsilon = 1e-2,
                                        .centered = centered});
          },
          {1, 0, 0},
          [=](int, double g, double& w, Doubles& s) {
            s[0] = 0.8 * s[0] + 0.2 * g * g;
            s[1] = 0.8 * s[1] + 0.2 * g;
            const double mean = centered ? s[1] : 0;
            s[2] =
                0.5 * s[2] + kRate * g / std::sqrt(s[0] - mean * mean + 1e-2);
            w -= s[2];
          }};
}

std::vector<Case> cases() {
  return {
      {"sgd",
       [](const VariableScope& vars) { return optimizers::sgd(vars, kRate); },
       {},
       [](int, double g, double& w, Doubles&) { w -= kRate * g; }},
      momentum_case(false),
      momentum_case(true),
      {"adagrad",
       [](const VariableScope& vars) {
         return optimizers::adagrad(vars, kRate, {.initial_accumulator = 0.2});
       },
       {0.2},
       [](int, double g, double& w, Doubles& s) {
         s[0] += g * g;
         w -= kRate * g / std::sqrt(s[0]);
       }},
      rmsprop_case(false),
      rmsprop_case(true),
      adam_case(true),
      adam_case(false),
      {"adamw",
       [](const VariableScope& vars) {
         return optimizers::adamw(vars, kRate,
                                  {.adam = kAdam, .weight_decay = 0.3});
       },
       {0, 0},
       [](int t, double g, double& w, Doubles& s) {
         const double decay = kRate * 0.3 * w;
         adam_step(t, g, w, s);
         w -= decay;
       }},
  };
}

struct Model {
  Graph graph;
  Scope s{graph};
  VariableScope vars;
  // Four rows of two.
  const Doubles start{1, -2, 3, 0.5, -0.25, 4, 0.1, -1};
  ScopedVariable w =
      vars.get(s, "w", {4, 2},
               {.dtype = DataType::kDouble,
                .initializer = initializers::constant(Tensor::of<double>(
                    {4, 2}, {1, -2, 3, 0.5, -0.25, 4, 0.1, -1}))});
};

// What is left of `start` after steps by these gradients.
Doubles expected(const Case& c, const Doubles& start,
                 const std::vector<Doubles>& gradients,
                 const std::vector<std::vector<bool>>& has_row) {
  Doubles w = start;
  std::vector<Doubles> slots(w.size(), c.slots);
  for (size_t t = 0; t < gradients.size(); ++t)
    for (size_t i = 0; i < w.size(); ++i)
      if (c.moves_all || has_row[t][i / 2])
        c.step(int(t) + 1, gradients[t][i], w[i], slots[i]);
  return w;
}

}  // namespace

TEST_CASE("steps by a dense gradient are those of the formula") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    Model m;
    // The gradient is 2 (w - 1), of the sum.
    const Output w = m.w.read(m.s);
    const Output loss = ops::square(m.s, ops::sub(m.s, w, 1));
    const Output step = c.make(m.vars).minimize(m.s, loss, {m.w});
    Trainer trainer(m.s, m.vars);
    Doubles now = m.start;
    std::vector<Doubles> slots(now.size(), c.slots);
    for (int t = 1; t <= 3; ++t) {
      trainer.run(step);
      for (size_t i = 0; i < now.size(); ++i)
        c.step(t, 2 * (now[i] - 1), now[i], slots[i]);
      check_close(trainer.fetch({w}), now);
    }
  }
}

TEST_CASE("rows that a gradient has twice are added, others stay") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    Model m;
    const Output ids =
        ops::placeholder(m.s.named("ids"), DataType::kInt32, {3});
    const Output rows =
        m.s.op("ResourceGather", {m.w.parts()[0].variable.handle, ids},
               {{"dtype", DataType::kDouble}});
    const Output slopes = ops::constant(
        m.s, Tensor::of<double>({3, 2}, {1, 2, -0.5, 0.25, 4, -3}));
    const auto gradients =
        compute_gradients(m.s, ops::mul(m.s, rows, slopes), {m.w});
    REQUIRE_MESSAGE(m.s.ok(), m.s.status().to_string());
    REQUIRE(gradients[0].gradient.is_sparse());
    const Output step = c.make(m.vars).apply_gradients(m.s, gradients);
    const Output w = m.w.read(m.s);
    Trainer trainer(m.s, m.vars);
    trainer.run(step, {{"ids", Tensor::vector<int32_t>({1, 3, 1})}});
    trainer.run(step, {{"ids", Tensor::vector<int32_t>({0, 1, 0})}});
    check_close(
        trainer.fetch({w}),
        expected(
            c, m.start,
            {{0, 0, 5, -1, 0, 0, -0.5, 0.25}, {5, -1, -0.5, 0.25, 0, 0, 0, 0}},
            {{false, true, false, true}, {true, true, false, false}}));
  }
}

TEST_CASE("a rule of one's own is any op that applies gradients") {
  Model m;
  const Output w = m.w.read(m.s);
  const UpdateRule adadelta{
      .name = "Adadelta",
      .op = "Adadelta",
      .slots = {{"accum", "accumulator"}, {"accum_update", "updates"}},
      .scalars = {{"rho", 0.9}, {"epsilon", 1e-2}}};
  const Optimizer optimizer(m.vars, 1.0, adadelta);
  const Output step = optimizer.minimize(m.s, ops::mul(m.s, w, 2), {m.w});
  Trainer trainer(m.s, m.vars);
  trainer.run(step);
  const double change = std::sqrt(1e-2 / (0.1 * 4 + 1e-2)) * 2;
  Doubles wanted = m.start;
  for (double& value : wanted) value -= change;
  check_close(trainer.fetch({w}), wanted);
}
