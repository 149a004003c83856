// Rules of ops that read variables.
#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "autodiff/jvp.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/evaluate.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

const Tensor& matrix_value() {
  static const Tensor value = Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6});
  return value;
}

// Two variables of that value, one of each kind, and what assigns them.
struct Variables {
  explicit Variables(const graph::Scope& s)
      : by_handle(ops::variable(s, DataType::kDouble, {3, 2})),
        by_reference(ops::reference_variable(s, DataType::kDouble, {3, 2})),
        init(ops::group(s, {ops::assign(s, by_handle, matrix_value()),
                            ops::assign(s, by_reference, matrix_value())})) {}

  ops::Variable by_handle;
  Output by_reference, init;
};

}  // namespace

TEST_CASE("the gradient of a variable is the sum of those of its reads") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Variables v(s);
  const Output y = ops::mul(s, ops::read(s, v.by_handle),
                            ops::square(s, ops::read(s, v.by_handle)));
  const Output z = ops::mul(s, v.by_reference, ops::square(s, v.by_reference));
  const Output same = ops::identity(s, v.by_reference);
  const Output again = ops::square(s, s.op("RefIdentity", {v.by_reference}));
  const auto results = evaluate(
      s,
      graph::Outputs{
          dense_gradients(s, {y}, {v.by_handle.handle})[0],
          dense_gradients(s, {z}, {v.by_reference})[0],
          dense_gradients(s, {ops::square(s, same)}, {v.by_reference})[0],
          dense_gradients(s, {again}, {v.by_reference})[0]},
      {}, {}, v.init);
  for (int64_t i = 0; i < 6; ++i) {
    const double x = matrix_value().data<double>()[i];
    CHECK(results[0].data<double>()[i] == 3 * x * x);
    CHECK(results[1].data<double>()[i] == 3 * x * x);
    CHECK(results[2].data<double>()[i] == 2 * x);
    CHECK(results[3].data<double>()[i] == 2 * x);
  }
}

TEST_CASE("gathers of a variable's rows give slices") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Variables v(s);
  const Tensor rows = Tensor::of<int32_t>({2, 1}, {2, 2});
  const Output by_handle = s.op("ResourceGather", {v.by_handle.handle, rows},
                                {{"dtype", DataType::kDouble}});
  const Output by_reference = ops::gather(s, v.by_reference, rows);
  const Output by_vectors = s.op("ResourceGatherNd", {v.by_handle.handle, rows},
                                 {{"dtype", DataType::kDouble}});
  graph::Outputs dense;
  const auto add = [&](const Output& y, const Output& x) {
    const Output loss = ops::square(s, y);
    CHECK(gradients(s, {loss}, {x})[0].is_sparse());
    dense.push_back(dense_gradients(s, {loss}, {x})[0]);
  };
  add(by_handle, v.by_handle.handle);
  add(by_reference, v.by_reference);
  add(by_vectors, v.by_handle.handle);
  for (const Tensor& gradient : evaluate(s, dense, {}, {}, v.init))
    CHECK(
        identical(gradient, Tensor::of<double>({3, 2}, {0, 0, 0, 0, 20, 24})));
}

TEST_CASE("a variable's batched and n-d gathers have dense gradients") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Variables v(s);
  const Tensor columns = Tensor::of<int32_t>({3, 1}, {1, 0, 1});
  const Output batch = s.op("ResourceGather", {v.by_handle.handle, columns},
                            {{"dtype", DataType::kDouble}, {"batch_dims", 1}});
  const Output element = s.op("ResourceGatherNd", {v.by_handle.handle, {2, 1}},
                              {{"dtype", DataType::kDouble}});
  const auto results = evaluate(
      s,
      graph::Outputs{
          dense_gradients(s, {ops::square(s, batch)}, {v.by_handle.handle})[0],
          dense_gradients(s, {ops::square(s, element)},
                          {v.by_handle.handle})[0]},
      {}, {}, v.init);
  CHECK(identical(results[0], Tensor::of<double>({3, 2}, {0, 4, 6, 0, 0, 12})));
  CHECK(identical(results[1], Tensor::of<double>({3, 2}, {0, 0, 0, 0, 0, 12})));
}

TEST_CASE("a temporary variable is read when it is destroyed") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Output variable = s.op("TemporaryVariable", {},
                               {{"shape", PartialShape({2})},
                                {"dtype", DataType::kDouble},
                                {"var_name", "t"}});
  const Output assigned = ops::assign(s, variable, {1., 2.});
  const Output value =
      s.op("DestroyTemporaryVariable", {assigned}, {{"var_name", "t"}});
  const auto results =
      evaluate(s, dense_gradients(s, {ops::square(s, value)}, {assigned}));
  CHECK(identical(results[0], Tensor::vector<double>({2, 4})));
}

TEST_CASE("a step has one temporary variable of a name at a time") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const AttrMap attrs = {{"shape", PartialShape({})},
                         {"dtype", DataType::kDouble},
                         {"var_name", "t"}};
  const auto value_of = [&](const graph::Scope& in, double value) {
    const Output made =
        ops::assign(in, Output(in.op("TemporaryVariable", {}, attrs)), value);
    return std::pair(made, Output(in.op("DestroyTemporaryVariable", {made},
                                        {{"var_name", "t"}})));
  };
  const auto [first, first_value] = value_of(s, 1);
  // After the first is destroyed, its name is free.
  const auto [then, then_value] =
      value_of(s.with_control_dependencies({first_value}), 2);
  CHECK(numbers(s, {then_value}) == Doubles{2});
  const auto [second, second_value] =
      value_of(s.with_control_dependencies({first}), 3);
  REQUIRE(s.ok());
  const auto session = actors::Session::create({});
  REQUIRE((*session)->extend(graph).ok());
  // The first one is still there.
  const Status status = (*session)->run({}, {second.name()}).status();
  CHECK(status.code() == Code::kAlreadyExists);
  CHECK(status.message().find("there is a temporary variable \"t\" already") !=
        std::string::npos);
}

TEST_CASE("the tangent of a variable goes along with its handle") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Variables v(s);
  const Tensor rows = Tensor::of<int32_t>({2, 1}, {2, 2});
  const graph::Outputs of_handle{
      ops::square(s, ops::read(s, v.by_handle)),
      s.op("ResourceGather", {v.by_handle.handle, rows},
           {{"dtype", DataType::kDouble}}),
      s.op("ResourceGatherNd", {v.by_handle.handle, {2, 1}},
           {{"dtype", DataType::kDouble}})};
  const graph::Outputs of_reference{
      ops::square(s, v.by_reference), ops::gather(s, v.by_reference, rows),
      ops::square(s, s.op("RefIdentity", {v.by_reference}))};
  const Output tangent =
      ops::constant(s, Tensor::of<double>({3, 2}, {10, 20, 30, 40, 50, 60}));
  graph::Outputs all = jvp(s, of_handle, {v.by_handle.handle}, {tangent});
  for (const Output& each : jvp(s, of_reference, {v.by_reference}, {tangent}))
    all.push_back(each);
  const auto results = evaluate(s, all, {}, {}, v.init);
  const Tensor square =
      Tensor::of<double>({3, 2}, {20, 80, 180, 320, 500, 720});
  const Tensor gathered = Tensor::of<double>({2, 1, 2}, {50, 60, 50, 60});
  CHECK(identical(results[0], square));
  CHECK(identical(results[1], gathered));
  CHECK(identical(results[2], Tensor::scalar(60.0)));
  CHECK(identical(results[3], square));
  CHECK(identical(results[4], gathered));
  CHECK(identical(results[5], square));
}

TEST_CASE("a gradient has the version of a variable that its op has read") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Output v =
      ops::reference_variable(s, DataType::kDouble, PartialShape::scalar());
  const Output init = ops::group(s, {ops::assign(s, v, 3.0)});
  const Output x = ops::constant(s, 2.0);
  const auto after = [&](const Output& y) {
    return s.with_control_dependencies({y});
  };
  // Each reads v itself, and the gradient begins when v has changed.
  const Output product = ops::mul(s, x, v);
  const Output square = ops::square(after(product), v);
  const Output assigned = ops::assign(after(square), v, 10.0);
  const Output late = ops::mul(after(assigned), x, v);
  const Output begin = ops::constant(after(late), 1.0);
  graph::Outputs results{product, square, late};
  GradientOptions options;
  options.grad_ys = {begin};
  const auto add = [&](const Output& y, const Output& by) {
    results.push_back(dense_gradients(s, {y}, {by}, options)[0]);
  };
  add(product, x);
  add(square, v);
  add(late, x);
  add(late, v);
  CHECK(numbers(s, results, {}, {}, init) ==
        std::vector<double>{6, 9, 20, 3, 6, 10, 2});
}

TEST_CASE("each iteration reads the version of a variable that it changes") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Output v =
      ops::reference_variable(s, DataType::kDouble, PartialShape::scalar());
  const Output init = ops::group(s, {ops::assign(s, v, 1.0)});
  const Output x = ops::constant(s, 1.0);
  // x * 1 * 2 * 4
  const Output y = graph::while_loop(
      s,
      [](const graph::Scope& in, const graph::Outputs& i) {
        return ops::less(in, i[0], 3);
      },
      [&](const graph::Scope& in, const graph::Outputs& i) -> graph::Outputs {
        const Output next = ops::mul(in, i[1], v);
        const graph::Scope then = in.with_control_dependencies({next});
        const Output doubled = ops::assign(then, v, ops::mul(then, v, 2.0));
        const graph::Scope last = in.with_control_dependencies({doubled});
        return {ops::add(last, i[0], 1), ops::identity(last, next)};
      },
      {0, x}, {.parallel_iterations = 1})[1];
  const graph::Outputs grads = dense_gradients(s, {y}, {x, v});
  CHECK(numbers(s, {y, grads[0], grads[1]}, {}, {}, init) ==
        std::vector<double>{8, 8, 8 + 4 + 2});
}
