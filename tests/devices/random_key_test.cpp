#include "devices/random_key.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "tests/devices/random_node.h"

namespace tagflow::devices {
namespace {

const Tensor kOne = Tensor::vector<int32_t>({1});

struct Execution {
  int64_t seed = 0, seed2 = 0;
  std::string name = "op";
  uint64_t session = 0;
  int64_t earlier_runs = 0;
  Tag tag;
};

RandomKey key_of(const Execution& execution) {
  RandomNode node("RandomUniform", {kOne},
                  {{"dtype", DataType::kFloat},
                   {"seed", execution.seed},
                   {"seed2", execution.seed2}},
                  execution.name);
  FixedRuns runs(execution.earlier_runs);
  StepInfo step;
  step.seed = execution.session;
  step.random_runs = &runs;
  Tensor output;
  return random_key(KernelContext(&node.node(), node.inputs(), {&output, 1},
                                  &step, &execution.tag));
}

// All small executions: each field from 0 on, and names of all lengths.
std::vector<Execution> neighbours() {
  std::vector<Execution> all;
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 8; ++j) {
      all.push_back({.seed = i, .seed2 = j, .session = 1});
      all.push_back({.session = uint64_t(i + 2), .earlier_runs = j + 1});
      all.push_back(
          {.name = std::string(size_t(i + 1), 'a'), .earlier_runs = j});
      all.push_back(
          {.session = 1, .tag = {uint64_t(i + 1), uint64_t(j), i * j}});
      all.push_back({.seed = i + 1, .tag = {0, uint64_t(i), j + 1}});
    }
  return all;
}

}  // namespace

TEST_CASE("a random key depends on all that tells executions apart") {
  const Execution base{.session = 5};
  const RandomKey key = key_of(base);
  CHECK(key_of(base) == key);
  Execution other = base;
  other.name = "oq";
  CHECK(key_of(other) != key);
  other = base;
  other.session = 6;
  CHECK(key_of(other) != key);
  other = base;
  other.earlier_runs = 1;
  CHECK(key_of(other) != key);
  other = base;
  other.tag.iteration = 1;
  CHECK(key_of(other) != key);
  other = base;
  other.tag.frame_lo = 1;
  CHECK(key_of(other) != key);
}

TEST_CASE("random keys are equal for nodes of equal nonzero seeds") {
  const Execution base{.seed = 3, .name = "a", .session = 1};
  CHECK(key_of({.seed = 3, .name = "b", .session = 2}) == key_of(base));
  CHECK(key_of({.seed2 = 3, .name = "a", .session = 1}) != key_of(base));
  CHECK(key_of({.seed = 3, .name = "a", .earlier_runs = 1}) != key_of(base));
  Execution later = base;
  later.tag.iteration = 1;
  CHECK(key_of(later) != key_of(base));
}

TEST_CASE("a step without RandomRuns counts as the first one") {
  RandomNode node("RandomUniform", {kOne}, {{"dtype", DataType::kFloat}});
  const StepInfo step;
  const Tag tag;
  Tensor output;
  const KernelContext context(&node.node(), node.inputs(), {&output, 1}, &step,
                              &tag);
  CHECK(random_key(context) == key_of({}));
}

TEST_CASE("random keys of neighbouring executions have nothing in common") {
  const auto all = neighbours();
  std::set<uint64_t> words;
  std::vector<RandomKey> keys;
  for (const Execution& execution : all) {
    keys.push_back(key_of(execution));
    words.insert(keys.back().key);
    words.insert(keys.back().counter);
  }
  CHECK(words.size() == 2 * all.size());
  // Any two words differ in half of their bits: 32 with a deviation of 4.
  double sum = 0, pairs = 0;
  int fewest = 64;
  for (size_t i = 0; i < keys.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const int different = std::popcount(keys[i].key ^ keys[j].key);
      const int crosswise = std::popcount(keys[i].key ^ keys[j].counter);
      fewest = std::min({fewest, different, crosswise});
      sum += different + crosswise;
      pairs += 2;
    }
  CHECK(std::abs(sum / pairs - 32) < 0.1);
  CHECK(fewest >= 6);
}

TEST_CASE("random keys: each bit of a word changes half of a key's bits") {
  double flipped = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const RandomKey key = key_of({.session = uint64_t{1} << bit});
    const RandomKey base = key_of({});
    const int different = std::popcount(key.key ^ base.key) +
                          std::popcount(key.counter ^ base.counter);
    CHECK(different > 30);
    CHECK(different < 98);
    flipped += different;
  }
  CHECK(std::abs(flipped / 64 - 64) < 4);
}

}  // namespace tagflow::devices
