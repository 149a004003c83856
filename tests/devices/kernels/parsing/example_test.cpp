// The results are those of TensorFlow 2.21.
#include <doctest/doctest.h>

#include <random>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/kernels/parsing/examples.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;

// What a ParseExampleV2 wants.
struct Wanted {
  Strings sparse, dense, ragged;
  std::vector<DataType> sparse_types, dense_types, ragged_types, splits;
  std::vector<PartialShape> shapes;
  std::vector<Tensor> fallbacks;
  Tensor names = Tensor::vector<std::string>({});
};

Tensor strings(const Strings& values) {
  return Tensor::of<std::string>({int64_t(values.size())}, values);
}

Result<Outputs> parse(const Tensor& serialized, const Wanted& wanted) {
  std::vector<Tensor> inputs = {serialized, wanted.names,
                                strings(wanted.sparse), strings(wanted.dense),
                                strings(wanted.ragged)};
  inputs.insert(inputs.end(), wanted.fallbacks.begin(), wanted.fallbacks.end());
  return run_op("ParseExampleV2", inputs,
                {{"num_sparse", int64_t(wanted.sparse.size())},
                 {"sparse_types", wanted.sparse_types},
                 {"Tdense", wanted.dense_types},
                 {"ragged_value_types", wanted.ragged_types},
                 {"ragged_split_types", wanted.splits},
                 {"dense_shapes", wanted.shapes}});
}

Wanted dense(const std::string& key, DataType type, PartialShape shape,
             Tensor fallback) {
  Wanted wanted;
  wanted.dense = {key};
  wanted.dense_types = {type};
  wanted.shapes = {std::move(shape)};
  wanted.fallbacks = {std::move(fallback)};
  return wanted;
}

Wanted sparse(const std::string& key, DataType type) {
  Wanted wanted;
  wanted.sparse = {key};
  wanted.sparse_types = {type};
  return wanted;
}

const std::string kFull = example(
    {{"x", Floats{1, 2}}, {"y", Ints{1, -2, 300}}, {"s", Strings{"a", "bc"}}});
const std::string kEmpty = example({});

const Tensor kNoFloats = Tensor::vector<float>({});

// A field of bytes, of less than 128 of them.
std::string part(int number, const std::string& bytes) {
  return std::string{char(number << 3 | 2), char(bytes.size())} + bytes;
}

// The Example whose map of features has these entries.
std::string of_entries(const Strings& entries) {
  std::string features;
  for (const std::string& entry : entries) features += part(1, entry);
  return part(1, features);
}

}  // namespace

TEST_CASE("dense features are rows, and defaults where they are missing") {
  const Tensor batch = strings({kFull, kEmpty});
  expect_close(parse(batch, dense("x", DataType::kFloat, {2},
                                  Tensor::vector<float>({7, 8}))),
               Tensor::of<float>({2, 2}, {1, 2, 7, 8}));
  expect_close(parse(batch, dense("s", DataType::kString, {2},
                                  Tensor::vector<std::string>({"d", ""}))),
               Tensor::of<std::string>({2, 2}, {"a", "bc", "d", ""}));
  expect_close(
      parse(Tensor::scalar(kFull), dense("y", DataType::kInt64, {3, 1},
                                         Tensor::of<int64_t>({0, 3}, {}))),
      Tensor::of<int64_t>({3, 1}, {1, -2, 300}));
}

TEST_CASE("features of varying length are padded") {
  const Tensor batch = strings({kEmpty, kFull});
  expect_close(parse(batch, dense("y", DataType::kInt64, {-1},
                                  Tensor::scalar<int64_t>(9))),
               Tensor::of<int64_t>({2, 3}, {9, 9, 9, 1, -2, 300}));
  expect_close(
      parse(batch, dense("x", DataType::kFloat, {-1, 2}, Tensor::scalar(7.0f))),
      Tensor::of<float>({2, 1, 2}, {7, 7, 1, 2}));
  expect_close(parse(Tensor::scalar(kEmpty),
                     dense("x", DataType::kFloat, {-1}, Tensor::scalar(7.0f))),
               kNoFloats);
  expect_error(parse(batch, dense("y", DataType::kInt64, {-1, 2},
                                  Tensor::scalar<int64_t>(9))),
               kInvalid, "has 3 values, which are not rows of shape [2]");
  expect_error(parse(batch, dense("x", DataType::kFloat, {-1}, kNoFloats)),
               kInvalid, "must be one value to pad with, not float[0]");
  expect_error(
      parse(batch, dense("x", DataType::kFloat, {-1, 0}, Tensor::scalar(7.0f))),
      kInvalid, "has no values");
}

TEST_CASE("sparse features have indices, values and the largest row") {
  const auto batched =
      parse(strings({kFull, kEmpty, kFull}), sparse("s", DataType::kString));
  REQUIRE(batched.ok());
  expect_close((*batched)[0],
               Tensor::of<int64_t>({4, 2}, {0, 0, 0, 1, 2, 0, 2, 1}));
  expect_close((*batched)[1],
               Tensor::vector<std::string>({"a", "bc", "a", "bc"}));
  expect_close((*batched)[2], Tensor::vector<int64_t>({3, 2}));
  const auto single =
      parse(Tensor::scalar(kFull), sparse("y", DataType::kInt64));
  REQUIRE(single.ok());
  expect_close((*single)[0], Tensor::of<int64_t>({3, 1}, {0, 1, 2}));
  expect_close((*single)[2], Tensor::vector<int64_t>({3}));
}

TEST_CASE("ragged features have row splits, but not those of one example") {
  Wanted wanted;
  wanted.ragged = {"y", "s"};
  wanted.ragged_types = {DataType::kInt64, DataType::kString};
  wanted.splits = {DataType::kInt32, DataType::kInt64};
  const auto batched = parse(strings({kFull, kEmpty, kFull}), wanted);
  REQUIRE(batched.ok());
  expect_close((*batched)[0],
               Tensor::vector<int64_t>({1, -2, 300, 1, -2, 300}));
  expect_close((*batched)[2], Tensor::vector<int32_t>({0, 3, 3, 6}));
  expect_close((*batched)[3], Tensor::vector<int64_t>({0, 2, 2, 4}));
  const auto single = parse(Tensor::scalar(kFull), wanted);
  REQUIRE(single.ok());
  expect_close((*single)[2], Tensor::vector<int32_t>({}));
}

TEST_CASE("an example that has not what is wanted is refused") {
  const Tensor batch = strings({kFull, kEmpty});
  Wanted wanted =
      dense("x", DataType::kInt64, {1}, Tensor::vector<int64_t>({}));
  wanted.names = strings({"n1", "n2"});
  expect_error(parse(batch, wanted), kInvalid,
               "example 0 \"n1\": feature \"x\" has values of float, not of "
               "int64");
  wanted.dense = {"y"};
  expect_error(parse(batch, wanted), kInvalid,
               "has 3 values, but its shape is [1]");
  wanted.shapes = {{3}};
  expect_error(
      parse(batch, wanted), kInvalid,
      "example 1 \"n2\": feature \"y\" is missing, and has no default");
  wanted.names = strings({"n1"});
  expect_error(parse(batch, wanted), kInvalid, "names string[1] for examples");
  wanted.names = strings({});
  wanted.fallbacks = {Tensor::vector<int64_t>({1, 2})};
  expect_error(parse(batch, wanted), kInvalid, "must have that shape");
  wanted.dense = {};
  expect_error(parse(batch, wanted), kInvalid, "0 keys for features of 1 type");
  expect_error(parse(strings({kFull, "abc"}), sparse("x", DataType::kFloat)),
               kInvalid, "example 1, 3 bytes which begin with \"abc\", cannot");
  expect_error(parse(Tensor::of<std::string>({1, 1}, {kFull}),
                     sparse("x", DataType::kFloat)),
               kInvalid, "scalar or a vector");
  expect_error(parse(batch, sparse("x", DataType::kInt64)), kInvalid,
               "has values of float");
}

TEST_CASE("a feature without a list is missing, one with an empty list not") {
  const Tensor none = strings({example({{"x", std::monostate()}})});
  expect_close(parse(none, dense("x", DataType::kFloat, {1},
                                 Tensor::vector<float>({2}))),
               Tensor::of<float>({1, 1}, {2}));
  const Tensor empty = strings({example({{"x", Floats{}}})});
  expect_error(parse(empty, dense("x", DataType::kFloat, {1},
                                  Tensor::vector<float>({2}))),
               kInvalid, "has 0 values");
  expect_error(parse(empty, sparse("x", DataType::kInt64)), kInvalid,
               "has values of float");
}

TEST_CASE("of features with one key the last counts, whatever came before") {
  const std::string twice =
      example({{"x", Ints{1}}}) + example({{"x", Floats{9}}});
  const auto outputs = parse(strings({twice}), sparse("x", DataType::kFloat));
  REQUIRE(outputs.ok());
  expect_close((*outputs)[1], Tensor::vector<float>({9}));
  // The same key for two outputs.
  Wanted both = dense("x", DataType::kFloat, {1}, kNoFloats);
  both.sparse = {"x"};
  both.sparse_types = {DataType::kFloat};
  const auto shared = parse(strings({twice}), both);
  REQUIRE(shared.ok());
  expect_close((*shared)[1], Tensor::vector<float>({9}));
  expect_close((*shared)[3], Tensor::of<float>({1, 1}, {9}));
}

TEST_CASE("values may be written one by one, and in several lists") {
  // Fields 1 of two lists with tags of single values, then a packed one.
  const std::string ints("\x1a\x04\x08\x05\x08\x06\x1a\x04\x0a\x02\x07\x08");
  const auto of = [](const std::string& feature) {
    return of_entries({"\x0a\x01k" + part(2, feature)});
  };
  const auto outputs =
      parse(strings({of(ints)}), sparse("k", DataType::kInt64));
  REQUIRE(outputs.ok());
  expect_close((*outputs)[1], Tensor::vector<int64_t>({5, 6, 7, 8}));
  // Packed floats whose bytes are no multiple of 4, and an endless varint.
  expect_error(parse(strings({of(std::string("\x12\x05\x0a\x03\0\0\0", 7))}),
                     sparse("k", DataType::kFloat)),
               kInvalid, "cannot be parsed");
  expect_error(parse(strings({of("\x1a\x03\x0a\x01\xff")}),
                     sparse("k", DataType::kInt64)),
               kInvalid, "cannot be parsed");
}

TEST_CASE("odd entries are read as protobuf reads them") {
  const std::string other = part(1, "x"), key = part(1, "k");
  const std::string five = part(2, std::string("\x1a\x02\x08\x05")),
                    six = part(2, std::string("\x1a\x02\x08\x06"));
  const auto values_of = [](const std::string& name, const Strings& entries) {
    const auto outputs =
        parse(strings({of_entries(entries)}), sparse(name, DataType::kInt64));
    return outputs.ok() ? (*outputs)[1].to_string()
                        : outputs.status().to_string();
  };
  const std::string found = Tensor::vector<int64_t>({5}).to_string(),
                    none = Tensor::vector<int64_t>({}).to_string();
  CHECK(values_of("k", {key + five}) == found);
  CHECK(values_of("k", {five + key}) == found);
  CHECK(values_of("k", {other + key + five}) == found);
  CHECK(values_of("k", {key + part(9, "unknown") + five}) == found);
  CHECK(values_of("k", {key + six, key + five}) == found);
  CHECK(values_of("k", {key}) == none);
  // Without a key, it is that of the empty text.
  CHECK(values_of("k", {six, key + five}) == found);
  CHECK(values_of("", {five}) == found);
  CHECK(values_of("", {""}) == none);
  // Nobody writes two values, which would have to be merged.
  CHECK(values_of("k", {key + five + six}).find("cannot be parsed") !=
        std::string::npos);
  // An unknown group.
  CHECK(values_of("k", {key + five + "\x1b\x1c"}).find("cannot be parsed") !=
        std::string::npos);
}

TEST_CASE("an example that is cut between entries is refused") {
  const std::string entry = part(1, "x") + part(2, "\x1a\x02\x08\x05");
  const std::string whole = of_entries({entry, entry});
  const size_t half = whole.size() - part(1, entry).size();
  expect_error(
      parse(strings({whole.substr(0, half)}), sparse("x", DataType::kInt64)),
      kInvalid, "cannot be parsed");
  CHECK(parse(strings({whole}), sparse("x", DataType::kInt64)).ok());
}

TEST_CASE("an example is looked at, even if no feature is wanted") {
  CHECK(parse(strings({kFull}), {}).ok());
  expect_error(parse(strings({kFull, "damaged"}), {}), kInvalid,
               "example 1, 7 bytes which begin with \"damaged\", cannot be");
}

TEST_CASE("no cut or changed example is read beyond its end") {
  std::mt19937 random(5);
  Wanted wanted =
      dense("y", DataType::kInt64, {-1}, Tensor::scalar<int64_t>(0));
  wanted.sparse = {"x"};
  wanted.sparse_types = {DataType::kFloat};
  wanted.ragged = {"s"};
  wanted.ragged_types = {DataType::kString};
  wanted.splits = {DataType::kInt64};
  int refused = 0;
  for (size_t size = 0; size < kFull.size(); ++size)
    refused += !parse(strings({kFull.substr(0, size)}), wanted).ok();
  for (int i = 0; i < 300; ++i) {
    std::string changed = kFull;
    changed[random() % changed.size()] = char(random());
    refused += !parse(strings({changed}), wanted).ok();
  }
  CHECK(refused > 100);
}

TEST_CASE("a changed example is what protobuf reads, or is refused") {
  std::mt19937 random(6);
  Wanted wanted;
  wanted.sparse = {"x", "y", "s", ""};
  wanted.sparse_types = {DataType::kFloat, DataType::kInt64, DataType::kString,
                         DataType::kFloat};
  const std::string full =
      of_entries({part(1, "x") + part(2, part(2, part(1, "\1\2\3\4"))),
                  part(1, "y") + part(2, part(3, "\x08\x05\x0a\x02\x06\x07")),
                  part(1, "s") + part(2, part(1, part(1, "a") + part(1, ""))),
                  part(2, part(2, part(1, "5678")))});
  int read = 0, refused = 0, overlooked = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string changed = full;
    for (uint64_t left = 1 + random() % 3; left > 0; --left) {
      const size_t at = random() % changed.size();
      // Keys stay ASCII.
      if (random() % 4 == 0)
        changed.erase(at, random() % 3);
      else
        changed[at] = char(random() % (random() % 2 == 0 ? 128 : 32));
    }
    CAPTURE(fmt::format("{:?}", changed));
    const auto ours = parse(strings({changed}), wanted);
    tensorflow::Example message;
    if (!message.ParseFromString(changed)) {
      ++(ours.ok() ? overlooked : refused);
      continue;
    }
    const auto theirs = parse(strings({message.SerializeAsString()}), wanted);
    REQUIRE(ours.ok() == theirs.ok());
    if (!ours.ok()) continue;
    ++read;
    for (size_t k = 0; k < ours->size(); ++k)
      expect_close((*ours)[k], (*theirs)[k]);
  }
  CHECK(read > 500);
  // Damage in features that nobody wants is not seen.
  CHECK(overlooked * 50 < refused);
}

TEST_CASE("ParseExample and ParseSingleExample take keys elsewhere") {
  const auto first = run_op("ParseExample",
                            {strings({kFull}), strings({}), Tensor::scalar("s"),
                             Tensor::scalar("x"), kNoFloats},
                            {{"Nsparse", int64_t(1)},
                             {"Ndense", int64_t(1)},
                             {"sparse_types", std::vector{DataType::kString}},
                             {"Tdense", std::vector{DataType::kFloat}},
                             {"dense_shapes", std::vector<PartialShape>{{2}}}});
  REQUIRE(first.ok());
  expect_close((*first)[2], Tensor::vector<int64_t>({1, 2}));
  expect_close((*first)[3], Tensor::of<float>({1, 2}, {1, 2}));
  const AttrMap attrs = {{"num_sparse", int64_t(1)},
                         {"sparse_keys", Strings{"s"}},
                         {"dense_keys", Strings{"x"}},
                         {"sparse_types", std::vector{DataType::kString}},
                         {"Tdense", std::vector{DataType::kFloat}},
                         {"dense_shapes", std::vector<PartialShape>{{2}}}};
  const auto single =
      run_op("ParseSingleExample", {Tensor::scalar(kFull), kNoFloats}, attrs);
  REQUIRE(single.ok());
  expect_close((*single)[2], Tensor::vector<int64_t>({2}));
  expect_close((*single)[3], Tensor::vector<float>({1, 2}));
  expect_error(
      run_op("ParseSingleExample", {strings({kFull}), kNoFloats}, attrs),
      kInvalid, "serialized must be a scalar");
}

}  // namespace tagflow::devices
