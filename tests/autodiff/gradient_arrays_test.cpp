// Gradients through TensorFlow's gradient arrays, which sum what is written to
// them.
#include <doctest/doctest.h>

#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/gradient_check.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

namespace {

const AttrMap kDoubles{{"dtype", DataType::kDouble}};

// An array with the rows of a matrix, and its gradient array.
struct Arrays {
  Arrays(const Scope& scope, const Output& rows) : s(scope) {
    const OpResult made =
        s.named("array").op("TensorArrayV3", {4},
                            {{"dtype", DataType::kDouble},
                             {"clear_after_read", false},
                             {"identical_element_shapes", true}});
    array = made[0];
    flow = s.op("TensorArrayScatterV3",
                {array, ops::range(s, 0, 4, 1), rows, made[1]});
  }

  // The gradient array for the source, and the flow it begins with, which is
  // that of the array, as TensorFlow has it.
  Output gradient(const Output& after, const char* source = "gradients") {
    const OpResult made = s.op("TensorArrayGradV3", {array, after},
                               {{"source", std::string(source)}});
    flow_of_gradient =
        ops::identity(s.with_control_dependencies({made[0]}), after);
    return made[0];
  }

  const Scope s;
  Output array;
  Output flow;
  Output flow_of_gradient;
};

Output write(const Scope& s, const Output& array, const Input& index,
             const Output& value, const Output& flow) {
  return s.op("TensorArrayWriteV3", {array, index, value, flow});
}

Output read(const Scope& s, const Output& array, const Input& index,
            const Output& flow) {
  return s.op("TensorArrayReadV3", {array, index, flow}, kDoubles);
}

Output elements(const Scope& s, const Output& array,
                const std::vector<int32_t>& indices, const Output& flow) {
  return s.op(
      "TensorArrayGatherV3",
      {array, Tensor::of<int32_t>({int64_t(indices.size())}, indices), flow},
      kDoubles);
}

}  // namespace

TEST_CASE("gradient arrays: values that are added have gradients") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        Arrays a(s, x[0]);
        const Output sum = a.gradient(a.flow);
        const Output start = a.flow_of_gradient;
        const Output early = write(s, sum, 2, ops::tanh(s, x[1]), start);
        const Output before = read(s, sum, 2, early);
        // What the read shall not see waits for it. There are three flows that
        // begin with zeros, and their sum has what was added to each.
        const Scope after = s.with_control_dependencies({before});
        const Output one = write(after, sum, 0, ops::sin(s, x[1]), start);
        const Output two = write(s, sum, 0, ops::exp(s, x[1]), one);
        const Output three = write(s, sum, 1, ops::square(s, x[1]), two);
        const Output four = write(after, sum, 1, ops::cos(s, x[1]), start);
        const Output all = s.op("AddN", {ops::add(s, three, four), early});
        const Output again = a.gradient(all);
        // Nothing was added to the last one.
        const Output values = elements(s, again, {0, 1, 3}, a.flow_of_gradient);
        return {ops::square(s, before), ops::square(s, values),
                ops::square(s, elements(s, a.array, {0, 2}, a.flow))};
      },
      {values({4, 3}), values({3})});
}

TEST_CASE("rows and parts that are added to a gradient array have gradients") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        Arrays a(s, x[0]);
        const Output sum = a.gradient(a.flow);
        const Output rows = s.op("TensorArrayScatterV3",
                                 {sum, ops::range(s, 0, 4, 1),
                                  ops::sin(s, x[0]), a.flow_of_gradient});
        const Output more =
            s.op("TensorArrayScatterV3",
                 {sum, ops::range(s, 0, 4, 1), ops::square(s, x[0]), rows});
        return ops::square(s, elements(s, sum, {0, 1, 2, 3}, more));
      },
      {values({4, 3})});
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        Arrays a(s, x[0]);
        const Output sum = a.gradient(a.flow);
        const Output flat = ops::reshape(
            s, x[0], ops::constant(s, Tensor::vector<int32_t>({12})));
        const Output threes =
            ops::constant(s, Tensor::vector<int64_t>({3, 3, 3, 3}));
        Output flow = s.op("TensorArraySplitV3", {sum, ops::sin(s, flat),
                                                  threes, a.flow_of_gradient});
        flow = s.op("TensorArraySplitV3",
                    {sum, ops::square(s, flat), threes, flow});
        return ops::square(
            s, s.op("TensorArrayConcatV3", {sum, flow}, kDoubles)[0]);
      },
      {values({4, 3})});
}

TEST_CASE("a loop that adds to a gradient array has gradients") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        Arrays a(s, x[0]);
        const Outputs sums = while_loop(
            s,
            [](const Scope& in, const Outputs& v) {
              return ops::less(in, v[0], 3);
            },
            [&](const Scope& in, const Outputs& v) -> Outputs {
              const OpResult made = in.with_control_dependencies({v[0]}).op(
                  "TensorArrayGradV3", {a.array, a.flow},
                  {{"source", std::string("gradients")}});
              const Output value = ops::sin(in, ops::mul(in, x[1], v[2]));
              const Output first = write(in, made[0], v[0], value, a.flow);
              const Output both = write(in, made[0], 0, value, first);
              return {ops::add(in, v[0], 1), ops::add(in, v[1], both),
                      ops::add(in, v[2], 1.0)};
            },
            {0, ops::constant(s, 0.0f), ops::constant(s, 1.0)});
        const Output sum = a.gradient(sums[1]);
        return ops::square(s,
                           elements(s, sum, {0, 1, 2, 3}, a.flow_of_gradient));
      },
      {values({4, 3}), values({3})});
}

TEST_CASE("gradient arrays: flows of unclear order are refused") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, Tensor::of<double>({4, 1}, {1, 2, 3, 4}));
  Arrays a(s, x);
  const Output sum = a.gradient(a.flow);
  const Output start = a.flow_of_gradient;
  const Output value = ops::constant(s, Tensor::of<double>({1}, {3}));
  const Output written =
      write(s.named("written"), sum, 0, ops::square(s, value), start);
  SUBCASE("it may be there, or not") {
    const Output y =
        read(s.named("y").with_control_dependencies({written}), sum, 0, start);
    dense_gradients(s, {y}, {value});
    CHECK(s.status().code() == Code::kUnimplemented);
    INFO(s.status().to_string());
    CHECK(s.status().to_string().find(
              "node \"y\" may read what node \"written\" adds to the gradient "
              "of TensorArray \"array\" for \"gradients\"") !=
          std::string::npos);
  }
  SUBCASE("a sum of flows would have it twice") {
    const Output more = write(s, sum, 1, value, written);
    const Output both = ops::add(s.named("both"), more, written);
    dense_gradients(s, {read(s, sum, 0, both)}, {value});
    CHECK(s.status().code() == Code::kUnimplemented);
    INFO(s.status().to_string());
    CHECK(s.status().to_string().find("node \"both\" sums flows of a gradient "
                                      "array that all contain \"written:0\"") !=
          std::string::npos);
  }
  SUBCASE("another source has another array") {
    const Output other = a.gradient(a.flow, "others");
    const Output flow = write(s, other, 0, value, a.flow_of_gradient);
    const Output y = read(s, other, 0, flow);
    CHECK(evaluate(s, dense_gradients(s, {y}, {value}))[0].flat<double>()[0] ==
          1);
  }
}
