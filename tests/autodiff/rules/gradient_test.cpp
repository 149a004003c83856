// Rules of ops that only gradients have.
#include <doctest/doctest.h>

#include "tests/autodiff/rules/containers_lists.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;

namespace {

const AttrMap kOnStack{{"elem_type", kDouble}};

}  // namespace

TEST_CASE("ops that are gradients have gradients by both inputs") {
  for (const char* op : {"SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad",
                         "ReciprocalGrad", "InvGrad"}) {
    CAPTURE(op);
    check_gradients(op_of(op), {values({2, 3}, 0.5, 2), values({2, 3})});
    check_gradients(op_of(op),
                    {complex_values({3}, 0.5, 1.5), complex_values({3})});
  }
}

TEST_CASE("a persistent stack gives a popped value's gradient to its push") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output none = s.op("PersistentStack", {}, kOnStack);
        const Output one = s.op("PersistentStackPush", {none, square(s, x[0])});
        const Output two = s.op("PersistentStackPush", {one, x[1]});
        // Two stacks share the element below.
        const Output other =
            s.op("PersistentStackPush", {one, ops::mul(s, x[0], x[1])});
        Outputs result;
        for (const Output& top : {two, other}) {
          const auto popped = s.op("PersistentStackPop", {top}, kOnStack);
          const auto rest = s.op("PersistentStackPop", {popped[0]}, kOnStack);
          result.push_back(ops::mul(s, popped[1], rest[1]));
        }
        result.push_back(s.op("PersistentStackPop", {one}, kOnStack)[1]);
        return result;
      },
      {values({2}), values({2})});
}

TEST_CASE("a stack is a loop variable with a gradient") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Outputs up = count_loop(
            s, 3, {s.op("PersistentStack", {}, kOnStack), x[0]},
            [&](const Scope& in, const Output&, const Outputs& v) -> Outputs {
              return {in.op("PersistentStackPush", {v[0], square(in, v[1])}),
                      ops::mul(in, v[1], x[1])};
            });
        const Outputs down = count_loop(
            s, 2, {up[0], x[1]},
            [&](const Scope& in, const Output&, const Outputs& v) -> Outputs {
              const auto popped = in.op("PersistentStackPop", {v[0]}, kOnStack);
              return {popped[0], ops::mul(in, v[1], as_pair(in, popped[1]))};
            });
        return {down[1], up[1]};
      },
      {values({2}), values({2})});
}

TEST_CASE("gradients of containers have gradients themselves") {
  const auto zero = [](const Scope& s) -> Output {
    return s.op("ZeroVariant", {});
  };
  const AttrMap type{{"T", kDouble}};
  const Input row{2};
  const Tensor pair = Tensor::vector<int32_t>({2});
  check_gradients(
      [&](const Scope& s, const Outputs& x) -> Outputs {
        Output list = s.op("GradientListAdd", {zero(s), 3, square(s, x[0])});
        list = s.op("GradientListAdd", {list, 3, x[1]});
        list = s.op("GradientListAdd", {list, 1, x[1]});
        const auto taken = s.op("GradientListTake", {list, 3, pair}, type);
        const Output put =
            s.op("GradientListPut", {list, 1, ops::mul(s, taken[1], x[0])});
        const Output dropped = s.op("GradientListDrop", {put, 2, 9});
        Outputs result{taken[1]};
        for (const Output& of : {Output(list), taken[0], put, dropped})
          for (const int index : {1, 3})
            result.push_back(s.op("GradientListGet", {of, index, pair}, type));
        const auto missing = s.op("GradientListTake", {put, 7, pair}, type);
        result.push_back(ops::add(s, missing[1], x[0]));
        const auto emptied = s.op("GradientListPut", {put, 3, zero(s)});
        result.push_back(
            s.op("GradientListGetRows", {emptied, {1, 3}, pair}, type));
        return result;
      },
      {values({2}), values({2})});
  check_gradients(
      [&](const Scope& s, const Outputs& x) -> Outputs {
        Output list =
            s.op("GradientListAddRows", {zero(s), {2, 0, 2}, square(s, x[0])});
        const auto taken =
            s.op("GradientListTakeRows", {list, {2, 5, 2}, pair}, type);
        const Output put = s.op("GradientListPutRows", {list, {0, 4, 0}, x[0]});
        Outputs result{taken[1]};
        for (const Output& of : {list, taken[0], put})
          result.push_back(
              s.op("GradientListGetRows", {of, {0, 2, 4, 2}, pair}, type));
        return result;
      },
      {values({3, 2})});
  check_gradients(
      [&](const Scope& s, const Outputs& x) -> Outputs {
        const Tensor lengths = Tensor::vector<int64_t>({2, 0, 1});
        const Output list =
            s.op("GradientListAddSplit", {zero(s), square(s, x[0]), lengths});
        return {s.op("GradientListGetConcat", {list, lengths, pair}, type)};
      },
      {values({3, 2})});
  check_gradients(
      [&](const Scope& s, const Outputs& x) -> Outputs {
        Output top = s.op("PersistentStackPush", {zero(s), square(s, x[0])});
        top = s.op("PersistentStackPush", {top, x[1]});
        top = s.op("PersistentStackDrop", {top}, kOnStack);
        top = s.op("PersistentStackPushZero", {top}, kOnStack);
        Outputs result;
        for (int i = 0; i < 3; ++i) {
          const auto popped =
              s.op("PersistentStackPopOrZero", {top, pair}, kOnStack);
          result.push_back(ops::mul(s, popped[1], x[0]));
          top = popped[0];
        }
        return result;
      },
      {values({2}), values({2})});
}
