// The nodes that optimizers make: names, order, options, errors.
#include "autodiff/train/clip.h"
#include "autodiff/train/optimizers.h"
#include "autodiff/train/schedule.h"
#include "tests/autodiff/train/trainer.h"
#include "tests/temp_path.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

TEST_CASE("slots have the names that TensorFlow 1 gives them") {
  Program p;
  const ScopedVariable w = p.number("w", 1);
  const Output loss = ops::square(p.s, w.read(p.s));
  const Optimizer adam = optimizers::adam(p.vars, 0.1);
  SUBCASE("of Adam") {
    adam.minimize(p.s, loss, {w});
    REQUIRE_MESSAGE(p.s.ok(), p.s.status().to_string());
    CHECK(p.names() ==
          Names{"w", "beta1_power", "beta2_power", "w/Adam", "w/Adam_1"});
    CHECK(adam.slot(w, "m").name() == "w/Adam");
    CHECK(adam.slot(w, "v").name() == "w/Adam_1");
    CHECK_FALSE(adam.slot(w, "momentum").valid());
    CHECK(p.vars.trainable_variables().size() == 1);
  }
  SUBCASE("of one optimizer in two places, once") {
    adam.minimize(p.s, loss, {w});
    const Optimizer same = adam;
    same.minimize(p.s, loss, {w});
    CHECK(p.names().size() == 5);
  }
  SUBCASE("of a second optimizer") {
    adam.minimize(p.s, loss, {w});
    optimizers::adam(p.vars, 0.1).minimize(p.s, loss, {w});
    REQUIRE_MESSAGE(p.s.ok(), p.s.status().to_string());
    CHECK(p.names() == Names{"w", "beta1_power", "beta2_power", "w/Adam",
                             "w/Adam_1", "beta1_power_1", "beta2_power_1",
                             "w/Adam_2", "w/Adam_3"});
  }
  SUBCASE("of the others") {
    const Optimizer rmsprop =
        optimizers::rmsprop(p.vars, 0.1, {.centered = true});
    rmsprop.minimize(p.s, loss, {w});
    optimizers::momentum(p.vars, 0.1).minimize(p.s, loss, {w});
    optimizers::adagrad(p.vars, 0.1).minimize(p.s, loss, {w});
    optimizers::sgd(p.vars, 0.1).minimize(p.s, loss, {w});
    REQUIRE_MESSAGE(p.s.ok(), p.s.status().to_string());
    CHECK(p.names() == Names{"w", "w/RMSProp", "w/RMSProp_1", "w/RMSProp_2",
                             "w/Momentum", "w/Adagrad"});
    CHECK(rmsprop.slot(w, "rms").name() == "w/RMSProp");
    CHECK(rmsprop.slot(w, "mg").name() == "w/RMSProp_1");
    CHECK(rmsprop.slot(w, "momentum").name() == "w/RMSProp_2");
  }
}

TEST_CASE("an optimizer's operation has the name that its scope says") {
  Program p;
  const ScopedVariable w = p.number("w", 1);
  const Output step = optimizers::sgd(p.vars, 0.1)
                          .minimize(p.s.named("train"), w.read(p.s), {w});
  CHECK(step.name() == "train");
  CHECK(step.is_operation());
}

TEST_CASE("an optimizer step's fetched loss is the one before the step") {
  Program p;
  const ScopedVariable w = p.number("w", 3);
  const Output loss = w.read(p.s);
  const Output step = optimizers::sgd(p.vars, 1.0).minimize(p.s, loss, {w});
  Trainer trainer(p.s, p.vars);
  for (const double wanted : {3, 2, 1})
    CHECK(trainer.fetch({loss}, {step}) == Doubles{wanted});
}

TEST_CASE("an optimizer changes no variable before all gradients are there") {
  // Each is the gradient of the other one.
  for (int i = 0; i < 20; ++i) {
    Program p;
    const ScopedVariable a = p.number("a", 3), b = p.number("b", 5);
    const Output loss = ops::mul(p.s, a.read(p.s), b.read(p.s));
    const Output step =
        optimizers::sgd(p.vars, 1.0).minimize(p.s, loss, {a, b});
    const Outputs both{a.read(p.s), b.read(p.s)};
    Trainer trainer(p.s, p.vars);
    trainer.run(step);
    CHECK(trainer.fetch(both) == Doubles{-2, 2});
  }
}

TEST_CASE("an optimizer counts a step after it has taken the step's rate") {
  Program p;
  const ScopedVariable w = p.number("w", 10);
  const ScopedVariable step = global_step(p.s, p.vars);
  CHECK(global_step(p.s, p.vars).name() == "global_step");
  const Output rate = schedules::piecewise_constant(
      p.s, step.read(p.s), {0, 1}, {4, 2, 1}, DataType::kDouble);
  const Output now = w.read(p.s);
  const Output train = optimizers::sgd(p.vars, rate)
                           .minimize(p.s, now, {w}, {.global_step = step});
  const Outputs state{now, step.read(p.s)};
  Trainer trainer(p.s, p.vars);
  const std::vector<Doubles> wanted{{6, 1}, {4, 2}, {3, 3}, {2, 4}};
  for (const Doubles& values : wanted) {
    trainer.run(train);
    CHECK(trainer.fetch(state) == values);
  }
}

TEST_CASE("gradients pass through what is asked for before they are applied") {
  Program p;
  const ScopedVariable a = p.number("a", 0), b = p.number("b", 0);
  const Output loss = ops::add(p.s, ops::mul(p.s, a.read(p.s), 3),
                               ops::mul(p.s, b.read(p.s), 4));
  const Output step =
      optimizers::sgd(p.vars, 1.0)
          .minimize(p.s, loss, {a, b}, {.transform = clipping_to(1)});
  const Outputs both{a.read(p.s), b.read(p.s)};
  Trainer trainer(p.s, p.vars);
  trainer.run(step);
  check_close(trainer.fetch(both), {-0.6, -0.8});
}

TEST_CASE("adamw decays the variables that the program names") {
  Program p;
  const ScopedVariable a = p.number("kernel", 1), b = p.number("bias", 1);
  const Output sum = ops::add(p.s, a.read(p.s), b.read(p.s));
  const Output step =
      optimizers::adamw(p.vars, 0.5,
                        {.weight_decay = 0.5,
                         .decays =
                             [](const ScopedVariable& variable) {
                               return variable.name() == "kernel";
                             }})
          .minimize(p.s, ops::mul(p.s, sum, 0), {a, b});
  const Outputs both{a.read(p.s), b.read(p.s)};
  Trainer trainer(p.s, p.vars);
  trainer.run(step);
  check_close(trainer.fetch(both), {0.75, 1});
}

TEST_CASE("a partitioned variable has slots in the same parts") {
  Program p;
  const ScopedVariable w =
      p.vars.get(p.s, "w", {5},
                 {.dtype = DataType::kDouble,
                  .initializer = initializers::constant(2),
                  .partitioner = partitioners::fixed_size(2)});
  const Output now = w.read(p.s);
  const Optimizer momentum = optimizers::momentum(p.vars, 0.5);
  const Output step = momentum.minimize(p.s, ops::square(p.s, now), {w});
  Trainer trainer(p.s, p.vars);
  const ScopedVariable slot = momentum.slot(w, "momentum");
  CHECK(slot.name() == "w/Momentum");
  REQUIRE(slot.parts().size() == 2);
  CHECK(slot.parts()[0].shape == w.parts()[0].shape);
  CHECK(slot.shape_and_slice(1) == w.shape_and_slice(1));
  trainer.run(step);
  check_close(trainer.fetch({now}), {0, 0, 0, 0, 0});
}

TEST_CASE("a checkpoint has the slots, so that training goes on") {
  Program p;
  const ScopedVariable w = p.number("w", 1);
  const Output now = w.read(p.s);
  const Output step =
      optimizers::adam(p.vars, 0.1).minimize(p.s, ops::square(p.s, now), {w});
  const auto path = tagflow::testing::temp_path("optimizer");
  const Output save = p.vars.save(p.s, path.string());
  const Output restore = p.vars.restore(p.s, path.string());
  Trainer first(p.s, p.vars);
  for (int i = 0; i < 3; ++i) first.run(step);
  first.run(save);
  first.run(step);
  Trainer second(p.s, p.vars);
  second.run(restore);
  second.run(step);
  CHECK(second.fetch({now}) == first.fetch({now}));
  for (const char* end : {".index", ".data-00000-of-00001"})
    std::filesystem::remove(path.string() + end);
}
