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

// Three times four numbers that are drawn.
struct DrawnNumbers : PipelineGraph {
  explicit DrawnNumbers(bool are_new) {
    number("seed", 0);
    number("four", 4);
    number("three", 3);
    add({body_node("dummy", "DummySeedGenerator"),
         are_new
             ? body_node("random", "RandomDatasetV2", {"seed", "seed", "dummy"},
                         with_spec({{"rerandomize_each_iteration", true}}))
             : body_node("random", "RandomDataset", {"seed", "seed"},
                         with_spec()),
         body_node("some", "TakeDataset", {"random", "four"}, with_spec()),
         body_node("all", "RepeatDataset", {"some", "three"}, with_spec())});
    iterate("all");
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

TEST_CASE("numbers that are drawn go on where they are restored") {
  using Numbers = std::vector<int64_t>;
  for (const bool are_new : {false, true}) {
    const DrawnNumbers graph(are_new);
    const auto session = graph.session({});
    initialise(*session);
    const Numbers before = take(*session, 12);
    const Numbers first(before.begin(), before.begin() + 4);
    CHECK((first == Numbers(before.begin() + 4, before.begin() + 8)) !=
          are_new);
    initialise(*session);
    Numbers numbers = take(*session, 6);
    CHECK(Numbers(numbers.begin(), numbers.begin() + 4) != first);
    const Snapshot snapshot = must(must(Snapshots::create(*session))->take());
    must(session->run({}, {}, {"go"}, within_a_minute()));
    const Numbers rest = take(*session, 6);
    const auto other = graph.session({});
    must(must(Snapshots::create(*other))->restore(snapshot));
    initialise(*other);
    CHECK(take(*other, 6) == rest);
    if (!are_new) CHECK(rest[3] == numbers[1]);
    CHECK(next_number(*other).status().code() == Code::kOutOfRange);
  }
}
