#include "devices/kernels/product/outer_products.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "graph/graph.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/kernels/random/floats.h"
#include "tests/devices/parts_parallel.h"

namespace tagflow::devices {
namespace {

void add(std::span<const RowPairs> pairs, int64_t m, int64_t n, Floats& sum,
         Parallel* parallel) {
  graph::Graph graph;
  const auto node =
      graph.add("x", "Placeholder", {}, {{"dtype", DataType::kFloat}});
  REQUIRE(node.ok());
  StepInfo step;
  step.parallel = parallel;
  const Tag tag;
  const KernelContext context(*node, {}, {}, &step, &tag);
  const Status status = add_outer_products(context, pairs, m, n, sum.data());
  REQUIRE_MESSAGE(status.ok(), status.to_string());
}

}  // namespace

TEST_CASE("outer products are added, the same however they are shared") {
  std::mt19937 random(1);
  for (int turn = 0; turn < 200; ++turn) {
    const int64_t m = 1 + random_below(random, turn % 2 == 0 ? 30 : 300);
    const int64_t n = 1 + random_below(random, turn % 3 == 0 ? 30 : 300);
    std::vector<Floats> factors;
    std::vector<RowPairs> pairs;
    int64_t all_rows = 0;
    for (int64_t i = 0, count = 1 + random_below(random, 3); i < count; ++i) {
      const int64_t rows = 1 + random_below(random, 20);
      all_rows += rows;
      factors.push_back(random_floats(random, rows * m));
      const float* a = factors.back().data();
      factors.push_back(random_floats(random, rows * n));
      pairs.push_back({a, factors.back().data(), rows});
    }
    INFO(m, ", ", n, ", ", all_rows);
    const Floats before = random_floats(random, m * n);
    Floats alone = before, shared = before;
    add(pairs, m, n, alone, nullptr);
    PartsParallel backwards;
    add(pairs, m, n, shared, &backwards);
    REQUIRE(alone == shared);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = before[size_t(i * n + j)];
        for (const RowPairs& pair : pairs)
          for (int64_t row = 0; row < pair.rows; ++row)
            sum += double(pair.a[row * m + i]) * pair.b[row * n + j];
        REQUIRE(std::abs(alone[size_t(i * n + j)] - sum) < 2e-5);
      }
  }
}

}  // namespace tagflow::devices
