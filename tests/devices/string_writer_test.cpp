#include "devices/string_writer.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "devices/tracking_allocator.h"
#include "graph/status_exception.h"
#include "tests/devices/one_step.h"

namespace tagflow::devices {

namespace {

constexpr int64_t kLimit = 1 << 16;

size_t outside_of(const Tensor& strings) {
  size_t bytes = 0;
  for (const std::string& text : strings.flat<std::string>())
    bytes += outside_bytes(text);
  return bytes;
}

Result<Outputs> run_in(Allocator& memory, std::string_view op, Outputs inputs,
                       AttrMap attrs) {
  return run_unshared(op, inputs, std::move(attrs), memory);
}

// The op makes far more text than fits, from one string of 9,000 bytes.
struct Repeating {
  const char* op;
  Outputs inputs;
  AttrMap attrs = {};
};

std::vector<Repeating> repeating() {
  constexpr int64_t kMany = 1000;
  const std::string text(9000, 'x');
  const Tensor one = Tensor::scalar(text), vector = *one.reshaped({1}),
               matrix = *one.reshaped({1, 1}), empty = Tensor::scalar("");
  const Tensor at_zero = [] {
    Tensor indices = Tensor::make(DataType::kInt32, {kMany});
    std::fill_n(indices.mutable_data<int32_t>(), kMany, 0);
    return indices;
  }();
  const Tensor flags = [] {
    Tensor all = Tensor::make(DataType::kBool, {kMany});
    std::fill_n(all.mutable_data<bool>(), kMany, true);
    return all;
  }();
  const Tensor many = Tensor::vector<int32_t>({kMany});
  const Tensor wide_many = Tensor::vector<int64_t>({kMany});
  const Tensor no_rows = *Tensor::allocate(DataType::kInt64, {0, 1});
  const Tensor no_text = *Tensor::allocate(DataType::kString, {0});
  const Tensor texts = *Tensor::allocate(DataType::kString, {kMany});
  return {
      {"Fill", {many, one}},
      {"Tile", {vector, many}},
      {"BroadcastTo", {one, many}},
      {"GatherV2", {vector, at_zero, Tensor::scalar(0)}},
      {"GatherNd", {vector, *at_zero.reshaped({kMany, 1})}},
      {"SelectV2", {flags, one, empty}},
      {"OneHot", {Tensor::scalar(0), Tensor::scalar(int32_t(kMany)), one, one}},
      {"SparseToDense", {no_rows, wide_many, no_text, one}},
      {"SparseFillEmptyRows", {no_rows, no_text, wide_many, one}},
      {"Pack", Outputs(100, one), {{"N", 100}}},
      {"ConcatV2",
       [&] {
         Outputs parts(100, vector);
         parts.push_back(Tensor::scalar(0));
         return parts;
       }(),
       {{"N", 100}}},
      {"StringJoin", {texts, one}, {{"N", 2}}},
      {"StringJoin", Outputs(100, one), {{"N", 100}}},
      {"Add", {texts, one}},
      {"Substr",
       {one, at_zero,
        [&] {
          Tensor lengths = at_zero.clone();
          std::fill_n(lengths.mutable_data<int32_t>(), kMany, 9000);
          return lengths;
        }()}},
      {"StringSplitV2", {vector, Tensor::scalar("x")}},
      {"RegexReplace",
       {one, Tensor::scalar("x"), Tensor::scalar(std::string(100, 'y'))}},
      {"RegexReplace", {one, Tensor::scalar(".*"), Tensor::scalar([] {
                          std::string all;
                          for (int i = 0; i < 100; ++i) all += "\\0";
                          return all;
                        }())}},
      {"AsString", {at_zero}, {{"width", 4096}}},
      {"StringFormat",
       Outputs(100, one),
       {{"template",
         [] {
           std::string all;
           for (int i = 0; i < 100; ++i) all += "%s";
           return all;
         }()},
        {"placeholder", "%s"}}},
      {"StringNGrams",
       {Tensor::of<std::string>({2}, {text, text}),
        Tensor::vector<int64_t>({0, 2})},
       {{"separator", ""},
        {"ngram_widths", std::vector<int64_t>(20, 1)},
        {"left_pad", ""},
        {"right_pad", ""},
        {"pad_width", 0},
        {"preserve_short_sequences", false}}},
  };
}

}  // namespace

TEST_CASE("strings that are written are charged exactly") {
  rc::check([] {
    const auto memory = TrackingAllocator::make({"here", kLimit});
    Tensor strings = *Tensor::allocate(DataType::kString, {4}, *memory);
    auto* const texts = strings.mutable_data<std::string>();
    const StringWriter writer(strings);
    for (int i = 0; i < 30; ++i) {
      std::string& to = texts[*rc::gen::inRange(0, 4)];
      const auto size =
          *rc::gen::element<size_t>(0, 3, 15, 16, 30, 31, 70, 999);
      switch (*rc::gen::inRange(0, 5)) {
        case 0:
          writer.assign(to, std::string(size, 'a'));
          break;
        case 1:
          writer.take(to, std::string(size, 'b'));
          break;
        case 2:
          writer.append(to, std::string(size, 'd'));
          break;
        case 3:
          exchange_strings(strings, 0, strings, 2, 2);
          break;
        default:
          writer.reserve(to, std::max(size, to.size()));
          to.append(to.capacity() - to.size(), 'c');
      }
      RC_ASSERT(strings.buffer()->outside == outside_of(strings));
      RC_ASSERT(memory->ledger().in_use() ==
                int64_t(128 + outside_of(strings)));
    }
    RC_ASSERT(settle_strings(strings).ok());
    RC_ASSERT(strings.buffer()->outside == outside_of(strings));
    strings.reset();
    RC_ASSERT(memory->ledger().in_use() == 0);
  });
}

TEST_CASE("a string beyond the limit is not written, and nothing stays") {
  const auto memory = TrackingAllocator::make({"here", 1000});
  Tensor strings = *Tensor::allocate(DataType::kString, {1}, *memory);
  auto& text = *strings.mutable_data<std::string>();
  const StringWriter writer(strings);
  writer.assign(text, std::string(100, 'a'));
  CHECK(memory->ledger().in_use() == 64 + 101);
  const std::string large(1000, 'b');
  CHECK_THROWS_AS(writer.assign(text, large), StatusException);
  CHECK_THROWS_AS(writer.take(text, std::string(large)), StatusException);
  CHECK_THROWS_AS(writer.reserve(text, large.size()), StatusException);
  CHECK_THROWS_AS(writer.append(text, large), StatusException);
  CHECK(text == std::string(100, 'a'));
  CHECK(memory->ledger().in_use() == 64 + 101);
  // The old string may not fit beside the new one.
  CHECK_THROWS_AS(writer.assign(text, std::string(900, 'b')), StatusException);
  writer.take(text, {});
  CHECK(memory->ledger().in_use() == 64);
  writer.assign(text, std::string(900, 'b'));
  CHECK(memory->stats().peak == 64 + 901);
}

TEST_CASE("ops that repeat a string stop before the limit is exceeded") {
  for (const Repeating& each : repeating()) {
    CAPTURE(each.op);
    const auto memory = TrackingAllocator::make({"here", kLimit});
    const auto outputs = run_in(*memory, each.op, each.inputs, each.attrs);
    CAPTURE(outputs.status().to_string());
    CHECK(outputs.status().code() == Code::kResourceExhausted);
    CHECK(outputs.status().message().find("of here (") != std::string::npos);
    CHECK(memory->stats().peak <= kLimit);
    CHECK(memory->stats().in_use == 0);
  }
}

TEST_CASE("a replacement counts what it writes, and nothing that it might") {
  // 80,000 bytes, which become half as many.
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += "ab";
  const auto memory = TrackingAllocator::make({"here", 120'000});
  const Outputs outputs = *run_in(
      *memory, "RegexReplace",
      {Tensor::scalar(text), Tensor::scalar("(a)b"), Tensor::scalar("\\1")},
      {});
  CHECK(outputs[0].scalar_value<std::string>() == std::string(40'000, 'a'));
}

TEST_CASE("exchanged strings count where they are then") {
  const auto memory = TrackingAllocator::make({"here", 2000});
  Tensor a = *Tensor::allocate(DataType::kString, {2}, *memory);
  Tensor b = *Tensor::allocate(DataType::kString, {1}, *memory);
  StringWriter(a).assign(a.mutable_data<std::string>()[1],
                         std::string(500, 'a'));
  StringWriter(b).assign(*b.mutable_data<std::string>(), std::string(900, 'b'));
  exchange_strings(a, 1, b, 0, 1);
  CHECK(b.scalar_value<std::string>() == std::string(500, 'a'));
  for (const Tensor& each : {a, b})
    CHECK(each.buffer()->outside == outside_of(each));
  a.reset();
  CHECK(memory->ledger().in_use() == 64 + 501);
}

TEST_CASE("the text of outputs counts as long as they live") {
  const auto memory = TrackingAllocator::make({"here", kLimit});
  const Tensor text = Tensor::scalar(std::string(3000, 'x'));
  for (const char* op : {"StringUpper", "EncodeBase64", "DecodeBase64"}) {
    CAPTURE(op);
    Outputs outputs = *run_in(*memory, op, {text}, {});
    CHECK(memory->ledger().in_use() == int64_t(64 + outside_of(outputs[0])));
    CHECK(outside_of(outputs[0]) > 2000);
    outputs.clear();
    CHECK(memory->ledger().in_use() == 0);
  }
  // What nobody else holds moves into the memory of the kernel.
  Outputs outputs = *run_in(*memory, "StringFormat", {text},
                            {{"template", "%s"}, {"placeholder", "%s"}});
  CHECK(outputs[0].buffer()->allocator == memory.get());
  CHECK(memory->ledger().in_use() == int64_t(64 + outside_of(outputs[0])));
}

}  // namespace tagflow::devices
