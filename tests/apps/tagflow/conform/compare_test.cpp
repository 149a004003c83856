#include "apps/tagflow/conform/compare.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "graph/float16.h"

namespace tagflow::apps {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_CASE("conform: floats may differ by a tolerance") {
  CHECK(compare(Tensor::scalar(1.00019f), Tensor::scalar(1.0f)).ok());
  CHECK(!compare(Tensor::scalar(1.00021f), Tensor::scalar(1.0f)).ok());
  CHECK(compare(Tensor::scalar(9e-5f), Tensor::scalar(0.0f)).ok());
  CHECK(compare(Tensor::scalar(1e6 + 9e-4), Tensor::scalar(1e6)).ok());
  CHECK(!compare(Tensor::scalar(1e6 + 2e-3), Tensor::scalar(1e6)).ok());
  CHECK(compare(Tensor::scalar(Half(1.01f)), Tensor::scalar(Half(1.0f))).ok());
  CHECK(!compare(Tensor::scalar(Half(1.1f)), Tensor::scalar(Half(1.0f))).ok());
}

TEST_CASE("conform: NaN equals NaN only, and an infinity itself only") {
  CHECK(compare(Tensor::scalar(kNan), Tensor::scalar(kNan)).ok());
  CHECK(!compare(Tensor::scalar(1.0f), Tensor::scalar(kNan)).ok());
  CHECK(!compare(Tensor::scalar(kNan), Tensor::scalar(1.0f)).ok());
  CHECK(compare(Tensor::scalar(kInf), Tensor::scalar(kInf)).ok());
  CHECK(!compare(Tensor::scalar(kInf), Tensor::scalar(-kInf)).ok());
  CHECK(!compare(Tensor::scalar(3e38f), Tensor::scalar(kInf)).ok());
}

TEST_CASE("conform: both parts of complex numbers are compared") {
  const Tensor expected = Tensor::scalar(Complex64(1, 2));
  CHECK(compare(Tensor::scalar(Complex64(1.0001f, 2.0001f)), expected).ok());
  CHECK(!compare(Tensor::scalar(Complex64(1, 2.001f)), expected).ok());
  CHECK(!compare(Tensor::scalar(Complex64(1.001f, 2)), expected).ok());
}

TEST_CASE("conform: integers, bools and strings must be equal") {
  CHECK(compare(Tensor::scalar(7), Tensor::scalar(7)).ok());
  CHECK(!compare(Tensor::scalar(7), Tensor::scalar(8)).ok());
  CHECK(!compare(Tensor::scalar(true), Tensor::scalar(false)).ok());
  CHECK(!compare(Tensor::scalar("a"), Tensor::scalar("b")).ok());
  CHECK(compare(Tensor::scalar("a"), Tensor::scalar("a")).ok());
}

TEST_CASE("conform: the message says what differs, where, and how much of it") {
  const Tensor expected = Tensor::of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor actual = Tensor::of<int32_t>({2, 3}, {1, 2, 3, 4, 0, 0});
  CHECK(compare(actual, expected).message() ==
        "2 of 6 elements differ; at [1,1] there is 0, expected 5");
}

TEST_CASE("conform: what numpy cannot store counts as equal") {
  CHECK(compare(Tensor::scalar(std::string("a\0\0", 3)), Tensor::scalar("a"))
            .ok());
  CHECK(!compare(Tensor::scalar(std::string("\0a", 2)), Tensor::scalar("a"))
             .ok());
  const Tensor bytes = Tensor::vector<int8_t>({1, -2});
  CHECK(compare(bytes.with_dtype(DataType::kQInt8), bytes).ok());
  CHECK(!compare(bytes.with_dtype(DataType::kQUInt8), bytes).ok());
}

TEST_CASE("conform: another type or shape is a difference") {
  CHECK(compare(Tensor::scalar(1.0f), Tensor::scalar(1.0)).message() ==
        "it is float[], expected double[]");
  CHECK(compare(Tensor::vector<int32_t>({1}), Tensor::scalar(1)).message() ==
        "it is int32[1], expected int32[]");
  CHECK(compare(Tensor::make(DataType::kFloat, {0, 2}),
                Tensor::make(DataType::kFloat, {0, 2}))
            .ok());
}

}  // namespace
}  // namespace tagflow::apps
