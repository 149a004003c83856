#include <doctest/doctest.h>

#include "devices/kernels/gradient/list.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/rules/containers_lists.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;

namespace {

struct Recurrence {
  Output i;
  graph::TensorArray states;
  TAGFLOW_FIELDS(i, states)
};

}  // namespace

TEST_CASE("a list's elements that are set and read have gradients") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        Output list = set_item(s, reserve(s, 3), 1, square(s, x[0]));
        const Output early = get_item(s, list, 1);
        // What was set before has no part in what is read later.
        list = set_item(s, list, 1, ops::mul(s, early, x[1]));
        list = set_item(s, list, 2, x[0]);
        return {early, get_item(s, list, 1), get_item(s, list, 1),
                get_item(s, list, 2), square(s, get_item(s, list, 2))};
      },
      {values({2}), values({2})});
}

TEST_CASE("an element that was never set takes no gradient") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output list = set_item(s, reserve(s, 3), 0, square(s, x[0]));
        return ops::mul(s, stack(s, list), x[1]);
      },
      {values({2}), values({3, 2})});
}

TEST_CASE("a list's elements that are pushed and popped have gradients") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        Output list = push_back(s, empty_list(s), square(s, x[0]));
        list = push_back(s, list, x[1]);
        const auto first = pop_back(s, list);
        // In its place.
        const Output other =
            push_back(s, first[0], ops::mul(s, first[1], x[0]));
        const auto second = pop_back(s, other);
        const auto last = pop_back(s, second[0]);
        return {first[1], ops::mul(s, second[1], last[1]), stack(s, other)};
      },
      {values({2}), values({2})});
}

TEST_CASE("lists that grow and shrink keep the gradients of what they keep") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output list = from_tensor(s, square(s, x[0]));
        const auto popped = pop_back(s, list);
        // Element 2 is zero now, and was not before.
        const Output grown =
            ops::add(s, stack(s, resize(s, popped[0], 3)), x[0]);
        const Output shrunk = stack(s, resize(s, list, 1));
        const Output longer = set_item(s, popped[0], 4, x[1], true);
        const Output again = stack(s, set_item(s, longer, 2, x[1], true));
        return {grown, shrunk, stack(s, longer), again, popped[1]};
      },
      {values({3, 2}), values({2})});
}

TEST_CASE("lists and tensors are made of each other, row by row") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output list = from_tensor(s, square(s, x[0]));
        const Output rows =
            s.op("TensorListGather", {list, {2, 0, 2}, -1}, kElements);
        return {stack(s, list), rows, get_item(s, list, 1)};
      },
      {values({3, 2})});
}

TEST_CASE("TensorListScatter gives its gradient to the last row of an index") {
  for (const bool sized : {false, true})
    check_gradients(
        [&](const Scope& s, const Outputs& x) -> Outputs {
          graph::Inputs inputs{square(s, x[0]), {1, 0, 1}, -1};
          if (sized) inputs.add(4);
          const Output list =
              s.op(sized ? "TensorListScatterV2" : "TensorListScatter", inputs);
          return {stack(s, list), get_item(s, list, 1)};
        },
        {values({3, 2})});
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const auto popped = pop_back(s, from_tensor(s, square(s, x[0])));
        const Output list = s.op("TensorListScatterIntoExistingList",
                                 {popped[0], square(s, x[1]), {1, 4, 1}});
        return {stack(s, list), popped[1]};
      },
      {values({3, 2}), values({3, 2})});
}

TEST_CASE("TensorListSplit and TensorListConcat have gradients") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output list =
            s.op("TensorListSplit",
                 {square(s, x[0]), -1, Tensor::vector<int64_t>({2, 0, 1, 2})});
        const Output cut =
            set_item(s, list, 2, ops::mul(s, get_item(s, list, 0), x[1]));
        const Output none = s.constant(Tensor::make(DataType::kInt64, {0}));
        return {s.op("TensorListConcatV2", {cut, {-1, 2}, none}, kElements),
                s.op("TensorListConcat", {list}, kElements),
                get_item(s, list, 3)};
      },
      {values({5, 2}), values({2})});
}

TEST_CASE("lists are added, and hold lists") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output a = from_tensor(s, square(s, x[0]));
        const Output b = set_item(s, a, 1, x[1]);
        return {stack(s, s.op("AddN", {a, b, a}))};
      },
      {values({3, 2}), values({2})});
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const AttrMap lists{{"element_dtype", DataType::kVariant}};
        const Output inner = from_tensor(s, square(s, x[0]));
        Output outer = s.op("TensorListReserve", {-1, 2}, lists);
        outer = set_item(s, outer, 0, inner);
        outer = set_item(s, outer, 1, set_item(s, inner, 0, x[1]));
        const Output first = s.op("TensorListGetItem", {outer, 0, -1}, lists);
        const Output second = s.op("TensorListGetItem", {outer, 1, -1}, lists);
        return {stack(s, first), stack(s, second), get_item(s, second, 0),
                get_item(s, first, 0)};
      },
      {values({3, 2}), values({2})});
}

TEST_CASE("a loop writes a list and reads it") {
  // a[i + 1] = a[i] x^2 + a[i - 1].
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        Output list = set_item(s, reserve(s, 6), 0, x[0]);
        list = set_item(s, list, 1, x[1]);
        const Outputs result = count_loop(
            s, 4, {list},
            [&](const Scope& in, const Output& i, const Outputs& v) -> Outputs {
              const Output next =
                  ops::add(in,
                           ops::mul(in, get_item(in, v[0], ops::add(in, i, 1)),
                                    square(in, x[1])),
                           get_item(in, v[0], i));
              return {set_item(in, v[0], ops::add(in, i, 2), next)};
            });
        return stack(s, result[0]);
      },
      {values({2}), values({2})});
}

TEST_CASE("a loop pushes onto a list, and another pops from it") {
  for (const bool grows : {false, true})
    check_gradients(
        [&](const Scope& s, const Outputs& x) -> Outputs {
          const Outputs up =
              count_loop(s, 3, {empty_list(s), x[0]},
                         [&](const Scope& in, const Output& i,
                             const Outputs& v) -> Outputs {
                           const Output value = square(in, v[1]);
                           return {grows ? set_item(in, v[0], i, value, true)
                                         : push_back(in, v[0], value),
                                   ops::mul(in, value, x[1])};
                         });
          const Outputs down = count_loop(
              s, 3, {up[0], x[1]},
              [&](const Scope& in, const Output&, const Outputs& v) -> Outputs {
                const auto popped = pop_back(in, v[0]);
                return {popped[0],
                        ops::add(in, ops::mul(in, v[1], as_pair(in, popped[1])),
                                 x[0])};
              });
          return {down[1], up[1]};
        },
        {values({2}), values({2})});
}

TEST_CASE("an optional's values have gradients") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output list = from_tensor(s, square(s, x[1]));
        const Output optional =
            s.op("OptionalFromValue",
                 {square(s, x[0]), 7, list, ops::mul(s, x[0], 2)});
        const std::vector<DataType> types{kDouble, DataType::kInt32,
                                          DataType::kVariant, kDouble};
        const auto read =
            s.op("OptionalGetValue", {optional},
                 {{"output_types", types},
                  {"output_shapes", std::vector<PartialShape>(4)}});
        return {ops::mul(s, read[0], read[0]), stack(s, read[2])};
      },
      {values({2}), values({3, 2})});
}

TEST_CASE("tensor arrays have gradients along their flow") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        graph::TensorArray array(s, 4, kDouble,
                                 {.infer_shape = false,
                                  .dynamic_size = true,
                                  .clear_after_read = false});
        array = array.unstack(s, square(s, x[0]));
        const Output read = array.read(s, 1);
        array = array.write(s, 2, x[1]);
        array = array.write(s, 3, ops::mul(s, read, x[1]));
        array = array.scatter(s, {5, 4}, ops::mul(s, x[0], x[1]));
        return {read, array.read(s, 3), array.gather(s, {3, 4, 3}),
                array.stack(s)};
      },
      {values({2, 2}), values({2})}, {.unknown_shapes = false});
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        graph::TensorArray array(
            s, 3, kDouble, {.infer_shape = false, .clear_after_read = false});
        array = array.split(s, square(s, x[0]), {2, 0, 1});
        return {array.concat(s), array.read(s, 2)};
      },
      {values({3, 2})});
}

TEST_CASE("a loop writes a tensor array and reads it") {
  // h[i + 1] = h[i] x[i]^2 + h[i - 1].
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const graph::TensorArrayOptions keeps{.clear_after_read = false};
        const auto inputs =
            graph::TensorArray(s, 4, kDouble, keeps).unstack(s, x[0]);
        auto states = graph::TensorArray(s, 6, kDouble, keeps);
        states = states.write(s, 0, x[1]).write(s, 1, square(s, x[1]));
        const auto last = while_loop(
            s,
            [](const Scope& in, const Recurrence& v) {
              return ops::less(in, v.i, 4);
            },
            [&](const Scope& in, Recurrence v) {
              const Output gate = square(in, inputs.read(in, v.i));
              const Output before = v.states.read(in, v.i);
              v.i = ops::add(in, v.i, 1);
              const Output next = ops::add(
                  in, before, ops::mul(in, v.states.read(in, v.i), gate));
              v.states = v.states.write(in, ops::add(in, v.i, 1), next);
              return v;
            },
            Recurrence{s.constant(Tensor::scalar(int32_t{0})), states});
        return {last.states.stack(s), last.states.read(s, 5)};
      },
      {values({4, 2}), values({2})});
}

TEST_CASE("a branch in a loop sets elements that others leave as they are") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output list = from_tensor(s, x[0]);
        const Outputs result = count_loop(
            s, 4, {list, x[1]},
            [&](const Scope& in, const Output& i, const Outputs& v) -> Outputs {
              const Output odd = ops::equal(in, ops::floor_mod(in, i, 2), 1);
              return cond(
                  in, odd,
                  [&](const Scope& t) -> Outputs {
                    const Output item =
                        square(t, as_pair(t, get_item(t, v[0], i)));
                    return {set_item(t, v[0], i, item),
                            ops::mul(t, v[1], item)};
                  },
                  [&](const Scope& t) -> Outputs {
                    return {v[0], ops::add(t, v[1],
                                           as_pair(t, get_item(t, v[0], i)))};
                  });
            });
        return {stack(s, result[0]), result[1]};
      },
      {values({4, 2}), values({2})});
}

// Which the number of iterations would be squared by.
TEST_CASE("the gradient of a loop over a list or an array copies none") {
  const int n = 200;
  const auto as_scalar = [](const Scope& s, const Output& element) {
    return s.op("EnsureShape", {element}, {{"shape", PartialShape::scalar()}});
  };
  const Function over_list = [&](const Scope& s, const Outputs& x) -> Outputs {
    const Output list = s.op("TensorListFromTensor",
                             {ops::fill(s, {n + 1}, x[0]), -1}, kElements);
    const Outputs result = count_loop(
        s, n, {list, x[0]},
        [&](const Scope& in, const Output& i, const Outputs& v) -> Outputs {
          // Elements that were set, and others that nothing has to do with it.
          const Output value =
              ops::mul(in, as_scalar(in, get_item(in, v[0], i)), x[0]);
          const Output other =
              as_scalar(in, get_item(in, v[0], ops::sub(in, n, i)));
          return {set_item(in, v[0], ops::add(in, i, 1), value),
                  ops::add(in, v[1], square(in, other))};
        });
    return {ops::add(s, result[1], as_scalar(s, get_item(s, result[0], n)))};
  };
  const Function over_array = [&](const Scope& s, const Outputs& x) -> Outputs {
    const auto array =
        graph::TensorArray(s, n + 1, kDouble, {.clear_after_read = false})
            .write(s, 0, x[0]);
    const auto last = while_loop(
        s,
        [&](const Scope& in, const Recurrence& v) {
          return ops::less(in, v.i, n);
        },
        [&](const Scope& in, Recurrence v) {
          const Output value = v.states.read(in, v.i);
          const Output half = v.states.read(in, ops::floor_div(in, v.i, 2));
          v.i = ops::add(in, v.i, 1);
          v.states = v.states.write(
              in, v.i, ops::mul(in, ops::add(in, value, half), x[0]));
          return v;
        },
        Recurrence{s.constant(Tensor::scalar(int32_t{0})), array});
    return {last.states.read(s, n)};
  };
  for (const Function& f : {over_list, over_array}) {
    graph::Graph graph;
    const Scope s(graph);
    const Output x = ops::constant(s, 0.5);
    Output y = f(s, {x})[0];
    for (int order = 0; order < 2; ++order) y = dense_gradients(s, {y}, {x})[0];
    const int64_t before = devices::GradientList::elements_copied();
    evaluate(s, {y});
    CHECK(devices::GradientList::elements_copied() == before);
  }
}

TEST_CASE("containers without a gradient rule are refused") {
  const auto refused = [](const Function& f, const std::string& text) {
    const auto wrong = wrong_gradients(f, {values({2})});
    REQUIRE(!wrong.ok());
    INFO(wrong.status().to_string());
    CHECK(wrong.status().message().find(text) != std::string::npos);
  };
  refused(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output map =
            s.op("TensorMapInsert", {s.op("EmptyTensorMap", {}), 1, x[0]});
        return {s.op("TensorMapLookup", {map, 1}, {{"value_dtype", kDouble}})};
      },
      "gradients of maps are not implemented");
}
