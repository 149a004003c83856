// Softmax and cross entropies.
#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
using graph::Outputs;
using graph::Scope;
namespace ops = tagflow::graph::ops;

namespace {

// The op takes labels that add up to 1 for granted.
Outputs cross_entropy(const Scope& s, const Outputs& x) {
  return ops::softmax_cross_entropy(s, x[0], ops::softmax(s, x[1])).loss;
}

Outputs backprop(const Scope& s, const Outputs& x) {
  return ops::softmax_cross_entropy(s, x[0], x[1]).backprop;
}

}  // namespace

TEST_CASE("Softmax and LogSoftmax have gradients") {
  check_gradients(op_of("Softmax"), {values({2, 4})}, {.order = 3});
  check_gradients(op_of("LogSoftmax"), {values({2, 4})}, {.order = 3});
  check_gradients(op_of("Softmax"), {values({4})});
  check_gradients(op_of("LogSoftmax"), {values({2, 2, 3})});
}

TEST_CASE("the cross entropy has gradients by logits and labels") {
  check_gradients(cross_entropy, {values({2, 3}), values({2, 3})},
                  {.order = 3});
}

TEST_CASE("the other output of the cross entropy has gradients") {
  check_gradients(backprop, {values({2, 3}), values({2, 3})});
  check_gradients(
      [](const Scope& s, const Outputs& x) {
        const auto both =
            ops::softmax_cross_entropy(s, x[0], ops::softmax(s, x[1]));
        return ops::mul(s, both.backprop, ops::expand_dims(s, both.loss, 1));
      },
      {values({2, 3}), values({2, 3})});
}

TEST_CASE("gradients of the cross entropy are summed over repeated rows") {
  check_gradients(cross_entropy, {values({2, 3}), values({1, 3})});
  check_gradients(cross_entropy, {values({1, 3}), values({2, 3})});
  check_gradients(cross_entropy, {values({3}), values({2, 3})});
  check_gradients(backprop, {values({2, 3}), values({2, 1})});
  check_gradients(backprop, {values({2, 1}), values({2, 3})});
  check_gradients(cross_entropy, {values({2, 1}), values({2, 3})});
}

TEST_CASE("the sparse cross entropy has gradients") {
  const Function f = [](const Scope& s, const Outputs& x) {
    const auto labels = ops::constant<int32_t>(s, {2, 0});
    const auto both = ops::sparse_softmax_cross_entropy(s, x[0], labels);
    return Outputs{both.loss, both.backprop};
  };
  check_gradients(f, {values({2, 3})}, {.order = 3});
}
