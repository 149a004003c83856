#include "net/transfer/object_tensor.h"

#include <doctest/doctest.h>

namespace tagflow::net {
namespace {

Begin floats(uint64_t object, int64_t count) {
  const uint64_t bytes = uint64_t(count) * sizeof(float);
  return {ObjectId(object),
          ObjectKind::kTensor,
          bytes,
          {DataType::kFloat, Shape({count}), bytes}};
}

}  // namespace

TEST_CASE("an object of the bulk link that begins twice is refused") {
  TensorInputs inputs;
  REQUIRE(inputs.begin(floats(7, 0)).ok());
  inputs.end(ObjectId(7), {});
  // It would be over before its elements have come.
  CHECK(inputs.begin(floats(7, 4)).status().code() == Code::kDataLoss);
  Result<std::vector<Tensor>> taken = Status(Code::kInternal, "none");
  inputs.take({ObjectId(7)},
              [&](Result<std::vector<Tensor>> all) { taken = std::move(all); });
  REQUIRE(taken.ok());
  CHECK(taken->at(0).shape() == Shape({0}));
}

TEST_CASE("tensors of the bulk link that nobody takes have a limit") {
  TensorInputs inputs;
  for (size_t i = 0; i < TensorInputs::kMostTensors; ++i) {
    REQUIRE(inputs.begin(floats(i, 0)).ok());
    inputs.end(ObjectId(i), {});
  }
  const uint64_t next = TensorInputs::kMostTensors;
  CHECK(inputs.begin(floats(next, 0)).status().code() ==
        Code::kResourceExhausted);
  inputs.take({ObjectId(3)}, [](const Result<std::vector<Tensor>>&) {});
  CHECK(inputs.begin(floats(next, 0)).ok());
}

}  // namespace tagflow::net
