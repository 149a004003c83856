// Ops on several lists, and tensors of lists.
#include "tests/autodiff/rules/containers_lists.h"

using namespace tagflow;
using namespace tagflow::autodiff::testing;

TEST_CASE("TensorListConcatLists has gradients") {
  const auto concat = [](const Scope& s, const Output& a, const Output& b) {
    return s.op("TensorListConcatLists", {a, b}, kElements)[0];
  };
  check_gradients(
      [&](const Scope& s, const Outputs& x) -> Outputs {
        const Output a = from_tensor(s, square(s, x[0]));
        const Output b = push_back(s, from_tensor(s, x[0]), x[1]);
        const Output twice = concat(s, concat(s, a, b), a);
        return {stack(s, twice), get_item(s, twice, 4),
                stack(s, concat(s, empty_list(s), b)),
                stack(s, concat(s, a, empty_list(s)))};
      },
      {values({3, 2}), values({2})});
  // A list of each row, and such lists once more behind them.
  check_gradients(
      [&](const Scope& s, const Outputs& x) -> Outputs {
        const Output a = from_tensor(s, square(s, x[0]));
        const Output b = from_tensor(s, x[1]);
        const Output lists = s.op("Pack", {{a, b}}, {{"N", int64_t(2)}})[0];
        const Output others = s.op("Pack", {{b, b}}, {{"N", int64_t(2)}})[0];
        const graph::OpResult parts =
            s.op("Unpack", {concat(s, lists, others)}, {{"num", int64_t(2)}});
        return {stack(s, parts[0]), stack(s, parts[1])};
      },
      {values({3, 2}), values({1, 2})});
}

TEST_CASE("TensorListPushBackBatch has gradients") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output a = from_tensor(s, square(s, x[0]));
        const Output b = empty_list(s);
        Output lists = s.op("Pack", {{a, b}}, {{"N", int64_t(2)}});
        for (int i = 0; i < 2; ++i)
          lists = s.op("TensorListPushBackBatch",
                       {lists, ops::mul(s, x[1], square(s, x[1]))});
        const graph::OpResult parts =
            s.op("Unpack", {lists}, {{"num", int64_t(2)}});
        return {stack(s, parts[0]), get_item(s, parts[1], 1)};
      },
      {values({3, 2}), values({2, 2})});
  // Of one list nothing is read, and of a row neither.
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output a = from_tensor(s, square(s, x[0]));
        const Output lists = s.op(
            "TensorListPushBackBatch",
            {s.op("Pack", {{a, a}}, {{"N", int64_t(2)}})[0], square(s, x[1])});
        const graph::OpResult parts =
            s.op("Unpack", {lists}, {{"num", int64_t(2)}});
        return {get_item(s, parts[1], 0)};
      },
      {values({3, 2}), values({2, 2})});
}

TEST_CASE("loops and branches lead several lists as one tensor") {
  const auto pack = [](const Scope& s, const Output& a, const Output& b) {
    return s.op("Pack", {{a, b}}, {{"N", int64_t(2)}})[0];
  };
  const auto push = [](const Scope& s, const Output& lists, const Output& x) {
    return s.op("TensorListPushBackBatch", {lists, x})[0];
  };
  const auto stacks = [](const Scope& s, const Output& lists) -> Outputs {
    const graph::OpResult parts =
        s.op("Unpack", {lists}, {{"num", int64_t(2)}});
    return {stack(s, parts[0]), stack(s, parts[1])};
  };
  // A variable of the loop, and a constant that is read in each iteration.
  check_gradients(
      [&](const Scope& s, const Outputs& x) -> Outputs {
        const Output fixed =
            push(s, pack(s, empty_list(s), empty_list(s)), square(s, x[0]));
        const Outputs last = count_loop(
            s, 2, {fixed, ops::mul(s, x[0], x[1])},
            [&](const Scope& in, const Output&, const Outputs& v) -> Outputs {
              const Output more = ops::mul(in, square(in, v[1]), x[1]);
              const Output lists =
                  in.op("TensorListConcatLists", {push(in, v[0], more), fixed},
                        kElements)[0];
              return {lists, more};
            });
        return stacks(s, last[0]);
      },
      {values({2, 2}), values({2, 2})});
  // Of the branches one reads lists that the other does not.
  for (const bool which : {false, true}) {
    CAPTURE(which);
    check_gradients(
        [&](const Scope& s, const Outputs& x) -> Outputs {
          const Output lists =
              push(s, pack(s, empty_list(s), empty_list(s)), square(s, x[0]));
          const Output others = push(s, lists, x[1]);
          const auto chosen = cond(
              s, s.constant(Tensor::scalar(which)),
              [&](const Scope& in) { return push(in, lists, x[0]); },
              [&](const Scope& in) {
                return in.op("TensorListConcatLists", {lists, others},
                             kElements)[0];
              });
          return stacks(s, chosen[0]);
        },
        {values({2, 2}), values({2, 2})});
  }
}
