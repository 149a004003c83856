#include "apps/shared/training/shuffle.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace tagflow::training {
namespace {

ShuffledBatches make_batches(int64_t rows, int64_t batch, uint64_t seed) {
  auto batches = ShuffledBatches::create(rows, batch, seed);
  REQUIRE(batches.ok());
  return std::move(batches).value();
}

std::vector<int64_t> rows_of(ShuffledBatches& batches, int64_t first,
                             int64_t last) {
  std::vector<int64_t> rows;
  for (int64_t step = first; step <= last; ++step)
    for (const int64_t row : batches.at(step)) rows.push_back(row);
  return rows;
}

TEST_CASE("shuffling: an epoch has every row once, in an order of its own") {
  ShuffledBatches batches = make_batches(100, 10, 7);
  REQUIRE(batches.steps_per_epoch() == 10);
  std::vector<int64_t> first = rows_of(batches, 1, 10);
  const std::vector<int64_t> second = rows_of(batches, 11, 20);
  CHECK(first != second);
  CHECK(std::is_permutation(first.begin(), first.end(), second.begin()));
  std::sort(first.begin(), first.end());
  for (int64_t i = 0; i < 100; ++i) CHECK(first[size_t(i)] == i);
}

TEST_CASE("shuffling: a step's rows do not depend on earlier calls") {
  ShuffledBatches all = make_batches(50, 8, 3), late = make_batches(50, 8, 3);
  const std::vector<int64_t> rows = rows_of(all, 1, 30);
  CHECK(rows_of(late, 17, 30) ==
        std::vector<int64_t>(rows.begin() + ptrdiff_t{16} * 8, rows.end()));
  ShuffledBatches other = make_batches(50, 8, 4);
  CHECK(rows_of(other, 1, 30) != rows);
}

TEST_CASE("shuffling: rows that fill no batch are left out, others each time") {
  ShuffledBatches batches = make_batches(7, 3, 1);
  CHECK(batches.steps_per_epoch() == 2);
  std::vector<int64_t> seen = rows_of(batches, 1, 40);
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  CHECK(seen.size() == 7);
}

TEST_CASE("shuffling: too few rows for a batch are refused") {
  CHECK(ShuffledBatches::create(3, 4, 0).status().message() ==
        "[batches] 3 rows do not fill a batch of 4");
  CHECK_FALSE(ShuffledBatches::create(3, 0, 0).ok());
  CHECK_FALSE(ShuffledBatches::create(0, 1, 0).ok());
}

}  // namespace
}  // namespace tagflow::training
