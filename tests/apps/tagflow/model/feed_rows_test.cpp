#include "apps/tagflow/model/feed_rows.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace tagflow::apps {
namespace {

Tensor at(const FeedRows& rows, int64_t step) {
  Result<Tensor> value = rows.at(step);
  REQUIRE(value.ok());
  CHECK(value->shape() == rows.shape());
  return std::move(value).value();
}

TEST_CASE("feeds by rows: step k takes row k, again from the start") {
  const Tensor all = Tensor::of<int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto rows = FeedRows::create(all, 0);
  REQUIRE(rows.ok());
  CHECK(identical(at(*rows, 1), Tensor::vector<int32_t>({1, 2})));
  CHECK(identical(at(*rows, 3), Tensor::vector<int32_t>({5, 6})));
  CHECK(identical(at(*rows, 4), Tensor::vector<int32_t>({1, 2})));
  CHECK(identical(at(*rows, int64_t{1} << 53), at(*rows, 2)));
  const auto scalars = FeedRows::create(Tensor::vector<float>({7, 8}), 0);
  REQUIRE(scalars.ok());
  CHECK(identical(at(*scalars, 2), Tensor::scalar(8.0f)));
}

TEST_CASE("feeds by rows: a batch goes on where the last one ended") {
  const auto rows = FeedRows::create(Tensor::vector<int32_t>({1, 2, 3}), 2);
  REQUIRE(rows.ok());
  CHECK(identical(at(*rows, 1), Tensor::vector<int32_t>({1, 2})));
  CHECK(identical(at(*rows, 2), Tensor::vector<int32_t>({3, 1})));
  CHECK(identical(at(*rows, 3), Tensor::vector<int32_t>({2, 3})));
  const auto large = FeedRows::create(Tensor::vector<int32_t>({1, 2}), 5);
  REQUIRE(large.ok());
  CHECK(identical(at(*large, 2), Tensor::vector<int32_t>({2, 1, 2, 1, 2})));
  const auto one = FeedRows::create(Tensor::vector<int32_t>({1, 2}), 1);
  REQUIRE(one.ok());
  CHECK(identical(at(*one, 2), Tensor::vector<int32_t>({2})));
}

TEST_CASE("feeds by rows: strings are copied, and rows may be empty") {
  Tensor words = Tensor::make(DataType::kString, {2});
  words.mutable_data<std::string>()[0] = "a";
  words.mutable_data<std::string>()[1] = std::string(100, 'b');
  const auto rows = FeedRows::create(words, 3);
  REQUIRE(rows.ok());
  const Tensor value = at(*rows, 1);
  CHECK(value.flat<std::string>()[1] == std::string(100, 'b'));
  CHECK(value.flat<std::string>()[2] == "a");
  const auto empty =
      FeedRows::create(Tensor::make(DataType::kFloat, {4, 0}), 2);
  REQUIRE(empty.ok());
  CHECK(at(*empty, 9).describe() == "float[2,0]");
  // Any number of them takes no time.
  const auto many = FeedRows::create(Tensor::make(DataType::kFloat, {1, 0}),
                                     int64_t{1} << 50);
  REQUIRE(many.ok());
  CHECK(at(*many, 9).describe() == "float[1125899906842624,0]");
}

TEST_CASE("feeds by rows: a tensor without rows is refused") {
  CHECK(FeedRows::create(Tensor::scalar(1.0f), 0).status().message() ==
        "float[] has no rows");
  CHECK_FALSE(FeedRows::create(Tensor::make(DataType::kFloat, {0, 3}), 1).ok());
  CHECK_FALSE(FeedRows::create(Tensor::make(DataType::kVariant, {2}), 0).ok());
}

TEST_CASE("a batch that memory has no room for is refused") {
  const Tensor all = Tensor::make(DataType::kFloat, {2, 1024});
  CHECK(FeedRows::create(all, 3, 3 * 4096).ok());
  const Status status = FeedRows::create(all, 3, 3 * 4096 - 1).status();
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK(status.message() ==
        "the rows of a step, float[3,1024], need more than the 12287 bytes of "
        "memory that are free");
  // Their bytes have no number.
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  CHECK(FeedRows::create(all, int64_t{1} << 52, kAny).status().code() ==
        Code::kResourceExhausted);
  CHECK_FALSE(FeedRows::create(all, int64_t{1} << 54, kAny).ok());
}

TEST_CASE("feeds by rows: a long copy can be cancelled") {
  const Tensor all = Tensor::make(DataType::kInt8, {10});
  const auto rows = FeedRows::create(all, 3 << 20);
  REQUIRE(rows.ok());
  int asked = 0;
  const auto value = rows->at(1, [&asked] { return ++asked == 2; });
  CHECK(value.status().code() == Code::kCancelled);
  CHECK(rows->at(1, [] { return false; }).ok());
  // Not if there is nothing to wait for.
  const auto few = FeedRows::create(all, 5);
  REQUIRE(few.ok());
  CHECK(few->at(1, [] { return true; }).ok());
}

}  // namespace
}  // namespace tagflow::apps
