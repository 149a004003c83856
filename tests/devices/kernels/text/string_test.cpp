#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>

#include "devices/kernels/text/pieces.h"
#include "graph/status_exception.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/state/calls.h"

namespace tagflow::devices {

namespace {

using Strings = std::initializer_list<std::string>;

Tensor strings(Strings values) { return Tensor::vector<std::string>(values); }

}  // namespace

TEST_CASE("strings join element by element, scalars with each") {
  expect_close(run_op("StringJoin", {strings({"a", "b"}), Tensor::scalar("-"),
                                     strings({"c", "d"})}),
               strings({"a-c", "b-d"}));
  expect_close(run_op("StringJoin", {Tensor::scalar("x"), Tensor::scalar("y")},
                      {{"separator", ", "}}),
               Tensor::scalar("x, y"));
  expect_error(run_op("StringJoin", {strings({"a"}), strings({"b", "c"})}),
               Code::kInvalidArgument, "do not join");
}

TEST_CASE("ReduceJoin joins axes in the order given") {
  const Tensor matrix = Tensor::of<std::string>({2, 2}, {"a", "b", "c", "d"});
  auto join = [&](std::initializer_list<int32_t> axes, AttrMap attrs = {}) {
    return run_op("ReduceJoin", {matrix, Tensor::vector<int32_t>(axes)},
                  std::move(attrs));
  };
  expect_close(join({0}), strings({"ac", "bd"}));
  expect_close(join({-1}, {{"separator", "."}}), strings({"a.b", "c.d"}));
  expect_close(join({0, 1}), Tensor::scalar("acbd"));
  expect_close(join({1, 0}), Tensor::scalar("abcd"));
  expect_close(join({0}, {{"keep_dims", true}}),
               Tensor::of<std::string>({1, 2}, {"ac", "bd"}));
  expect_error(join({2}), Code::kOutOfRange, "axis 2 is outside [-2, 2)");
  expect_error(join({-3}), Code::kOutOfRange, "axis -3 is outside [-2, 2)");
  expect_error(join({0, -2}), Code::kInvalidArgument, "twice");
  constexpr int64_t kMany = int64_t{1} << 32;
  expect_error(
      run_op("ReduceJoin", {Tensor::make(DataType::kString, {kMany, 0, kMany}),
                            Tensor::vector<int32_t>({1})}),
      Code::kInvalidArgument,
      "[shape] the number of elements of [4294967296,4294967296] overflows");
}

// Results of TensorFlow 2.21.
TEST_CASE("ReduceJoin takes the first of its axes as the innermost") {
  std::vector<std::string> letters;
  for (char c = 'a'; c <= 'l'; ++c) letters.emplace_back(1, c);
  const Tensor cube = Tensor::of<std::string>({2, 3, 2}, letters);
  const std::vector<std::pair<Tensor, Tensor>> cases = {
      {Tensor::vector<int32_t>({0, 1}), strings({"agciek", "bhdjfl"})},
      {Tensor::vector<int32_t>({1, 0}), strings({"acegik", "bdfhjl"})},
      {Tensor::vector<int32_t>({0, 2}), strings({"agbh", "cidj", "ekfl"})},
      {Tensor::vector<int32_t>({2, 0}), strings({"abgh", "cdij", "efkl"})},
      {Tensor::vector<int32_t>({-2, -1}), strings({"acebdf", "gikhjl"})},
      {Tensor::vector<int32_t>({0, 1, 2}), Tensor::scalar("agciekbhdjfl")},
      {Tensor::vector<int32_t>({1, 2, 0}), Tensor::scalar("acebdfgikhjl")},
      {Tensor::vector<int32_t>({2, 1, 0}), Tensor::scalar("abcdefghijkl")},
  };
  for (const auto& [axes, joined] : cases)
    expect_close(run_op("ReduceJoin", {cube, axes}), joined);
}

TEST_CASE("StringLength counts bytes or characters") {
  const Tensor input = strings({"", "abc", "\xc3\xa4\xe2\x82\xac"});
  expect_close(run_op("StringLength", {input}),
               Tensor::vector<int32_t>({0, 3, 5}));
  expect_close(run_op("StringLength", {input}, {{"unit", "UTF8_CHAR"}}),
               Tensor::vector<int32_t>({0, 3, 2}));
}

TEST_CASE("substrings are cut at the end, and refused outside") {
  const Tensor input = strings({"hello", "world"});
  auto substr = [&](int32_t pos, int32_t len) {
    return run_op("Substr", {input, Tensor::scalar(pos), Tensor::scalar(len)});
  };
  expect_close(substr(1, 3), strings({"ell", "orl"}));
  expect_close(substr(-2, 9), strings({"lo", "ld"}));
  expect_close(substr(5, 1), strings({"", ""}));
  expect_close(substr(1, -1), strings({"ello", "orld"}));
  expect_close(substr(-2, -7), strings({"lo", "ld"}));
  expect_error(substr(6, 1), Code::kInvalidArgument, "outside");
  expect_error(substr(-6, 1), Code::kInvalidArgument, "outside");
  expect_close(
      run_op("Substr",
             {strings({"\xc3\xa4x"}), Tensor::scalar(1), Tensor::scalar(1)},
             {{"unit", "UTF8_CHAR"}}),
      strings({"x"}));
  expect_close(
      run_op("Substr", {strings({"ax"}), Tensor::scalar(1), Tensor::scalar(-1)},
             {{"unit", "UTF8_CHAR"}}),
      strings({""}));
  // From the end, none of them is outside.
  expect_error(run_op("Substr",
                      {strings({"ax"}), Tensor::scalar(-1), Tensor::scalar(-1)},
                      {{"unit", "UTF8_CHAR"}}),
               Code::kInvalidArgument, "outside");
  // One string, several positions.
  expect_close(
      run_op("Substr", {Tensor::scalar("abc"), Tensor::vector<int64_t>({0, 1}),
                        Tensor::vector<int64_t>({1, 2})}),
      strings({"a", "bc"}));
}

TEST_CASE("StringUpper, StringLower and StringStrip change ASCII text") {
  expect_close(run_op("StringUpper", {strings({"aZ\xc3\xa4"})}),
               strings({"AZ\xc3\xa4"}));
  expect_close(run_op("StringLower", {strings({"aZ"})}), strings({"az"}));
  expect_close(run_op("StringStrip", {strings({" \ta b\n", "  "})}),
               strings({"a b", ""}));
}

// Results of TensorFlow 2.21, but for the zero, at which it stops.
TEST_CASE("StringLower and StringUpper follow Unicode for UTF-8 strings") {
  const AttrMap utf8{{"encoding", "utf-8"}};
  expect_close(run_op("StringLower",
                      {strings({"\u0391\u03a3 A", "\u0130", "A\xff\xe2\x82",
                                "\U00010400", std::string("A\0\u00c4", 4)})},
                      utf8),
               strings({"\u03b1\u03c2 a", "i\u0307", "a\ufffd\ufffd",
                        "\U00010428", std::string("a\0\u00e4", 4)}));
  expect_close(
      run_op("StringUpper",
             {strings({"stra\u00dfe", "\u0149", "\ufb01", "\u03c2", "plain"})},
             utf8),
      strings({"STRASSE", "\u02bcN", "FI", "\u03a3", "PLAIN"}));
  expect_error(run_op("StringLower", {strings({"a"})}, {{"encoding", "latin"}}),
               Code::kInvalidArgument, "encoding must be");
}

TEST_CASE("strings split into a sparse matrix") {
  const auto outputs = run_op(
      "StringSplitV2", {strings({"a,b", "", "c,,d"}), Tensor::scalar(",")});
  expect_close(outputs, Tensor::of<int64_t>(
                            {6, 2}, {0, 0, 0, 1, 1, 0, 2, 0, 2, 1, 2, 2}));
  expect_close((*outputs)[1], strings({"a", "b", "", "c", "", "d"}));
  expect_close((*outputs)[2], Tensor::vector<int64_t>({3, 3}));
  const auto words =
      run_op("StringSplitV2", {strings({"  a  b c "}), Tensor::scalar("")},
             {{"maxsplit", 1}});
  REQUIRE(words.ok());
  expect_close((*words)[1], strings({"a", "b c "}));
  const auto any =
      run_op("StringSplit", {strings({"a-b+", "c"}), Tensor::scalar("+-")});
  REQUIRE(any.ok());
  expect_close((*any)[1], strings({"a", "b", "c"}));
}

TEST_CASE("a long text splits at separators on the borders of its pieces") {
  const int64_t piece = int64_t(kPieceBytes);
  for (const int64_t size : {1, 3, 1000}) {
    std::string text(size_t(3 * piece + 10), 'x');
    std::vector<std::string> parts;
    size_t from = 0;
    for (const int64_t at : {piece - 2 * size - 1, piece - size / 2, 2 * piece,
                             3 * piece - size}) {
      CAPTURE(at);
      std::ranges::fill_n(text.begin() + at, size, '|');
      parts.push_back(text.substr(from, size_t(at) - from));
      from = size_t(at + size);
    }
    parts.push_back(text.substr(from));
    const auto split = run_op("StringSplitV2",
                              {Tensor::vector<std::string>({text}),
                               Tensor::scalar(std::string(size_t(size), '|'))});
    REQUIRE(split.ok());
    expect_close((*split)[1],
                 Tensor::of<std::string>({int64_t(parts.size())}, parts));
  }
  // A search that began again at each position would not end.
  const auto none =
      run_op("StringSplitV2",
             {Tensor::vector<std::string>({std::string(1 << 23, 'a')}),
              Tensor::scalar(std::string(1 << 21, 'a') + 'b')});
  REQUIRE(none.ok());
  CHECK((*none)[1].num_elements() == 1);
}

TEST_CASE("a loop over a long text ends when its step is cancelled") {
  graph::Graph graph;
  const graph::Node* node = graph.add("op", "NoOp", {}, {}).value();
  std::atomic<bool> cancelled = false;
  StepInfo step;
  step.cancelled = &cancelled;
  const Tag tag;
  const KernelContext context(node, {}, {}, &step, &tag);
  const std::string text(4 * kPieceBytes, 'x');
  size_t seen = 0;
  CHECK_THROWS_AS(for_pieces(context, text,
                             [&](std::string_view piece) {
                               seen += piece.size();
                               cancelled = true;
                             }),
                  StatusException);
  CHECK(seen == kPieceBytes);
  CHECK_THROWS_AS(find_text(context, text, "y", 0), StatusException);
  CHECK_THROWS_AS(stripped(context, text), StatusException);
  cancelled = false;
  seen = 0;
  CHECK_THROWS_AS(find_byte(context, text, 1,
                            [&](char) {
                              cancelled = true;
                              ++seen;
                              return false;
                            }),
                  StatusException);
  CHECK(seen == kPieceBytes);
  cancelled = false;
  CHECK(find_byte(context, text, 1, [](char) { return false; }) == text.size());
}

// The calling thread, which nobody could stop, does not run such a kernel.
TEST_CASE("an op that handles much text is expensive, with few strings, too") {
  struct Case {
    const char* op;
    std::vector<Tensor> others = {};
    AttrMap attrs = {};
  };
  const Tensor zero = Tensor::scalar(0);
  for (const Case& of : std::vector<Case>{
           {"StringJoin", {}, {{"N", 1}}},
           {"ReduceJoin", {zero}},
           {"StringUpper"},
           {"StringLength"},
           {"EncodeBase64"},
           {"DecodeBase64"},
           {"DecodeRaw", {}, {{"out_type", DataType::kUInt8}}},
           {"StringToNumber"},
           {"StringSplitV2", {Tensor::scalar(",")}},
           {"Substr", {zero, zero}},
           {"Tile", {Tensor::vector<int32_t>({1})}},
           {"StringToHashBucketStrong",
            {},
            {{"num_buckets", 7}, {"key", std::vector<int64_t>{1, 2}}}}}) {
    CAPTURE(of.op);
    const auto cost = [&](size_t bytes) {
      std::vector<Tensor> inputs = {
          Tensor::vector<std::string>({"", std::string(bytes, 'x')})};
      inputs.insert(inputs.end(), of.others.begin(), of.others.end());
      std::vector<DataType> types;
      for (const Tensor& input : inputs) types.push_back(input.dtype());
      const TestedOp op(of.op, types, of.attrs);
      CHECK(op.kernel().may_be_expensive());
      const StepInfo step;
      const Tag tag;
      return op.kernel().cost(
          KernelContext(&op.node(), inputs, {}, &step, &tag));
    };
    CHECK(cost(10) < Kernel::kHeavyNanoseconds);
    CHECK(cost(1 << 20) > Kernel::kHeavyNanoseconds);
    CHECK(cost(1 << 24) > Kernel::kMostFoldedNanoseconds);
  }
}

// Results of TensorFlow 2.21.
TEST_CASE("StringSplitV2 splits at most maxsplit times") {
  const auto parts = [](const char* text, const char* separator, int64_t most) {
    return run_op("StringSplitV2", {strings({text}), Tensor::scalar(separator)},
                  {{"maxsplit", most}})
        .value()[1];
  };
  expect_close(parts(" a b  c ", "", 0), strings({" a b  c "}));
  expect_close(parts(" a b  c ", "", 1), strings({"a", "b  c "}));
  expect_close(parts(" a b  c ", "", 2), strings({"a", "b", "c "}));
  expect_close(parts(" a b  c ", "", 3), strings({"a", "b", "c", ""}));
  expect_close(parts(" a b  c ", "", 4), strings({"a", "b", "c"}));
  expect_close(parts("a", "", 1), strings({"a", ""}));
  expect_close(parts("", "", 0), strings({""}));
  expect_close(parts("", "", 1), strings({}));
  expect_close(parts(" a b", " ", 0), strings({" a b"}));
  expect_close(parts(" a b", " ", 1), strings({"", "a b"}));
  const auto at_any = [](const char* text, const char* characters) {
    return run_op("StringSplit", {strings({text}), Tensor::scalar(characters)},
                  {{"skip_empty", false}})
        .value()[1];
  };
  expect_close(at_any("", " "), strings({}));
  expect_close(at_any(" ", " "), strings({"", ""}));
  expect_close(at_any("x y", " y"), strings({"x", "", ""}));
}

}  // namespace tagflow::devices
