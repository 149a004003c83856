// Errors of optimizers.
#include "autodiff/train/optimizers.h"
#include "tests/autodiff/train/trainer.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

TEST_CASE("an optimizer says why it cannot train") {
  Program p;
  const ScopedVariable w = p.number("w", 1), other = p.number("other", 1);
  const Output loss = ops::square(p.s, w.read(p.s));
  const Optimizer sgd = optimizers::sgd(p.vars, 0.1);
  SUBCASE("no variable") {
    CHECK_FALSE(sgd.minimize(p.s, loss, {}).valid());
    CHECK(p.fails_with("there are no variables to train"));
  }
  SUBCASE("a loss that depends on no variable") {
    CHECK_FALSE(sgd.minimize(p.s, loss, {other}).valid());
    CHECK(p.fails_with("no gradient by any variable of [\"other\"]"));
  }
  SUBCASE("one variable of several that the loss does not depend on") {
    CHECK(sgd.minimize(p.s, loss, {other, w}).valid());
    CHECK(p.s.ok());
  }
  SUBCASE("a value in place of a variable") {
    const ScopedVariable value =
        p.vars
            .with_values([](const Scope& s, const std::string&, const Shape&,
                            DataType) { return ops::constant(s, 1.0); })
            .get(p.s, "value", {}, {.dtype = DataType::kDouble});
    sgd.minimize(p.s, ops::square(p.s, value.read(p.s)), {value});
    CHECK(p.fails_with("\"value\" is a value, which cannot be trained"));
  }
  SUBCASE("a rule that leaves out a scalar") {
    Optimizer(p.vars, 0.1, {.name = "Ftrl", .op = "ProximalGradientDescent"})
        .minimize(p.s, loss, {w});
    CHECK(p.fails_with("does not say what \"l1\" of"));
  }
  SUBCASE("an op that there is not") {
    Optimizer(p.vars, 0.1, {.name = "Adan", .op = "Adan"})
        .minimize(p.s, loss, {w});
    CHECK(p.fails_with("ResourceApplyAdan"));
  }
  SUBCASE("a transform that loses a gradient") {
    sgd.minimize(p.s, loss, {w},
                 {.transform = [](const Scope&, const std::vector<Gradient>&) {
                   return std::vector<Gradient>();
                 }});
    CHECK(p.fails_with("the transform made 0 gradients of 1"));
  }
}
