#include <doctest/doctest.h>

#include "tests/devices/one_step.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

Tensor some(const std::vector<Tensor>& values) {
  return OneStep().value("OptionalFromValue", values);
}
Tensor none() { return OneStep().value("OptionalNone", {}); }

Result<Outputs> get(const Tensor& optional, std::vector<DataType> types,
                    std::vector<PartialShape> shapes) {
  return run_op("OptionalGetValue", {optional},
                {{"output_types", std::move(types)},
                 {"output_shapes", std::move(shapes)}});
}

}  // namespace

TEST_CASE("an optional gives back the values that it was made of") {
  const Tensor optional = some({Tensor::scalar(1), Tensor::scalar("text")});
  expect_close(run_op("OptionalHasValue", {optional}), Tensor::scalar(true));
  const auto values = get(optional, {DataType::kInt32, DataType::kString},
                          {PartialShape::scalar(), PartialShape()});
  expect_close(values, Tensor::scalar(1));
  expect_close((*values)[1], Tensor::scalar("text"));
  expect_close(run_op("OptionalHasValue", {none()}), Tensor::scalar(false));
}

TEST_CASE("an optional refuses to give a value that it does not have") {
  const Tensor one = some({Tensor::scalar(1)});
  expect_error(get(none(), {DataType::kInt32}, {PartialShape()}),
               Code::kInvalidArgument,
               "[OptionalGetValue] the optional has no value");
  expect_error(get(one, {DataType::kInt32, DataType::kInt32},
                   {PartialShape(), PartialShape()}),
               Code::kInvalidArgument,
               "2 values are wanted of an Optional of 1 values");
  expect_error(get(one, {DataType::kFloat}, {PartialShape()}),
               Code::kInvalidArgument,
               "value 0 is int32[], not float of shape <unknown>");
  expect_error(get(one, {DataType::kInt32}, {{2}}), Code::kInvalidArgument,
               "value 0 is int32[], not int32 of shape [2]");
  expect_error(get(one, {DataType::kInt32}, {{2}, {2}}), Code::kInvalidArgument,
               "2 output_shapes for 1 outputs");
  expect_error(
      run_op("OptionalHasValue", {Tensor::make(DataType::kVariant, {})}),
      Code::kInvalidArgument,
      "input 0 must be one optional, not an empty variant");
}

TEST_CASE("optionals have zeros and sums") {
  const Tensor one = some({Tensor::scalar(1), Tensor::scalar(2.5f)});
  const auto values_of = [](const Result<Outputs>& optional) {
    REQUIRE(optional.ok());
    return get((*optional)[0], {DataType::kInt32, DataType::kFloat},
               {PartialShape(), PartialShape()});
  };
  const auto zeros = values_of(run_op("ZerosLike", {one}));
  expect_close(zeros, Tensor::scalar(0));
  expect_close((*zeros)[1], Tensor::scalar(0.0f));
  const auto sum = values_of(run_op("AddN", {one, one}));
  expect_close(sum, Tensor::scalar(2));
  expect_close((*sum)[1], Tensor::scalar(5.0f));
  CHECK(run_op("ZerosLike", {none()}).ok());
  CHECK(run_op("AddN", {none(), none()}).ok());
  expect_error(run_op("AddN", {one, none()}), Code::kInvalidArgument,
               "cannot add Optional of 2 values and Optional of nothing");
}

TEST_CASE("optionals in optionals are let go of without recursion") {
  Tensor optional = none();
  for (int i = 0; i < 20'000; ++i) {
    std::vector<Tensor> inputs = {std::move(optional)};
    auto outputs = run_unshared(
        "OptionalFromValue", inputs,
        {{"Toutput_types", std::vector<DataType>{DataType::kVariant}}});
    REQUIRE(outputs.ok());
    optional = std::move((*outputs)[0]);
  }
  CHECK(optional.unique());
}

TEST_CASE("FakeParam gives zeros, or an empty tensor if it may") {
  const auto fake = [](PartialShape shape, DataType dtype) {
    return run_op("FakeParam", {},
                  {{"dtype", dtype}, {"shape", std::move(shape)}});
  };
  expect_close(fake({2}, DataType::kInt32), Tensor::vector<int32_t>({0, 0}));
  expect_close(fake({2, -1}, DataType::kFloat), Tensor::of<float>({2, 0}, {}));
  expect_close(fake({}, DataType::kString), Tensor::scalar(""));
  expect_error(fake({int64_t{1} << 62, 4}, DataType::kFloat),
               Code::kInvalidArgument, "");
}

TEST_CASE("a device knows its place in a list of types") {
  const auto index = [](std::vector<std::string> names) {
    return run_op("DeviceIndex", {}, {{"device_names", std::move(names)}});
  };
  expect_close(index({"CPU", "GPU"}), Tensor::scalar(0));
  expect_close(index({"GPU", "CPU"}), Tensor::scalar(1));
  expect_close(index({"GPU", "TPU"}), Tensor::scalar(2));
}

TEST_CASE("nested variants are freed even if memory is short") {
  for (int64_t k = 1;; ++k) {
    Tensor nested = Tensor::scalar("a text that is longer than the short ones");
    for (int depth = 0; depth < 5; ++depth) nested = some({nested, nested});
    FailAllocation fail(k);
    nested.reset();
    fail.stop();
    if (!fail.failed()) {
      CHECK(k > 1);
      break;
    }
  }
}
