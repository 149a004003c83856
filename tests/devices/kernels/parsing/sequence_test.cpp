// The results are those of TensorFlow 2.21, but for the splits of one example,
// which it leaves without a value.
#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/kernels/parsing/examples.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;
constexpr DataType kInt = DataType::kInt64;
constexpr DataType kText = DataType::kString;

Tensor texts(const Strings& values) {
  return Tensor::of<std::string>({int64_t(values.size())}, values);
}

const std::string kA =
    sequence({{"u", Ints{1, 2}}},
             {{"a", {Ints{1, 2}, Ints{3, 4}}}, {"s", {Strings{"x", "y"}}}});
const std::string kB = sequence(
    {}, {{"a", {Ints{5, 6}}}, {"s", {Strings{"z"}, Strings{"w", "q"}}}});
const std::string kC =
    sequence({{"u", Ints{7}}}, {{"a", {Ints{5, 6}, std::monostate()}},
                                {"s", {std::monostate(), Strings{"z"}}}});

enum class Group : uint8_t { kSparse, kDense, kRagged };

// Parses one list of features of a group.
Result<Outputs> parse_list(const Tensor& serialized, Group group,
                           const std::string& key, DataType type,
                           bool may_be_missing = false) {
  const auto keys = [&](Group wanted) {
    return group == wanted ? texts({key}) : texts({});
  };
  const auto types = [&](Group wanted) {
    return group == wanted ? std::vector{type} : std::vector<DataType>();
  };
  const bool is_dense = group == Group::kDense;
  const Tensor none = texts({});
  return run_op(
      "ParseSequenceExampleV2",
      {serialized, none, none, none, none, keys(Group::kSparse),
       keys(Group::kDense), keys(Group::kRagged),
       is_dense ? Tensor::vector<bool>({may_be_missing})
                : Tensor::vector<bool>({})},
      {{"Tcontext_dense", std::vector<DataType>()},
       {"Nfeature_list_sparse", int64_t(group == Group::kSparse)},
       {"Nfeature_list_dense", int64_t(is_dense)},
       {"feature_list_sparse_types", types(Group::kSparse)},
       {"feature_list_dense_types", types(Group::kDense)},
       {"feature_list_dense_shapes", is_dense ? std::vector<PartialShape>{{2}}
                                              : std::vector<PartialShape>()},
       {"feature_list_ragged_value_types", types(Group::kRagged)},
       {"feature_list_ragged_split_types", group == Group::kRagged
                                               ? std::vector{DataType::kInt32}
                                               : std::vector<DataType>()}});
}

}  // namespace

TEST_CASE("dense lists are padded by zeros, and have lengths") {
  const auto batched = parse_list(texts({kA, kB}), Group::kDense, "a", kInt);
  REQUIRE(batched.ok());
  expect_close((*batched)[0],
               Tensor::of<int64_t>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 0, 0}));
  expect_close((*batched)[1], Tensor::vector<int64_t>({2, 1}));
  const auto single = parse_list(Tensor::scalar(kA), Group::kDense, "a", kInt);
  REQUIRE(single.ok());
  expect_close((*single)[0], Tensor::of<int64_t>({2, 2}, {1, 2, 3, 4}));
  expect_close((*single)[1], Tensor::scalar<int64_t>(2));
  const auto missing = parse_list(texts({kA}), Group::kDense, "q", kInt, true);
  REQUIRE(missing.ok());
  expect_close((*missing)[0], Tensor::of<int64_t>({1, 0, 2}, {}));
}

TEST_CASE("sparse lists have the step as an index") {
  const auto batched =
      parse_list(texts({kA, kB, kC}), Group::kSparse, "s", kText);
  REQUIRE(batched.ok());
  expect_close((*batched)[0],
               Tensor::of<int64_t>({6, 3}, {0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0,
                                            1, 1, 1, 2, 1, 0}));
  expect_close((*batched)[1],
               Tensor::vector<std::string>({"x", "y", "z", "w", "q", "z"}));
  expect_close((*batched)[2], Tensor::vector<int64_t>({3, 2, 2}));
  const auto single =
      parse_list(Tensor::scalar(kA), Group::kSparse, "s", kText);
  REQUIRE(single.ok());
  expect_close((*single)[0], Tensor::of<int64_t>({2, 2}, {0, 0, 0, 1}));
  expect_close((*single)[2], Tensor::vector<int64_t>({1, 2}));
}

TEST_CASE("ragged lists have splits of steps and of values") {
  const auto batched =
      parse_list(texts({kA, kB, kC}), Group::kRagged, "s", kText);
  REQUIRE(batched.ok());
  expect_close((*batched)[1], Tensor::vector<int32_t>({0, 1, 3, 5}));
  expect_close((*batched)[2], Tensor::vector<int32_t>({0, 2, 3, 5, 5, 6}));
  const auto single =
      parse_list(Tensor::scalar(kB), Group::kRagged, "s", kText);
  REQUIRE(single.ok());
  expect_close((*single)[1], Tensor::scalar<int32_t>(2));
  expect_close((*single)[2], Tensor::vector<int32_t>({0, 1, 3}));
}

TEST_CASE("lists that have not what is wanted are refused") {
  expect_error(parse_list(texts({kA, kB}), Group::kDense, "q", kInt), kInvalid,
               "example 0: feature \"q\" is missing, and is not assumed");
  expect_error(parse_list(texts({kC}), Group::kDense, "a", kInt), kInvalid,
               "has no values in step 1");
  expect_error(parse_list(texts({kB}), Group::kDense, "s", kText), kInvalid,
               "has 1 values in step 0, but its shape is [2]");
  expect_error(parse_list(texts({kA}), Group::kSparse, "s", kInt), kInvalid,
               "has values of string, not of int64");
  expect_error(parse_list(texts({"abc"}), Group::kSparse, "s", kInt), kInvalid,
               "cannot be parsed");
}

TEST_CASE("an empty batch needs no defaults") {
  const Tensor none = texts({});
  const auto parse = [&](const Tensor& serialized) {
    return run_op(
        "ParseSequenceExampleV2",
        {serialized, none, none, texts({"u"}), none, none, texts({"a"}), none,
         Tensor::vector<bool>({false}), Tensor::vector<int64_t>({})},
        {{"Tcontext_dense", std::vector{kInt}},
         {"context_dense_shapes", std::vector<PartialShape>{{2}}},
         {"Nfeature_list_dense", int64_t(1)},
         {"feature_list_dense_types", std::vector{kInt}},
         {"feature_list_dense_shapes", std::vector<PartialShape>{{2}}}});
  };
  const auto empty = parse(none);
  REQUIRE(empty.ok());
  expect_close((*empty)[0], Tensor::of<int64_t>({0, 2}, {}));
  expect_close((*empty)[1], Tensor::of<int64_t>({0, 0, 2}, {}));
  expect_close((*empty)[2], Tensor::vector<int64_t>({}));
  expect_error(parse(texts({kB})), kInvalid,
               "feature \"u\" is missing, and has no default");
}

TEST_CASE("a single sequence has keys as inputs, a batch as attributes") {
  const Tensor none = texts({});
  const auto single =
      run_op("ParseSingleSequenceExample",
             {Tensor::scalar(kA), none, Tensor::scalar("u"),
              Tensor::scalar("u"), Tensor::scalar("s"), Tensor::scalar("a"),
              Tensor::vector<int64_t>({}), Tensor::scalar("name")},
             {{"Ncontext_sparse", int64_t(1)},
              {"Ncontext_dense", int64_t(1)},
              {"Nfeature_list_sparse", int64_t(1)},
              {"Nfeature_list_dense", int64_t(1)},
              {"context_sparse_types", std::vector{kInt}},
              {"Tcontext_dense", std::vector{kInt}},
              {"context_dense_shapes", std::vector<PartialShape>{{2}}},
              {"feature_list_sparse_types", std::vector{kText}},
              {"feature_list_dense_types", std::vector{kInt}},
              {"feature_list_dense_shapes", std::vector<PartialShape>{{2}}}});
  REQUIRE(single.ok());
  expect_close((*single)[2], Tensor::vector<int64_t>({2}));
  expect_close((*single)[3], Tensor::vector<int64_t>({1, 2}));
  expect_close((*single)[5], Tensor::vector<std::string>({"x", "y"}));
  expect_close((*single)[7], Tensor::of<int64_t>({2, 2}, {1, 2, 3, 4}));
  const auto batch =
      run_op("ParseSequenceExample", {texts({kA, kC}), none},
             {{"feature_list_dense_missing_assumed_empty", Strings{"q"}},
              {"context_sparse_keys", Strings{"u"}},
              {"context_dense_keys", Strings{}},
              {"feature_list_sparse_keys", Strings{}},
              {"feature_list_dense_keys", Strings{"q"}},
              {"Ncontext_sparse", int64_t(1)},
              {"Nfeature_list_dense", int64_t(1)},
              {"context_sparse_types", std::vector{kInt}},
              {"Tcontext_dense", std::vector<DataType>()},
              {"feature_list_dense_types", std::vector{DataType::kFloat}},
              {"feature_list_dense_shapes", std::vector<PartialShape>{{1}}}});
  REQUIRE(batch.ok());
  expect_close((*batch)[0], Tensor::of<int64_t>({3, 2}, {0, 0, 0, 1, 1, 0}));
  expect_close((*batch)[4], Tensor::vector<int64_t>({0, 0}));
}

}  // namespace tagflow::devices
