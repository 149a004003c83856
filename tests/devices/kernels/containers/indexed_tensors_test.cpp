#include "devices/kernels/containers/indexed_tensors.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

namespace tagflow::devices {
namespace {

std::map<int64_t, int32_t> values_of(const IndexedTensors& tensors) {
  std::map<int64_t, int32_t> values;
  tensors.for_each([&](int64_t index, const Tensor& tensor) {
    const bool is_new =
        values.emplace(index, tensor.scalar_value<int32_t>()).second;
    CHECK(is_new);
  });
  return values;
}

}  // namespace

TEST_CASE("IndexedTensors has the same values as a std::map") {
  std::mt19937 random(1);
  for (const int64_t limit : {3, 40, 1000000}) {
    CAPTURE(limit);
    IndexedTensors tensors;
    std::map<int64_t, int32_t> expected;
    const auto check = [&](const IndexedTensors& actual) {
      CHECK(actual.size() == int64_t(expected.size()));
      CHECK(values_of(actual) == expected);
    };
    for (int turn = 0; turn < 3000; ++turn) {
      const auto index =
          std::uniform_int_distribution<int64_t>(-limit, limit)(random);
      const auto known = expected.find(index);
      if (random() % 2 == 0) {
        const auto [place, is_new] =
            tensors.try_emplace(index, Tensor::scalar(turn));
        REQUIRE(is_new == (known == expected.end()));
        if (is_new) expected[index] = turn;
        REQUIRE(place->scalar_value<int32_t>() == expected[index]);
        REQUIRE(tensors.find(index) == place);
      } else {
        const Tensor taken = tensors.take(index);
        REQUIRE(taken.valid() == (known != expected.end()));
        if (taken.valid()) {
          REQUIRE(taken.scalar_value<int32_t>() == known->second);
          expected.erase(known);
        }
        REQUIRE(tensors.find(index) == nullptr);
      }
      if (turn % 100 == 0) check(tensors);
    }
    // A copy has tensors of its own places.
    IndexedTensors copy(tensors);
    check(copy);
    const auto before = expected;
    while (!expected.empty()) {
      tensors.take(expected.begin()->first);
      expected.erase(expected.begin());
    }
    check(tensors);
    expected = before;
    check(copy);
    expected[limit + 5] = 7;
    copy.try_emplace(limit + 5, Tensor::scalar(7));
    check(copy);
    CHECK(tensors.size() == 0);
  }
}

TEST_CASE("a tensor stays where it is until it is taken") {
  IndexedTensors tensors;
  std::map<int64_t, const Tensor*> places;
  for (int64_t i = 0; i < 300; ++i)
    places[7 * i] =
        tensors.try_emplace(7 * i, Tensor::scalar(int32_t(i))).first;
  // Others go, the first one and whole pages among them.
  for (int64_t i = 0; i < 300; ++i)
    if (i % 50 != 1) {
      tensors.take(7 * i);
      places.erase(7 * i);
    }
  for (const auto& [index, place] : places) {
    CHECK(tensors.find(index) == place);
    CHECK(place->scalar_value<int32_t>() == index / 7);
  }
  tensors.for_each_last([](int64_t, Tensor& tensor) { tensor.reset(); });
  for (const auto& [index, place] : places) CHECK(!place->valid());
}

}  // namespace tagflow::devices
