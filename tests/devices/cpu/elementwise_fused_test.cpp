#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

using Lines = std::vector<std::string>;

Result<Outputs> run_fused(const Lines& program,
                          const std::vector<Tensor>& inputs) {
  Lines names;
  for (size_t i = 0; i < program.size(); ++i)
    names.push_back(fmt::format("op{}", i));
  return run_op("_FusedElementwise", inputs,
                {{"program", program}, {"names", names}});
}

// What the ops give one by one.
Result<Outputs> run_unfused(const Lines& program, std::vector<Tensor> values) {
  for (const std::string& line : program) {
    std::vector<Tensor> operands;
    const size_t op_end = line.find(' ');
    for (size_t at = op_end; at != line.npos; at = line.find(' ', at + 1))
      operands.push_back(values[std::stoul(line.substr(at + 1))]);
    auto result = run_op(line.substr(0, op_end), operands);
    if (!result.ok()) return result;
    values.push_back(result->front());
  }
  return Outputs{values.back()};
}

void expect_same_bits(const Lines& program, const std::vector<Tensor>& inputs) {
  const auto fused = run_fused(program, inputs);
  const auto unfused = run_unfused(program, inputs);
  REQUIRE_MESSAGE(fused.ok(), fused.status().to_string());
  REQUIRE_MESSAGE(unfused.ok(), unfused.status().to_string());
  CHECK_MESSAGE(identical((*fused)[0], (*unfused)[0]),
                (*fused)[0].describe() << (*unfused)[0].describe());
}

// Numbers of both signs, a NaN and an infinity among them.
Tensor numbers(DataType dtype, const Shape& shape, int seed) {
  Tensor values = *Tensor::allocate(DataType::kFloat, shape);
  const auto to = values.mutable_flat<float>();
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = float((i * 7919 + size_t(seed) * 131) % 1009) / 100 - 5;
  if (to.size() > 70) {
    to[3] = std::numeric_limits<float>::quiet_NaN();
    to[70] = -std::numeric_limits<float>::infinity();
  }
  if (dtype == DataType::kFloat) return values;
  return run_op("Cast", {values}, {{"DstT", dtype}})->front();
}

}  // namespace

TEST_CASE("fused ops give the bits that they give one by one") {
  // Results that are used twice, at once and later; tiles used again.
  const Lines program = {"Tanh 0",   "Mul 3 0",     "AddV2 4 1", "Exp 5",
                         "Sub 6 3",  "Square 7",    "Sqrt 8",    "Maximum 4 9",
                         "Div 10 2", "Minimum 11 0"};
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                               DataType::kHalf, DataType::kBFloat16})
    for (const int64_t size : {1, 63, 64, 65, 1023, 1025, 3000, 40000})
      expect_same_bits(program,
                       {numbers(dtype, {size}, 1), numbers(dtype, {}, 2),
                        numbers(dtype, {size}, 3)});
}

TEST_CASE("single elements, empty tensors and broadcast ones are fused too") {
  const Lines program = {"Mul 0 1", "AddV2 2 1", "Tanh 3"};
  const auto check = [&](const Shape& a, const Shape& b) {
    const Tensor x = numbers(DataType::kFloat, a, 1);
    const Tensor y = numbers(DataType::kFloat, b, 2);
    expect_same_bits(program, {x, y});
    expect_same_bits(program, {y, x});
  };
  check({}, {});
  check({1}, {});
  check({1, 1}, {5});
  check({5}, {});
  check({5, 3}, {1});
  check({5, 3}, {3});
  check({5, 1}, {3});
  check({0, 3}, {3});
  check({0, 3}, {1});
  check({0}, {});
  // Part of the tree is a scalar.
  expect_same_bits(
      {"Mul 1 1", "AddV2 0 2"},
      {numbers(DataType::kFloat, {100}, 1), numbers(DataType::kFloat, {}, 2)});
}

TEST_CASE("A fused op that broadcasts nothing fails as it would alone") {
  const Tensor x = numbers(DataType::kFloat, {100}, 1);
  const Tensor one = numbers(DataType::kFloat, {1}, 2);
  expect_same_bits({"TanhGrad 0 1", "SigmoidGrad 0 2", "ReluGrad 3 1"}, {x, x});
  for (const char* op : {"TanhGrad", "SigmoidGrad", "ReluGrad"})
    for (const char* operands : {"0 2", "2 0"}) {
      const Lines program = {"Neg 1", fmt::format("{} {}", op, operands)};
      const auto fused = run_fused(program, {x, one});
      const auto alone = run_unfused(program, {x, one});
      REQUIRE(!alone.ok());
      expect_error(fused, alone.status().code(), alone.status().message());
    }
}

TEST_CASE("as many scalars as a program may have are fused") {
  // The tensors of more than a few values must be aligned, too: see
  // tests/checks/alignment.sh.
  for (const size_t ops : {size_t(15), size_t(17), size_t(40), size_t(64)}) {
    Lines program = {"Mul 0 1"};
    while (program.size() < ops)
      program.push_back(fmt::format("AddV2 {} 0", program.size() + 1));
    expect_same_bits(program, {Tensor::scalar(0.5f), Tensor::scalar(3.0f)});
  }
}

TEST_CASE("columns of an input are computed with as if they were split off") {
  const Lines program = {"Sigmoid 0", "Tanh 1",    "Mul 3 4",
                         "Mul 2 0",   "AddV2 5 6", "Mul 7 7"};
  const Lines names(program.size(), "op");
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                               DataType::kHalf, DataType::kBFloat16})
    for (const auto& [shape, width] :
         std::vector<std::pair<Shape, int64_t>>{{{1, 48}, 16},
                                                {{48}, 16},
                                                {{5, 12}, 4},
                                                {{3, 2, 300}, 100},
                                                {{40, 3000}, 1000},
                                                {{2, 30000}, 10000},
                                                {{0, 6}, 2},
                                                {{7, 3}, 1}}) {
      const Tensor whole = numbers(dtype, shape, 1);
      Shape part = shape;
      part.set_dim(part.rank() - 1, width);
      const auto parts =
          run_op("Split", {Tensor::scalar(int32_t(shape.rank() - 1)), whole},
                 {{"num_split", int64_t{3}}});
      REQUIRE(parts.ok());
      // A tensor of this shape, one that must be broadcast, a single element.
      for (const Tensor& other :
           {numbers(dtype, part, 2), numbers(dtype, {width}, 2),
            numbers(dtype, {}, 2)}) {
        INFO(shape.to_string(), " with ", other.describe());
        const auto fused =
            run_op("_FusedElementwise", {whole, whole, other},
                   {{"program", program},
                    {"names", names},
                    {"columns",
                     std::vector<int64_t>{2 * width, width, 0, width, 0, 0}}});
        REQUIRE_MESSAGE(fused.ok(), fused.status().to_string());
        const auto unfused =
            run_unfused(program, {(*parts)[2], (*parts)[0], other});
        REQUIRE_MESSAGE(unfused.ok(), unfused.status().to_string());
        CHECK(identical((*fused)[0], (*unfused)[0]));
      }
    }
}

TEST_CASE("columns that are not there are refused") {
  const auto refused = [](const Tensor& x, std::vector<int64_t> columns) {
    const auto result = run_op("_FusedElementwise", {x},
                               {{"program", Lines{"Neg 0"}},
                                {"names", Lines{"a"}},
                                {"columns", std::move(columns)}});
    return result.status().to_string();
  };
  const Tensor x = numbers(DataType::kFloat, {2, 6}, 1);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto says = [](const std::string& text, const char* part) {
    CHECK_MESSAGE(text.find(part) != text.npos, text);
  };
  says(refused(x, {4, 3}), "input 0 has no columns 4 to 6: it is float[2,6]");
  says(refused(x, {kMost - 1, 1}), "input 0 has no columns");
  says(refused(Tensor::scalar(1.0f), {0, 1}), "input 0 has no columns 0 to 0");
  says(refused(x, {kMost, 1}), "input 0 has no 1 columns");
  says(refused(x, {-1, 1}), "input 0 has no 1 columns from column -1 on");
  says(refused(x, {0, -1}), "input 0 has no -1 columns");
  says(refused(x, {0, 1, 2}), "3 numbers for the columns of 1 inputs");
  CHECK(refused(x, {5, 1}) == "OK");
}

TEST_CASE("a fused op fails as it would alone, and says which it was") {
  const Tensor x = numbers(DataType::kFloat, {5}, 1);
  const Tensor y = numbers(DataType::kFloat, {4}, 1);
  const auto unfused = run_op("Mul", {x, y});
  REQUIRE(!unfused.ok());
  expect_error(run_fused({"Tanh 0", "Mul 2 1", "Neg 3"}, {x, y}),
               unfused.status().code(),
               std::string(unfused.status().message()) + ", in \"op1\"");
}

TEST_CASE("a program that is no fusion is refused") {
  const Tensor x = Tensor::vector<float>({1, 2});
  const auto expect_refused = [&](const Lines& program, std::string_view text) {
    expect_error(run_fused(program, {x}), Code::kInvalidArgument, text);
  };
  expect_refused({"Neg 1"},
                 "[_FusedElementwise] node \"op\": line 0 of the program, "
                 "\"Neg 1\": \"1\" is no operand");
  expect_refused({"Neg 0", "Neg x"}, "line 1 of the program, \"Neg x\": \"x\"");
  expect_refused({"Neg -1"}, "\"-1\" is no operand");
  expect_refused({"Neg  0"}, "\"\" is no operand");
  expect_refused({"Neg 0 "}, "\"\" is no operand");
  expect_refused({"Neg 99999999999999999999999"}, "is no operand");
  expect_refused({"ClipByValue 0 0 0"}, "\"0\" is no operand");
  expect_refused({"Mul 0"}, "\"Mul 0\": ");
  expect_refused({"Identity 0"}, "the op cannot be fused");
  expect_refused({"IsNan 0"}, "the op cannot be fused");
  expect_refused({"Less 0 0"}, "the op cannot be fused");
  expect_refused(Lines(65, "Neg 0"), "65 ops on 1 inputs, the limit is 64");
  expect_error(run_fused({"Frobnicate 0"}, {x}), Code::kUnimplemented,
               "\"Frobnicate 0\": ");
  expect_error(
      run_op("_FusedElementwise", {x},
             {{"program", Lines{"Neg 0"}}, {"names", Lines{"a", "b"}}}),
      Code::kInvalidArgument, "2 names for 1 ops");
}

}  // namespace tagflow::devices
