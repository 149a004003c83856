// Candidate samplers: the distribution of their classes, and their expected
// counts.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;

Tensor classes(const Shape& shape, std::initializer_list<int64_t> values) {
  return Tensor::of<int64_t>(shape, values);
}

Result<Outputs> sample(const std::string& op, const Tensor& given,
                       int64_t count, bool unique, int64_t range) {
  AttrMap attrs{{"num_true", int64_t{2}},
                {"num_sampled", count},
                {"unique", unique},
                {"seed", int64_t{42}}};
  if (op != "AllCandidateSampler") attrs["range_max"] = range;
  return run_op(op, {given}, attrs);
}

}  // namespace

TEST_CASE("sampled classes come as often as is expected") {
  constexpr int64_t kCount = 20000, kRange = 8;
  const Tensor given = classes({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  for (const char* op :
       {"UniformCandidateSampler", "LogUniformCandidateSampler"}) {
    CAPTURE(op);
    const auto made = sample(op, given, kCount, false, kRange);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    std::vector<double> found(kRange, 0);
    for (const int64_t drawn : (*made)[0].flat<int64_t>()) {
      REQUIRE(drawn >= 0);
      REQUIRE(drawn < kRange);
      ++found[size_t(drawn)];
    }
    double chi_squared = 0, sum = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const double wanted = (*made)[1].data<float>()[i];
      chi_squared += (found[i] - wanted) * (found[i] - wanted) / wanted;
      sum += wanted;
    }
    CHECK(sum == doctest::Approx(double(kCount)));
    CHECK(chi_squared < 24.3);  // one in a thousand, of 7 degrees of freedom
    for (int64_t i = 0; i < kCount; ++i) {
      const int64_t drawn = (*made)[0].data<int64_t>()[i];
      CHECK((*made)[2].data<float>()[i] == (*made)[1].data<float>()[drawn]);
    }
  }
  const auto made =
      sample("LogUniformCandidateSampler", given, kCount, false, 100);
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  CHECK((*made)[1].data<float>()[0] ==
        doctest::Approx(kCount * std::log(2) / std::log(101)));
}

TEST_CASE("unique classes are all different, as many as there are") {
  const Tensor given = classes({1, 2}, {0, 9});
  for (const char* op :
       {"UniformCandidateSampler", "LogUniformCandidateSampler"}) {
    CAPTURE(op);
    const auto made = sample(op, given, 10, true, 10);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    const auto drawn = (*made)[0].flat<int64_t>();
    CHECK(std::set<int64_t>(drawn.begin(), drawn.end()).size() == 10);
    for (const float chance : (*made)[1].flat<float>()) {
      CHECK(chance > 0.5);
      CHECK(chance <= 1);
    }
  }
}

TEST_CASE("all classes are those up to the number of candidates") {
  const auto made =
      sample("AllCandidateSampler", classes({1, 2}, {7, -1}), 3, true, 0);
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  expect_close((*made)[0], classes({3}, {0, 1, 2}));
  expect_close((*made)[1], Tensor::of<float>({1, 2}, {1, 1}));
  expect_close((*made)[2], Tensor::vector<float>({1, 1, 1}));
}

TEST_CASE("true classes and sizes that do not fit are refused") {
  const char* op = "UniformCandidateSampler";
  expect_error(sample(op, classes({1, 2}, {0, 5}), 3, false, 5), kInvalid,
               "true class 5 is outside of [0, 5)");
  expect_error(sample(op, classes({1, 2}, {-1, 0}), 3, false, 5), kInvalid,
               "true class -1 is outside of [0, 5)");
  expect_error(sample(op, classes({2}, {0, 1}), 3, false, 5), kInvalid,
               "a matrix of 2 columns");
  expect_error(sample(op, classes({1, 2}, {0, 1}), 6, true, 5), kInvalid,
               "num_sampled is 6, but there are only 5 unique classes");
}

TEST_CASE("sampled classes that are true ones are found") {
  const auto hits =
      run_op("ComputeAccidentalHits",
             {classes({3, 2}, {1, 2, 0, 4, 3, 3}), classes({4}, {1, 0, 2, 3})},
             {{"num_true", int64_t{2}}});
  REQUIRE_MESSAGE(hits.ok(), hits.status().to_string());
  expect_close((*hits)[0], Tensor::vector<int32_t>({0, 0, 1, 2, 2}));
  expect_close((*hits)[1], classes({5}, {0, 2, 1, 3, 3}));
  const float least = -std::numeric_limits<float>::max();
  expect_close((*hits)[2],
               Tensor::vector<float>({least, least, least, least, least}));
  expect_error(
      run_op("ComputeAccidentalHits", {classes({1, 1}, {1}), classes({1}, {1})},
             {{"num_true", int64_t{2}}}),
      kInvalid, "a matrix of 2 columns");
}

namespace {

Result<Outputs> weighted(int64_t range, int64_t count, AttrMap more,
                         std::vector<float> unigrams, bool unique = false) {
  AttrMap attrs{{"num_true", int64_t{2}}, {"num_sampled", count},
                {"unique", unique},       {"range_max", range},
                {"seed", int64_t{7}},     {"unigrams", std::move(unigrams)}};
  for (const auto& [name, value] : more) attrs[name] = value;
  return run_op("FixedUnigramCandidateSampler", {classes({1, 2}, {1, 0})},
                attrs);
}

}  // namespace

TEST_CASE("weighted classes come as often as they weigh") {
  constexpr int64_t kCount = 40'000;
  // A reserved one, and weights 1, 0, 3 to the power of two.
  const auto drawn = weighted(
      4, kCount, {{"distortion", 2.0f}, {"num_reserved_ids", int64_t{1}}},
      {1, 0, 3});
  REQUIRE_MESSAGE(drawn.ok(), drawn.status().to_string());
  std::vector<int64_t> counts(4);
  for (const int64_t number : (*drawn)[0].flat<int64_t>())
    ++counts[size_t(number)];
  CHECK(counts[0] == 0);
  CHECK(counts[2] == 0);
  CHECK(std::abs(double(counts[1]) - kCount * 0.1) < 300);
  CHECK((*drawn)[1].data<float>()[0] == doctest::Approx(kCount * 0.1));
  CHECK((*drawn)[1].data<float>()[1] == 0);
  // One of two shards has every other weight, as in TensorFlow.
  const auto half =
      weighted(2, 400, {{"num_shards", int64_t{2}}, {"shard", int64_t{1}}},
               {1, 1, 7, 3});
  CHECK((*half)[1].data<float>()[0] == doctest::Approx(300));
  const auto all = weighted(3, 2, {}, {5, 0, 1}, /*unique=*/true);
  std::set<int64_t> seen;
  for (const int64_t number : (*all)[0].flat<int64_t>()) seen.insert(number);
  CHECK(seen == std::set<int64_t>{0, 2});
}

TEST_CASE("candidate sampling refuses weights that make no distribution") {
  expect_error(
      weighted(3, 1, {}, {1, 2}), kInvalid,
      "range_max is 3, but there are 2 classes, of 2 weights and 0 reserved");
  expect_error(weighted(3, 1, {}, {0, 0, 0}), kInvalid,
               "no class can be drawn");
  expect_error(weighted(3, 1, {}, {0, -1, 0}), kInvalid, "weight 1 is -1");
  expect_error(weighted(3, 3, {}, {5, 0, 1}, /*unique=*/true), kInvalid,
               "num_sampled is 3, but only 2 unique classes can be drawn");
  expect_error(
      weighted(3, 1, {{"num_shards", int64_t{2}}, {"shard", int64_t{2}}},
               {1, 1, 1}),
      kInvalid, "shard 2 is not below num_shards 2");
  expect_error(weighted(3, 1, {{"vocab_file", std::string("/nowhere")}}, {}),
               Code::kNotFound, "\"/nowhere\" has no weights");
  // A reader of a device, or of a pipe, might never come to its end.
  expect_error(weighted(3, 1, {{"vocab_file", std::string("/dev/zero")}}, {}),
               kInvalid, "\"/dev/zero\" is not a regular file");
  expect_error(weighted(3, 1, {{"distortion", -1.0f}}, {1, 0, 1}), kInvalid,
               "weight 1 is 0, which has no finite power of -1");
}

TEST_CASE("numbers of classes and shards that are too large are refused") {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const AttrMap reserved{{"num_reserved_ids", int64_t{3}}};
  expect_error(weighted(kLargest, 1, reserved, {1}), kInvalid,
               "there are 4 classes, of 1 weights and 3 reserved ones");
  AttrMap shards = reserved;
  shards["num_shards"] = kLargest;
  shards["shard"] = int64_t{2};
  expect_error(weighted(3, 1, shards, {1}), kInvalid,
               fmt::format("num_shards {} is over", kLargest));
}

}  // namespace tagflow::devices
