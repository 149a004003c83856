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

// Of take(), which must not wait.
Status taken(TensorInputs& inputs, uint64_t object) {
  Status status = error(Code::kInternal, "it waits");
  inputs.take({ObjectId(object)}, [&](const Result<std::vector<Tensor>>& all) {
    status = all.status();
  });
  return status;
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
  // Whoever names it does not wait for it.
  CHECK(taken(inputs, next).code() == Code::kResourceExhausted);
  CHECK(taken(inputs, 3).ok());
  CHECK(inputs.begin(floats(next + 1, 0)).ok());
}

TEST_CASE("a tensor above the limit of bytes fails the message that names it") {
  const int64_t most = TensorInputs::kMostBytes / sizeof(float);
  TensorInputs inputs;
  Status before;
  inputs.take({ObjectId(1)}, [&](const Result<std::vector<Tensor>>& all) {
    before = all.status();
  });
  for (const uint64_t object : {1, 2})
    CHECK(inputs.begin(floats(object, most + 1)).status().code() ==
          Code::kResourceExhausted);
  CHECK(before.code() == Code::kResourceExhausted);
  CHECK(taken(inputs, 2).message().find("above the limit") !=
        std::string::npos);
  CHECK(inputs.begin(floats(3, 1)).ok());
}

TEST_CASE("a tensor that no message names in time is forgotten") {
  TensorInputs inputs(std::chrono::seconds(0));
  const std::weak_ptr<void> first = inputs.begin(floats(1, 5))->owner;
  inputs.end(ObjectId(1), {});
  // The link writes to this one.
  const auto coming = inputs.begin(floats(2, 5))->owner;
  Status named = error(Code::kInternal, "not called");
  inputs.take({ObjectId(3)}, [&](const Result<std::vector<Tensor>>& all) {
    named = all.status();
  });
  REQUIRE(inputs.begin(floats(3, 5)).ok());
  for (uint64_t object = 4; object < 8; ++object) {
    REQUIRE(inputs.begin(floats(object, 0)).ok());
    inputs.end(ObjectId(object), {});
  }
  CHECK(first.expired());
  CHECK(coming.use_count() == 1);
  inputs.end(ObjectId(2), {});
  inputs.end(ObjectId(3), {});
  CHECK(named.ok());
  CHECK(taken(inputs, 7).ok());
  for (const uint64_t object : {1, 2})
    CHECK(taken(inputs, object).code() == Code::kResourceExhausted);
}

}  // namespace tagflow::net
