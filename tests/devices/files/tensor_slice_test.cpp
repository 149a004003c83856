#include "devices/files/tensor_slice.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>

namespace tagflow::checkpoint {
namespace {

std::string key_of(std::string_view name, std::string_view slice) {
  return slice_key(name, TensorSlice::parse(slice).value());
}

std::string error_of(std::string_view text) {
  const auto result = parse_shape_and_slice(text);
  return result.ok() ? "" : result.status().to_string();
}

TEST_CASE("slices and their shapes are parsed") {
  const auto result = parse_shape_and_slice("4 6 0,2:-");
  REQUIRE(result.ok());
  CHECK(result->shape == Shape{4, 6});
  CHECK(result->slice_shape == Shape{2, 6});
  CHECK(result->slice.to_string() == "0,2:-");
  CHECK(result->slice.resolved({4, 6}).to_string() == "0,2:0,6");
  // Of a scalar there is nothing to slice.
  REQUIRE(parse_shape_and_slice("").ok());
  CHECK(parse_shape_and_slice("")->slice_shape == Shape{});
  CHECK(parse_shape_and_slice("0 -")->slice_shape == Shape{0});
}

TEST_CASE("a slice's text is refused if it is malformed") {
  CHECK(error_of("4 6 x") ==
        "InvalidArgument: \"x\" is not a slice: each dimension is \"-\" or "
        "\"start,length\", with start >= 0 and length > 0");
  CHECK(error_of("4 0,0") != "");
  CHECK(error_of("4 -1,2") != "");
  CHECK(error_of("4 1,2,3") != "");
  CHECK(error_of("4 1,") != "");
  CHECK(error_of("4 :-") != "");
  CHECK(error_of("4  0,2") ==
        "InvalidArgument: \"4  0,2\" is not a shape and slice, such as "
        "\"4 6 0,2:-\": a dimension is not a number >= 0");
  CHECK(error_of("-4 -") != "");
  CHECK(error_of("4 6 3,2:-") ==
        "InvalidArgument: slice 3,2:- is not within a tensor of shape [4,6]");
  CHECK(error_of("4 6 -") ==
        "InvalidArgument: slice - has 1 dimensions, but the tensor is [4,6]");
  CHECK(error_of("4 9223372036854775807,9223372036854775807") != "");
  CHECK(error_of("4 99999999999999999999,1") != "");
  CHECK(error_of("9223372036854775807 9223372036854775807 -:-") != "");
}

// What TensorFlow writes.
TEST_CASE("keys of slices are TensorFlow's") {
  using std::string_literals::operator""s;
  CHECK(key_of("w", "0,2:0,6") == "\0w\0\1\1\2\x80\x82\x80\x86"s);
  CHECK(key_of("w", "-:2,3") == "\0w\0\1\1\2\x80\x7f\x82\x83"s);
  CHECK(key_of("w", "70000,100") == "\0w\0\1\1\1\xe1\x11p\xc0"s + "d");
  CHECK(key_of("w", "64,36") == "\0w\0\1\1\1\xc0@\xa4"s);
  CHECK(key_of("w", "8192,3") == "\0w\0\1\1\1\xe0\x20\0\x83"s);
  CHECK(key_of("w", "8589934592,3") == "\0w\0\1\1\1\xfa\0\0\0\0\x83"s);
  CHECK(key_of("b\0z\xff"s, "100,200") ==
        "\0b\0\xffz\xff\0\0\1\1\1\xc0\x64\xc0\xc8"s);
  CHECK(key_of("w", "9223372036854775807,1") ==
        "\0w\0\1\1\1\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff\x81"s);
}

TEST_CASE("keys of slices sort as the numbers in them do") {
  CHECK(rc::check([] {
    const auto number = [] {
      return *rc::gen::arbitrary<int64_t>() >> *rc::gen::inRange(0, 63);
    };
    const int64_t a = number(), b = number();
    const std::string key_a = slice_key("n", TensorSlice({{a, 1}}));
    const std::string key_b = slice_key("n", TensorSlice({{b, 1}}));
    RC_ASSERT((a < b) == (key_a < key_b));
    RC_ASSERT((a == b) == (key_a == key_b));
  }));
}

TEST_CASE("slices intersect if every dimension does") {
  const auto slice = [](std::string_view text) {
    return TensorSlice::parse(text).value();
  };
  CHECK(slice("0,4:2,3").intersection(slice("2,5:0,9"))->to_string() ==
        "2,2:2,3");
  CHECK(!slice("0,4:2,3").intersection(slice("4,5:0,9")));
  CHECK(TensorSlice().intersection(TensorSlice()).has_value());
}

TEST_CASE("slices are disjoint if no two of them intersect") {
  CHECK(rc::check([] {
    const int rank = *rc::gen::inRange(0, 4);
    const int count = *rc::gen::inRange(0, 6);
    std::vector<TensorSlice> slices;
    for (int i = 0; i < count; ++i) {
      std::vector<Extent> extents;
      for (int d = 0; d < rank; ++d)
        extents.push_back({*rc::gen::inRange<int64_t>(0, 9),
                           *rc::gen::inRange<int64_t>(0, 4)});
      slices.emplace_back(extents);
    }
    bool is_disjoint = true;
    for (size_t i = 0; i < slices.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        is_disjoint &= !slices[i].intersection(slices[k]);
    RC_ASSERT(check_disjoint(slices).ok() == is_disjoint);
  }));
}

TEST_CASE("many slices are soon told apart, or refused") {
  constexpr int64_t kMany = 10'000;
  constexpr size_t kRank = 254;
  const auto made =
      [&](const std::function<void(int64_t, std::vector<Extent>&)>& place) {
        std::vector<TensorSlice> slices;
        for (int64_t i = 0; i < kMany; ++i) {
          std::vector<Extent> extents(kRank, Extent{0, 1});
          place(i, extents);
          slices.emplace_back(std::move(extents));
        }
        return check_disjoint(slices);
      };
  CHECK(made([](int64_t i, std::vector<Extent>& extents) {
          extents.back() = {i, 1};
        }).ok());
  // Half of them are alike in each of the last dimensions.
  CHECK(made([](int64_t i, std::vector<Extent>& extents) {
          for (size_t d = 0; d < 14; ++d)
            extents[kRank - 1 - d] = {(i >> d) & 1, 1};
        }).code() == Code::kResourceExhausted);
}

TEST_CASE("a slice copy copies nothing if an extent is empty") {
  const Shape whole = {0, int64_t{1} << 40, int64_t{1} << 40};
  for (const Shape& shape : {whole, Shape({int64_t{1} << 40, 0, 9})}) {
    const TensorSlice from = whole_slice(shape);
    const TensorSlice to =
        TensorSlice({{}, {0, shape.dim(1) / 2}, {3, 5}}).resolved(shape);
    const SliceCopy copy(to, from, to);
    copy.for_each_run([](const SliceRun&) { FAIL("there is a run"); });
    REQUIRE(copy.single_run());
    CHECK(copy.single_run()->from == 0);
    CHECK(copy.single_run()->to == 0);
    CHECK(copy.single_run()->count == 0);
  }
}

TEST_CASE("a slice copy moves just the elements that two slices share") {
  CHECK(rc::check([] {
    const int rank = *rc::gen::inRange(0, 5);
    const auto box = [&] {
      std::vector<Extent> extents;
      for (int d = 0; d < rank; ++d) {
        const auto start = *rc::gen::inRange<int64_t>(0, 3);
        extents.push_back({start, *rc::gen::inRange<int64_t>(1, 6 - start)});
      }
      return TensorSlice(extents);
    };
    const TensorSlice from = box(), to = box();
    const auto part = from.intersection(to);
    RC_PRE(part.has_value());
    // Where an element of a slice is: its place in the whole tensor.
    const auto places = [&](const TensorSlice& slice) {
      std::vector<int64_t> result = {0};
      for (const Extent& extent : slice.extents()) {
        std::vector<int64_t> next;
        for (const int64_t place : result)
          for (int64_t i = 0; i < extent.length; ++i)
            next.push_back(10 * place + extent.start + i);
        result = std::move(next);
      }
      return result;
    };
    const auto source = places(from), wanted = places(to);
    std::vector<int64_t> result(wanted.size(), -1);
    const SliceCopy copy(*part, from, to);
    int runs = 0;
    copy.for_each_run([&](const SliceRun& run) {
      ++runs;
      for (int64_t i = 0; i < run.count; ++i)
        result[size_t(run.to + i)] = source[size_t(run.from + i)];
    });
    RC_ASSERT(copy.single_run().has_value() == (runs == 1));
    const auto common = places(*part);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const bool is_common =
          std::find(common.begin(), common.end(), wanted[i]) != common.end();
      RC_ASSERT(result[i] == (is_common ? wanted[i] : -1));
    }
  }));
}

}  // namespace
}  // namespace tagflow::checkpoint
