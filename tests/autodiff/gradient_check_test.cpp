// The helper itself: which gradients it accepts, and which errors it finds.
#include "tests/autodiff/gradient_check.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <complex>
#include <set>

#include "autodiff/forward_rule.h"
#include "autodiff/rule.h"
#include "graph/builder/builder.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

// The square of x[0], by the rule of that name.
Function square_by(const char* rule) {
  return [rule](const Scope& s, const Outputs& x) {
    return ops::square(s.with_attr("_gradient_op_type", rule), x[0]);
  };
}

}  // namespace

TEST_CASE("the gradient check passes right gradients, to any order") {
  check_gradients(
      [](const Scope& s, const Outputs& x) {
        return ops::mul(s, ops::square(s, x[0]), x[1]);
      },
      {values({2, 3}), values({3})}, {.order = 3});
}

TEST_CASE("the gradient check passes right gradients of complex numbers") {
  const Tensor z = Tensor::vector<std::complex<double>>({{1, 2}, {-0.5, 0.3}});
  check_gradients(
      [](const Scope& s, const Outputs& x) { return ops::square(s, x[0]); },
      {z});
}

TEST_CASE("the gradient check finds a wrong gradient, and says where") {
  RuleTable::global().add_custom("test_half_square", [](RuleContext& r) {
    r.set(0, ops::mul(r.scope(), r.grad(), r.input(0)));
  });
  const auto wrong = wrong_gradients(square_by("test_half_square"),
                                     {Tensor::vector<double>({1, 3})});
  REQUIRE(wrong.ok());
  CHECK(contains(*wrong,
                 "order 1, shapes known, by x[0]: element 0 of "
                 "double[2]: the gradient is "));
  CHECK(contains(*wrong, ", differences give "));
  CHECK(contains(*wrong, "; 1 more differ"));
  CHECK(contains(*wrong, "order 1, shapes unknown, by x[0]: "));
}

TEST_CASE("the gradient check finds a gradient wrong at second order alone") {
  // Right as a number, but a constant for who differentiates it.
  RuleTable::global().add_custom("test_stopped_square", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output twice = ops::mul(s, ops::stop_gradient(s, r.input(0)), 2);
    r.set(0, ops::mul(s, r.grad(), twice));
  });
  const auto wrong = wrong_gradients(square_by("test_stopped_square"),
                                     {Tensor::vector<double>({1, 3})});
  REQUIRE(wrong.ok());
  CHECK(!contains(*wrong, "order 1"));
  CHECK(contains(*wrong, "order 2, shapes known, by x[0]: element 0"));
}

TEST_CASE("the gradient check finds a wrong tangent, whatever the gradient") {
  RuleTable& table = RuleTable::global();
  const ForwardRule right = table.find("Tan")->forward;
  table.add_forward({"Tan"}, [](ForwardContext& r) {
    const Scope& s = r.scope();
    r.set(0, ops::mul(s, r.tangent(0), r.output()));
  });
  const auto wrong = wrong_gradients(
      [](const Scope& s, const Outputs& x) {
        return Outputs(s.op("Tan", {x[0]}));
      },
      {values({2})});
  table.add_forward({"Tan"}, right);
  REQUIRE(wrong.ok());
  CHECK(contains(*wrong, "forward, shapes known, of result 0: element 0"));
  CHECK(contains(*wrong, "reverse over forward, shapes unknown"));
  CHECK(!contains(*wrong, "order 1"));
}

TEST_CASE("the gradient check finds a missing gradient unless it is zero") {
  check_gradients(
      [](const Scope& s, const Outputs& x) { return ops::square(s, x[1]); },
      {values({2}), values({3})});
  const auto wrong = wrong_gradients(
      [](const Scope& s, const Outputs& x) {
        return ops::mul(s, ops::stop_gradient(s, x[0]), x[1]);
      },
      {values({2}, 1, 2), values({2}, 1, 2)}, {.order = 1});
  REQUIRE(wrong.ok());
  CHECK(contains(*wrong, "by x[0]: element 0 of double[2]: the gradient is 0"));
  CHECK(!contains(*wrong, "by x[1]"));
}

TEST_CASE("the gradient check returns an error if it cannot check") {
  const Function square = [](const Scope& s, const Outputs& x) {
    return ops::square(s, x[0]);
  };
  CHECK(!wrong_gradients(square, {Tensor::scalar(1.0f)}).ok());
  const auto status = wrong_gradients(
                          [](const Scope& s, const Outputs& x) {
                            return ops::cast(s, x[0], DataType::kFloat);
                          },
                          {values({2})})
                          .status();
  CHECK(contains(status.to_string(), "an output is float[2], only double"));
  CHECK(!wrong_gradients(
             [](const Scope& s, const Outputs& x) {
               return ops::reshape(s, x[0], {5});
             },
             {values({2})})
             .ok());
}

TEST_CASE("gradients_of gives tensors, zeros if there is no gradient") {
  const std::vector<Tensor> gradients = gradients_of(
      [](const Scope& s, const Outputs& x) { return ops::square(s, x[0]); },
      {Tensor::vector<float>({1, 3}), Tensor::scalar(2.0)});
  REQUIRE(gradients.size() == 2);
  CHECK(identical(gradients[0], Tensor::vector<float>({2, 6})));
  CHECK(identical(gradients[1], Tensor::scalar(0.0)));
}

TEST_CASE("test values are within their limits, and no two are equal") {
  const Tensor a = values({4, 5}, 2, 3), b = values({4, 5}, 2, 3);
  std::set<double> all(a.flat<double>().begin(), a.flat<double>().end());
  all.insert(b.flat<double>().begin(), b.flat<double>().end());
  CHECK(all.size() == 40);
  CHECK(*all.begin() >= 2);
  CHECK(*all.rbegin() <= 3);
}
