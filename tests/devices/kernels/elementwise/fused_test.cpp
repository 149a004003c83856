#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>
#include <random>

#include "tests/devices/one_step.h"

namespace tagflow::devices {

namespace {

using Ints = std::vector<int64_t>;
using Lines = std::vector<std::string>;

AttrMap attrs_of(const Lines& program, AttrMap more = {}) {
  Lines names;
  for (size_t i = 0; i < program.size(); ++i)
    names.push_back(fmt::format("op{}", i));
  more["program"] = program;
  more["names"] = std::move(names);
  return more;
}

Result<Outputs> run_fused(const Lines& program,
                          const std::vector<Tensor>& inputs,
                          AttrMap more = {}) {
  return run_op("_FusedElementwise", inputs,
                attrs_of(program, std::move(more)));
}

// The inputs, and what the ops give one by one.
Result<Outputs> values_of(const Lines& program, std::vector<Tensor> values) {
  for (const std::string& line : program) {
    std::vector<Tensor> operands;
    const size_t op_end = line.find(' ');
    for (size_t at = op_end; at != line.npos; at = line.find(' ', at + 1))
      operands.push_back(values[std::stoul(line.substr(at + 1))]);
    auto result = run_op(line.substr(0, op_end), operands);
    if (!result.ok()) return result;
    values.push_back(result->front());
  }
  return values;
}

Result<Outputs> run_unfused(const Lines& program,
                            const std::vector<Tensor>& inputs) {
  TAGFLOW_ASSIGN(const Outputs values, values_of(program, inputs));
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

// What the attributes `outputs` and `joined` make of these values.
Outputs chosen(const Outputs& values, const Ints& outputs, const Ints& joined) {
  std::vector<Outputs> parts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t to = joined.empty() ? i : size_t(joined[i]);
    parts.resize(std::max(parts.size(), to + 1));
    parts[to].push_back(values[size_t(outputs[i])]);
  }
  Outputs results;
  for (Outputs& part : parts) {
    if (part.size() == 1) {
      results.push_back(part[0]);
      continue;
    }
    const auto count = int64_t(part.size());
    part.push_back(Tensor::scalar(int32_t{-1}));
    const auto whole = run_op("ConcatV2", part, {{"N", count}});
    REQUIRE_MESSAGE(whole.ok(), whole.status().to_string());
    results.push_back((*whole)[0]);
  }
  return results;
}

// Several outputs against the ops one by one, if others hold the inputs and
// if nobody does.
void expect_same_outputs(const Lines& program,
                         const std::vector<Tensor>& inputs, const Ints& outputs,
                         const Ints& joined = {}) {
  const auto values = values_of(program, inputs);
  REQUIRE_MESSAGE(values.ok(), values.status().to_string());
  const Outputs expected = chosen(*values, outputs, joined);
  const AttrMap more = {{"M", int64_t(expected.size())},
                        {"outputs", outputs},
                        {"joined", joined}};
  std::vector<Tensor> unshared;
  for (const Tensor& input : inputs) unshared.push_back(input.clone());
  const Result<Outputs> results[] = {
      run_fused(program, inputs, more),
      run_unshared("_FusedElementwise", unshared, attrs_of(program, more))};
  for (const Result<Outputs>& actual : results) {
    REQUIRE_MESSAGE(actual.ok(), actual.status().to_string());
    REQUIRE(actual->size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK_MESSAGE(identical((*actual)[i], expected[i]),
                    i << ": " << (*actual)[i].to_string() << " is not "
                      << expected[i].to_string());
  }
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

TEST_CASE("a fused op takes as many scalars as a program may have") {
  // The tensors of more than a few values must be aligned, too:
  // TAGFLOW_MISALIGNED_NEW shows it.
  for (const size_t ops : {size_t(15), size_t(17), size_t(40), size_t(64)}) {
    Lines program = {"Mul 0 1"};
    while (program.size() < ops)
      program.push_back(fmt::format("AddV2 {} 0", program.size() + 1));
    expect_same_bits(program, {Tensor::scalar(0.5f), Tensor::scalar(3.0f)});
  }
}

TEST_CASE("a fused op reads columns of an input as a Split would give them") {
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

TEST_CASE("a fused op's outputs have the bits that each op gives alone") {
  const Lines program = {"Tanh 0",   "Mul 3 0",     "AddV2 4 1", "Exp 5",
                         "Sub 6 3",  "Square 7",    "Sqrt 8",    "Maximum 4 9",
                         "Div 10 2", "Minimum 11 0"};
  // One that is not the last, the first and the last, out of order, all.
  const std::vector<Ints> choices = {
      {5}, {3, 12}, {12, 3, 7}, {3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                               DataType::kHalf, DataType::kBFloat16})
    for (const int64_t size : {1, 63, 64, 65, 1025, 3000, 40000})
      for (const Ints& outputs : choices) {
        INFO(size, " of ", dtype_name(dtype), ", ", outputs.size(), " outputs");
        expect_same_outputs(program,
                            {numbers(dtype, {size}, 1), numbers(dtype, {}, 2),
                             numbers(dtype, {size}, 3)},
                            outputs);
      }
}

TEST_CASE("a fused op's outputs may be scalars, empty, or differ in shape") {
  const Lines program = {"Neg 0", "Mul 0 1", "AddV2 2 1", "Tanh 3"};
  const auto check = [&](const Shape& a, const Shape& b) {
    INFO(a.to_string(), " with ", b.to_string());
    for (const Ints& outputs :
         {Ints{2, 5}, Ints{5, 4, 3, 2}, Ints{2}, Ints{4}}) {
      const Tensor x = numbers(DataType::kFloat, a, 1);
      const Tensor y = numbers(DataType::kFloat, b, 2);
      expect_same_outputs(program, {x, y}, outputs);
      expect_same_outputs(program, {y, x}, outputs);
    }
  };
  check({}, {});
  check({1}, {});
  check({1, 1}, {5});
  check({100}, {});
  check({5, 3}, {1});
  check({5, 3}, {3});
  check({5, 1}, {3});
  check({2000, 1}, {1, 3});
  check({0, 3}, {3});
  check({0}, {});
}

TEST_CASE("a fused op of a random program gives what its ops give") {
  std::mt19937 random(31);
  const auto below = [&](size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random);
  };
  const char* unary[] = {"Neg", "Tanh", "Square", "Abs", "Sigmoid"};
  const char* binary[] = {"AddV2", "Sub", "Mul", "Maximum", "Minimum"};
  for (int i = 0; i < 300; ++i) {
    CAPTURE(i);
    const Shape shapes[] = {{3, 5}, {2, 700}, {1}, {4, 1, 33}, {3000}};
    const Shape& shape = shapes[below(std::size(shapes))];
    std::vector<Tensor> inputs = {numbers(DataType::kFloat, shape, i)};
    for (size_t more = below(4); more > 0; --more)
      inputs.push_back(numbers(DataType::kFloat,
                               below(4) == 0 ? Shape{} : shape, i + int(more)));
    Lines program;
    const size_t num_ops = 1 + below(12);
    while (program.size() < num_ops) {
      // Of the results, mostly the late ones.
      const size_t values = inputs.size() + program.size();
      const size_t x = values - 1 - below(std::min<size_t>(values, 4));
      const size_t y = below(values);
      program.push_back(below(2) == 0
                            ? fmt::format("{} {}", unary[below(5)], x)
                            : fmt::format("{} {} {}", binary[below(5)], x, y));
    }
    Ints outputs;
    for (size_t op = 0; op < num_ops; ++op)
      if (below(3) == 0) outputs.push_back(int64_t(inputs.size() + op));
    if (outputs.empty())
      outputs.push_back(int64_t(inputs.size() + below(num_ops)));
    std::shuffle(outputs.begin(), outputs.end(), random);
    expect_same_outputs(program, inputs, outputs);
    if (outputs.size() == 1) continue;
    // Joined if all of them are of one shape: if none is a scalar.
    const auto values = values_of(program, inputs);
    REQUIRE(values.ok());
    if (!std::ranges::all_of(outputs, [&](int64_t value) {
          return (*values)[size_t(value)].shape() == shape;
        }))
      continue;
    Ints joined = {0, 1};
    while (joined.size() < outputs.size()) joined.push_back(int64_t(below(2)));
    std::shuffle(joined.begin(), joined.end(), random);
    expect_same_outputs(program, inputs, outputs, joined);
    expect_same_outputs(program, inputs, outputs, Ints(outputs.size(), 0));
  }
}

TEST_CASE("a fused op's output uses the memory of an input read before") {
  const Lines program = {"Neg 0", "Mul 0 1", "AddV2 3 2", "Sub 4 3"};
  struct Reuse {
    Ints outputs;
    std::vector<bool> reused;  // by output
  };
  const auto check = [&](const Reuse& reuse, const std::vector<Tensor>& from,
                         bool is_held) {
    const auto values = values_of(program, from);
    REQUIRE(values.ok());
    std::vector<Tensor> inputs;
    for (const Tensor& input : from) inputs.push_back(input.clone());
    const std::vector<Tensor> held = is_held ? inputs : std::vector<Tensor>();
    std::vector<const void*> places;
    for (const Tensor& input : inputs) places.push_back(input.raw());
    const AttrMap more = {{"M", int64_t(reuse.outputs.size())},
                          {"outputs", reuse.outputs}};
    const auto actual =
        run_unshared("_FusedElementwise", inputs, attrs_of(program, more));
    REQUIRE_MESSAGE(actual.ok(), actual.status().to_string());
    for (size_t i = 0; i < reuse.outputs.size(); ++i) {
      CAPTURE(i);
      CHECK(identical((*actual)[i], (*values)[size_t(reuse.outputs[i])]));
      const bool reused = std::ranges::count(places, (*actual)[i].raw()) > 0;
      CHECK(reused == (reuse.reused[i] && !is_held));
    }
    for (size_t i = 0; i < held.size(); ++i) CHECK(identical(held[i], from[i]));
  };
  const Tensor x = numbers(DataType::kFloat, {3000}, 1);
  const Tensor y = numbers(DataType::kFloat, {3000}, 2);
  for (const bool is_held : {false, true}) {
    CAPTURE(is_held);
    // Value 2 is there before the last op that reads the inputs.
    check({{2}, {false}}, {x, y}, is_held);
    check({{3}, {true}}, {x, y}, is_held);
    check({{2, 5}, {false, true}}, {x, y}, is_held);
    check({{5, 2}, {true, false}}, {x, y}, is_held);
    check({{4, 3, 2}, {true, true, false}}, {x, y}, is_held);
    // There is no more than one output in each input.
    check({{2, 3, 4, 5}, {false, true, true, false}}, {x, y}, is_held);
    check({{3, 5}, {true, false}}, {x, Tensor::scalar(2.0f)}, is_held);
  }
}

TEST_CASE("a fused op never overwrites an input that comes twice") {
  const Tensor x = numbers(DataType::kFloat, {3000}, 1);
  const Tensor kept = x.clone();
  const Lines program = {"Neg 0", "Mul 2 1"};
  const auto actual =
      run_fused(program, {x, x}, {{"M", int64_t{2}}, {"outputs", Ints{2, 3}}});
  REQUIRE_MESSAGE(actual.ok(), actual.status().to_string());
  const auto values = values_of(program, {kept, kept});
  REQUIRE(values.ok());
  CHECK(identical((*actual)[0], (*values)[2]));
  CHECK(identical((*actual)[1], (*values)[3]));
  CHECK(identical(x, kept));
}

TEST_CASE("a fused op joins outputs along the last dimension") {
  const Lines program = {"Tanh 0", "Mul 2 1", "AddV2 3 0", "Neg 4", "Abs 5"};
  struct Joined {
    Ints outputs, joined;
  };
  const std::vector<Joined> choices = {{{2, 5}, {0, 0}},
                                       {{5, 2, 4}, {0, 0, 0}},
                                       {{2, 3, 4, 5}, {1, 0, 1, 0}},
                                       {{6, 3, 2}, {0, 1, 0}},
                                       {{3, 6}, {1, 0}}};
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                               DataType::kHalf, DataType::kBFloat16})
    for (const Shape& shape :
         {Shape{1}, Shape{48}, Shape{5, 12}, Shape{7, 1}, Shape{3, 2, 100},
          Shape{8, 1000}, Shape{2, 5000}, Shape{0, 6}, Shape{6, 0}})
      // Of this shape, a single element, one that must be broadcast.
      for (const Shape& other :
           {shape, Shape{}, Shape{shape.dim(shape.rank() - 1)}})
        for (const auto& [outputs, joined] : choices) {
          INFO(shape.to_string(), " with ", other.to_string());
          expect_same_outputs(
              program, {numbers(dtype, shape, 1), numbers(dtype, other, 2)},
              outputs, joined);
        }
}

TEST_CASE("a fused op of columns has several outputs, also joined ones") {
  const Lines program = {"Sigmoid 0", "Tanh 1",    "Mul 3 4",
                         "Mul 2 0",   "AddV2 5 6", "Mul 7 7"};
  for (const auto& [shape, width] :
       std::vector<std::pair<Shape, int64_t>>{{{48}, 16},
                                              {{5, 12}, 4},
                                              {{3, 2, 300}, 100},
                                              {{40, 3000}, 1000},
                                              {{0, 6}, 2},
                                              {{7, 3}, 1}}) {
    const Tensor whole = numbers(DataType::kFloat, shape, 1);
    Shape part = shape;
    part.set_dim(part.rank() - 1, width);
    const auto parts =
        run_op("Split", {Tensor::scalar(int32_t(shape.rank() - 1)), whole},
               {{"num_split", int64_t{3}}});
    REQUIRE(parts.ok());
    for (const Shape& other : {part, Shape{width}, Shape{}})
      for (const Ints& joined : {Ints{}, Ints{0, 0, 0}, Ints{1, 0, 1}}) {
        INFO(shape.to_string(), " with ", other.to_string());
        const Ints outputs = {8, 3, 6};
        const Tensor third = numbers(DataType::kFloat, other, 2);
        const auto values =
            values_of(program, {(*parts)[2], (*parts)[0], third});
        REQUIRE(values.ok());
        const Outputs expected = chosen(*values, outputs, joined);
        const auto actual =
            run_fused(program, {whole, whole, third},
                      {{"M", int64_t(expected.size())},
                       {"outputs", outputs},
                       {"joined", joined},
                       {"columns", Ints{2 * width, width, 0, width, 0, 0}}});
        REQUIRE_MESSAGE(actual.ok(), actual.status().to_string());
        for (size_t i = 0; i < expected.size(); ++i)
          CHECK(identical((*actual)[i], expected[i]));
      }
  }
  // An input of which columns are seen is larger than an output.
  std::vector<Tensor> inputs = {numbers(DataType::kFloat, {4, 6}, 1)};
  const void* place = inputs[0].raw();
  const auto actual =
      run_unshared("_FusedElementwise", inputs,
                   attrs_of({"Neg 0"}, {{"columns", Ints{0, 6}}}));
  REQUIRE_MESSAGE(actual.ok(), actual.status().to_string());
  CHECK((*actual)[0].raw() != place);
  // All of a scalar is seen, where no columns are.
  const auto scalar =
      run_fused({"Neg 0"}, {Tensor::scalar(3.0f)}, {{"columns", Ints{0, 0}}});
  expect_close(scalar, Tensor::scalar(-3.0f));
}

TEST_CASE("a fused op refuses outputs that do not exist or come twice") {
  const Tensor x = numbers(DataType::kFloat, {2, 6}, 1);
  const auto expect_refused = [&](int64_t count, const Ints& outputs,
                                  const Ints& joined, std::string_view text) {
    expect_error(
        run_fused({"Neg 0", "Tanh 1"}, {x},
                  {{"M", count}, {"outputs", outputs}, {"joined", joined}}),
        Code::kInvalidArgument, text);
  };
  expect_refused(1, {0}, {},
                 "[_FusedElementwise] node \"op\": output 0 is value 0, which "
                 "is not a result, or is repeated");
  expect_refused(2, {1, 3}, {}, "output 1 is value 3, which is not a result");
  expect_refused(1, {-1}, {}, "output 0 is value -1, which is not a result");
  expect_refused(1, {std::numeric_limits<int64_t>::max()}, {}, "not a result");
  expect_refused(1, {std::numeric_limits<int64_t>::min()}, {}, "not a result");
  expect_refused(2, {1, 1}, {},
                 "output 1 is value 1, which is not a result, or is repeated");
  expect_refused(2, {1}, {}, "1 values for 2 outputs");
  expect_refused(2, {}, {}, "1 values for 2 outputs");
  expect_refused(1, {1, 2}, {}, "value 1 is part of output 1 of 1");
  expect_refused(1, {1, 2}, {0, 1}, "value 1 is part of output 1 of 1");
  expect_refused(2, {1, 2}, {0, -1}, "value 1 is part of output -1 of 2");
  expect_refused(2, {1, 2}, {0, 0}, "2 values for 2 outputs");
  expect_refused(1, {1, 2}, {0}, "joined has 1 elements for 2 values");
  expect_refused(1, {1, 2}, {0, 0, 0}, "joined has 3 elements for 2 values");
  expect_refused(1, {}, {0, 0}, "joined has 2 elements for 1 values");
}

TEST_CASE("a fused op joins neither scalars nor outputs of unlike shapes") {
  const auto expect_refused = [](const Shape& a, const Shape& b,
                                 std::string_view text) {
    INFO(a.to_string(), " and ", b.to_string());
    expect_error(run_fused({"Neg 0", "Tanh 1"},
                           {numbers(DataType::kFloat, a, 1),
                            numbers(DataType::kFloat, b, 2)},
                           {{"outputs", Ints{2, 3}}, {"joined", Ints{0, 0}}}),
                 Code::kInvalidArgument, text);
  };
  expect_refused({}, {},
                 "[_FusedElementwise] scalars cannot be joined into output 0");
  expect_refused({}, {3}, "scalars cannot be joined into output 0");
  expect_refused({3}, {}, "scalars cannot be joined into output 0");
  expect_refused({1}, {}, "scalars cannot be joined into output 0");
  expect_refused({4}, {3}, "[3] cannot be joined with the rest of float[8]");
  expect_refused({2, 3}, {3, 2}, "[3,2] cannot be joined with the rest of");
  expect_refused({2, 3}, {4, 3}, "[4,3] cannot be joined with the rest of");
  expect_refused({2, 3, 4}, {6, 4}, "[6,4] cannot be joined with the rest of");
  expect_refused({0, 4}, {0, 7, 4}, "cannot be joined with the rest of");
  expect_refused({0, 4}, {4}, "cannot be joined with the rest of");
}

TEST_CASE("a fused op refuses columns that do not exist") {
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

TEST_CASE("a fused op refuses a program that is malformed") {
  const Tensor x = Tensor::vector<float>({1, 2});
  const auto expect_refused = [&](const Lines& program, std::string_view text) {
    expect_error(run_fused(program, {x}), Code::kInvalidArgument, text);
  };
  expect_refused({"Neg 1"},
                 "[_FusedElementwise] node \"op\": line 0 of the program, "
                 "\"Neg 1\": \"1\" is not an operand");
  expect_refused({"Neg 0", "Neg x"}, "line 1 of the program, \"Neg x\": \"x\"");
  expect_refused({"Neg -1"}, "\"-1\" is not an operand");
  expect_refused({"Neg  0"}, "\"\" is not an operand");
  expect_refused({"Neg 0 "}, "\"\" is not an operand");
  expect_refused({"Neg 99999999999999999999999"}, "is not an operand");
  expect_refused({"ClipByValue 0 0 0"}, "\"0\" is not an operand");
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
