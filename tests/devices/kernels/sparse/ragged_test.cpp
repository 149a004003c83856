// Ragged rows, n-grams, rows in place: compared with TensorFlow's results and
// errors.
#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/kernels/sparse/sparse_inputs.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;
using Texts = std::vector<std::string>;

Result<Outputs> to_dense(Tensor shape, Tensor values, Tensor filling,
                         std::vector<Tensor> partitions, Texts types) {
  std::vector<Tensor> inputs = {std::move(shape), std::move(values),
                                std::move(filling)};
  for (Tensor& partition : partitions) inputs.push_back(std::move(partition));
  return run_op("RaggedTensorToTensor", inputs,
                {{"row_partition_types", std::move(types)}});
}

Result<Outputs> ngrams_of(Tensor words, Tensor splits,
                          std::vector<int64_t> widths, int64_t pad_width,
                          std::string left = "<") {
  return run_op("StringNGrams", {std::move(words), std::move(splits)},
                {{"separator", std::string()},
                 {"ngram_widths", std::move(widths)},
                 {"left_pad", std::move(left)},
                 {"right_pad", std::string(">")},
                 {"pad_width", pad_width},
                 {"preserve_short_sequences", true}});
}
Result<Outputs> ngrams(Tensor words, Tensor splits, int64_t width,
                       int64_t pad_width, std::string left = "<") {
  return ngrams_of(std::move(words), std::move(splits), {width}, pad_width,
                   std::move(left));
}

}  // namespace

TEST_CASE("ragged rows, n-grams, buckets and updates are TensorFlow's") {
  const RecordedCounts counts = check_recorded_cases("ragged.txt");
  CHECK(counts.ops.size() == 15);
  CHECK(counts.refused > 5);
}

TEST_CASE("RaggedTensorToTensor refuses partitions that do not fit") {
  const Tensor all = Tensor::scalar<int64_t>(-1), zero = Tensor::scalar(0.0f);
  const Tensor three = floats({1, 2, 3});
  expect_error(to_dense(all, three, zero, {longs({0, 2})}, {"ROW_SPLITS"}),
               kInvalid, "ragged dimension 1 ends at 2, but there are 3");
  expect_error(
      to_dense(all, three, zero, {longs({0, 2, 1, 3})}, {"ROW_SPLITS"}),
      kInvalid, "row splits must begin with 0 and ascend");
  expect_error(to_dense(all, three, zero, {longs({1, 3})}, {"ROW_SPLITS"}),
               kInvalid, "row splits must begin with 0 and ascend");
  expect_error(to_dense(all, three, zero, {longs({})}, {"ROW_SPLITS"}),
               kInvalid, "a vector of at least one element");
  const Texts ids = {"FIRST_DIM_SIZE", "VALUE_ROWIDS"};
  expect_error(to_dense(all, three, zero,
                        {Tensor::scalar<int64_t>(2), longs({0, 1, 2})}, ids),
               kInvalid, "value rowids must ascend within [0, 2), got 2 at 2");
  expect_error(to_dense(all, three, zero,
                        {Tensor::scalar<int64_t>(-1), longs({0, 1, 2})}, ids),
               kInvalid, "-1 is not a number of rows");
  CHECK_FALSE(
      to_dense(all, three, zero,
               {Tensor::scalar<int64_t>(int64_t{1} << 60), longs({0, 1, 2})},
               ids)
          .ok());
  expect_error(to_dense(all, three, zero, {longs({0, 3})}, {"ROW_LENGTHS"}),
               kInvalid, "row partition 0 is of type \"ROW_LENGTHS\"");
  expect_error(to_dense(all, three, zero, {longs({0, 3})}, {"VALUE_ROWIDS"}),
               kInvalid, "partitions begin with ROW_SPLITS");
  expect_error(to_dense(all, three, zero, {longs({0, 3})}, ids), kInvalid,
               "2 row_partition_types for 1 partitions");
  expect_error(
      to_dense(longs({1, -2}), three, zero, {longs({0, 3})}, {"ROW_SPLITS"}),
      kInvalid, "-2");
  expect_error(
      to_dense(all, three, floats({1, 2}), {longs({0, 3})}, {"ROW_SPLITS"}),
      kInvalid, "default_value float[2] does not fit the inner dimensions []");
  const int64_t huge = int64_t{1} << 40;
  CHECK_FALSE(to_dense(longs({huge, huge}), three, zero, {longs({0, 3})},
                       {"ROW_SPLITS"})
                  .ok());
  expect_error(run_op("RaggedTensorToSparse", {longs({0, 1}), three}), kInvalid,
               "ragged dimension 1 ends at 1, but there are 3");
}

TEST_CASE("RaggedTensorToTensor needs no memory for rows without values") {
  const Texts ids = {"FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS"};
  const int64_t last = (int64_t{1} << 50) - 1;
  expect_close(
      (*to_dense(longs({3, 2, 1}), floats({1, 2, 3, 4}), Tensor::scalar(0.0f),
                 {Tensor::scalar<int64_t>(last + 1), longs({0, 2, 2, last}),
                  longs({0, 1, 2, 3})},
                 ids))[0],
      Tensor::of<float>({3, 2, 1}, {1, 0, 0, 0, 2, 3}));
  // Splits say how many rows ids may name.
  expect_error(to_dense(longs({1, 1, 1}), floats({1}), Tensor::scalar(0.0f),
                        {longs({0, last}), longs({last})},
                        {"ROW_SPLITS", "VALUE_ROWIDS"}),
               kInvalid, "value rowids must ascend within");
}

TEST_CASE("n-grams that would take too much memory are refused") {
  const Tensor word = Tensor::vector<std::string>({"a"});
  expect_close((*ngrams(word, longs({0, 1}), 3, 1))[0],
               Tensor::vector<std::string>({"<a>"}));
  expect_error(ngrams(word, longs({0, 1}), 0, 1), kInvalid,
               "width 0 is outside [1, 4096]");
  expect_error(ngrams(word, longs({0, 1}), int64_t{1} << 40, -1), kInvalid,
               "is outside [1, 4096]");
  expect_error(ngrams(word, longs({0, 1}), 2, int64_t{1} << 62), kInvalid,
               "pad_width");
  expect_error(ngrams(word, longs({0, 2}), 2, 0), kInvalid,
               "data_splits must ascend from 0 to 1");
  // 4096 n-grams of each width: the strings alone would be of 2.6 GB.
  expect_error(
      ngrams_of(word, longs({0, 1}), std::vector<int64_t>(20000, 4096), -1),
      Code::kResourceExhausted, "would be more than 67108863 n-grams");
  // A pad of a million bytes, four thousand times.
  expect_error(ngrams(word, longs({0, 1}), 4096, -1, std::string(1 << 20, '<')),
               Code::kResourceExhausted, "have more than");
}

TEST_CASE("StringNGrams without widths joins each row, with padding") {
  const Tensor words = Tensor::vector<std::string>({"a", "b", "c"});
  expect_close((*ngrams_of(words, longs({0, 3}), {}, 1))[0],
               Tensor::vector<std::string>({"<abc>"}));
  expect_error(ngrams_of(words, longs({0, 3}), {}, -1), kInvalid,
               "needs a pad_width of at least 0, not -1");
}

TEST_CASE("AccumulateNV2 adds up its inputs") {
  expect_close((*run_op("AccumulateNV2",
                        {floats({1, 2}), floats({3, 4}), floats({5, 6})},
                        {{"shape", PartialShape{2}}}))[0],
               floats({9, 12}));
  // Nothing is known of an input before the run.
  expect_error(
      run_op_beyond_inference("AccumulateNV2", {floats({1, 2}), floats({3, 4})},
                              {{"shape", PartialShape{3}}}),
      kInvalid, "the inputs are of shape [2], not [3]");
}

TEST_CASE("ParallelConcat joins rows, each of one input") {
  const Tensor a = Tensor::of<float>({1, 2}, {1, 2});
  const Tensor b = Tensor::of<float>({1, 2}, {3, 4});
  const auto join = [](const std::vector<Tensor>& rows, PartialShape shape) {
    return run_op("ParallelConcat", rows, {{"shape", std::move(shape)}});
  };
  expect_close(join({a, b}, {2, 2}), Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  CHECK_FALSE(join({a, b}, {3, 2}).ok());
  expect_error(join({a, floats({1, 2})}, {2, 2}), kInvalid,
               "the inputs must be one row each");
}

TEST_CASE("Empty gives a tensor of zeros") {
  for (const bool init : {false, true})
    expect_close((*run_op("Empty", {Tensor::vector<int32_t>({2, 3})},
                          {{"dtype", DataType::kFloat}, {"init", init}}))[0],
                 Tensor::of<float>({2, 3}, {0, 0, 0, 0, 0, 0}));
  expect_error(run_op("Empty", {Tensor::vector<int32_t>({-1})},
                      {{"dtype", DataType::kString}}),
               kInvalid, "-1");
}

TEST_CASE("InplaceAdd and UnravelIndex refuse an empty tensor") {
  const Tensor none = Tensor::make(DataType::kFloat, {0, 2});
  expect_error(run_op("InplaceAdd", {none, Tensor::vector<int32_t>({0}),
                                     Tensor::of<float>({1, 2}, {1, 2})}),
               kInvalid, "has no rows");
  expect_error(
      run_op("UnravelIndex", {Tensor::scalar<int64_t>(0), longs({2, 0})}),
      kInvalid, "dims [2,0] are not dimensions");
  expect_error(
      run_op("UnravelIndex", {Tensor::scalar<int64_t>(0),
                              longs({int64_t{1} << 40, int64_t{1} << 40})}),
      kInvalid, "are not dimensions");
  expect_error(run_op("NthElement", {none, Tensor::scalar<int32_t>(2)}),
               kInvalid, "n 2 is outside");
}

TEST_CASE("incomplete gamma, zeta and Bessel functions are TensorFlow's") {
  const RecordedCounts counts = check_recorded_cases("special.txt", 2e-4);
  CHECK(counts.ops.size() == 18);
}

}  // namespace tagflow::devices
