// Positions of iterators as values, and orders that are drawn.
#include <doctest/doctest.h>

#include <algorithm>

#include "actors/checkpoint/snapshot.h"
#include "tests/actors/session/pipeline_graph.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

// Ten numbers in an order that is drawn.
struct Drawn : PipelineGraph {
  explicit Drawn(int64_t seed = 0, bool has_generator = false) {
    range("numbers", 10);
    number("buffer", 10);
    number("seed", seed);
    if (has_generator)
      add({body_const("yes", Tensor::scalar(true)),
           body_node("seeds", "AnonymousSeedGenerator",
                     {"seed", "seed", "yes"}),
           body_node("shuffled", "ShuffleDatasetV3",
                     {"numbers", "buffer", "seed", "seed", "seeds"},
                     with_spec())});
    else
      add({body_node("shuffled", "ShuffleDataset",
                     {"numbers", "buffer", "seed", "seed"}, with_spec())});
    iterate("shuffled");
    add({body_node("position", "SerializeIterator", {"it"}),
         body_node("go", "DeserializeIterator", {"it", "position"})});
  }
};

const std::vector<int64_t> kAll{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

std::vector<int64_t> take(Session& session, int count) {
  std::vector<int64_t> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(must(next_number(session)));
  return numbers;
}

std::vector<int64_t> epoch(Session& session) {
  initialise(session);
  return take(session, 10);
}

SessionOptions with_seed(uint64_t seed) {
  SessionOptions options;
  options.seed = seed;
  return options;
}

}  // namespace

TEST_CASE("an iterator goes to a position that it had") {
  for (const auto& [seed, has_generator] :
       {std::pair(3, false), {0, false}, {3, true}, {0, true}}) {
    const auto session = Drawn(seed, has_generator).session({});
    const auto go = [&] {
      return session->run({}, {}, {"go"}, within_a_minute()).status();
    };
    CHECK(go().code() == Code::kFailedPrecondition);
    // Whatever the number of the iteration.
    for (int iteration = 0; iteration < 2; ++iteration) {
      initialise(*session);
      auto all = take(*session, 4);
      // Where it is, however often.
      CHECK(go().ok());
      CHECK(go().ok());
      const auto rest = take(*session, 6);
      all.insert(all.end(), rest.begin(), rest.end());
      CHECK(next_number(*session).status().code() == Code::kOutOfRange);
      CHECK(go().ok());
      CHECK(next_number(*session).status().code() == Code::kOutOfRange);
      if (seed != 0) CHECK(all == epoch(*session));
      std::sort(all.begin(), all.end());
      CHECK(all == kAll);
    }
  }
}

TEST_CASE("a drawn order follows from the session's seed and the iteration") {
  const Drawn graph;
  const auto a = graph.session(with_seed(1)), b = graph.session(with_seed(1)),
             c = graph.session(with_seed(2));
  const auto first = epoch(*a), second = epoch(*a);
  CHECK(first != second);
  CHECK(epoch(*b) == first);
  CHECK(epoch(*b) == second);
  CHECK(epoch(*c) != first);
  // Without a seed, sessions draw one.
  const auto d = graph.session({}), e = graph.session({});
  CHECK(epoch(*d) != epoch(*e));
}

TEST_CASE("an iteration has its drawn order when it is restored") {
  for (const bool has_generator : {false, true}) {
    const Drawn graph(0, has_generator);
    const auto first = graph.session({});
    const auto before = epoch(*first);
    initialise(*first);
    std::vector<int64_t> numbers = take(*first, 4);
    const Snapshot snapshot = must(must(Snapshots::create(*first))->take());
    const auto second = graph.session({});
    must(must(Snapshots::create(*second))->restore(snapshot));
    initialise(*second);
    const auto rest = take(*second, 6);
    CHECK(rest == take(*first, 6));
    numbers.insert(numbers.end(), rest.begin(), rest.end());
    // The next one is another.
    const auto after = epoch(*second);
    CHECK(after == epoch(*first));
    CHECK(after != numbers);
    CHECK(after != before);
    std::sort(numbers.begin(), numbers.end());
    CHECK(numbers == kAll);
  }
}
