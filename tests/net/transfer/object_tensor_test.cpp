#include "net/transfer/object_tensor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <utility>

namespace tagflow::net {
namespace {

Begin floats(uint64_t object, int64_t count) {
  const uint64_t bytes = uint64_t(count) * sizeof(float);
  return {ObjectId(object),
          ObjectKind::kTensor,
          bytes,
          {DataType::kFloat, Shape({count}), bytes}};
}

// So many, whose bytes on the wire are as many.
Begin empty_strings(uint64_t object, int64_t count) {
  return {ObjectId(object),
          ObjectKind::kTensor,
          uint64_t(count),
          {DataType::kString, Shape({count}), uint64_t(count)}};
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

TEST_CASE("what strings take counts, and not their bytes alone") {
  TensorInputs inputs(TensorInputs::kPatience, 10'000);
  CHECK(inputs.begin(empty_strings(1, 400)).status().code() ==
        Code::kResourceExhausted);
  CHECK(taken(inputs, 1).message().find("13200 more are above the limit") !=
        std::string::npos);
  // It is given back with the tensor.
  for (uint64_t object = 2; object < 10; ++object) {
    const auto to = inputs.begin(empty_strings(object, 200));
    REQUIRE(to.ok());
    std::ranges::fill(to->bytes, '\0');
    inputs.end(ObjectId(object), {});
    CHECK(taken(inputs, object).ok());
  }
}

TEST_CASE("many strings are made on another thread than the link's") {
  TensorInputs inputs;
  constexpr int64_t kCount = 1 << 20;
  std::promise<std::pair<std::thread::id, Result<std::vector<Tensor>>>> given;
  inputs.take({ObjectId(1)}, [&](Result<std::vector<Tensor>> all) {
    given.set_value({std::this_thread::get_id(), std::move(all)});
  });
  const auto to = inputs.begin(empty_strings(1, kCount));
  REQUIRE(to.ok());
  std::ranges::fill(to->bytes, '\0');
  inputs.end(ObjectId(1), {});
  const auto [thread, all] = given.get_future().get();
  CHECK(thread != std::this_thread::get_id());
  REQUIRE(all.ok());
  CHECK((*all)[0].shape() == Shape({kCount}));
}

TEST_CASE("tensors end with their inputs, also those that take long") {
  for (const bool is_closed : {false, true}) {
    std::atomic<int> given = 0, lost = 0;
    {
      TensorInputs inputs;
      for (uint64_t object = 1; object <= 8; ++object) {
        inputs.take({ObjectId(object)},
                    [&](const Result<std::vector<Tensor>>& all) {
                      ++(all.ok() ? given : lost);
                    });
        const auto to = inputs.begin(empty_strings(object, 1 << 18));
        REQUIRE(to.ok());
        std::ranges::fill(to->bytes, '\0');
        inputs.end(ObjectId(object), {});
      }
      inputs.take({ObjectId(9)}, [&](const Result<std::vector<Tensor>>& all) {
        CHECK(all.status().code() == Code::kCancelled);
      });
      inputs.close(Status(Code::kCancelled, "closed"));
      if (is_closed) inputs.join();
      if (is_closed) CHECK(given + lost == 8);
    }
    CHECK(given + lost == 8);
  }
}

TEST_CASE("messages that wait for their tensors have a limit") {
  TensorInputs inputs;
  size_t called = 0;
  const auto count = [&](const Result<std::vector<Tensor>>& all) {
    ++called;
    CHECK(all.status().code() == Code::kResourceExhausted);
  };
  for (size_t i = 0; i < TensorInputs::kMostWaiting; ++i)
    inputs.take({ObjectId(i + 1)}, [](const Result<std::vector<Tensor>>&) {});
  inputs.take({ObjectId(1 << 20)}, count);
  CHECK(called == 1);
}

}  // namespace tagflow::net
