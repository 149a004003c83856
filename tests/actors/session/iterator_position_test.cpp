// Positions of iterators as values, and orders that are drawn.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "actors/checkpoint/snapshot.h"
#include "tests/actors/session/pipeline_graph.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

// Ten numbers in an order that is drawn.
struct Drawn : PipelineGraph {
  explicit Drawn(int64_t seed = 0) {
    range("numbers", 10);
    number("buffer", 10);
    number("seed", seed);
    add({body_node("shuffled", "ShuffleDataset",
                   {"numbers", "buffer", "seed", "seed"}, with_spec())});
    iterate("shuffled");
    add({body_node("position", "SerializeIterator", {"it"}),
         body_node("go", "DeserializeIterator", {"it", "position"})});
  }
};

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
  const auto session = Drawn(3).session({});
  CHECK(session->run({}, {}, {"go"}, within_a_minute()).status().code() ==
        Code::kFailedPrecondition);
  initialise(*session);
  const auto first = take(*session, 4);
  // Where it is.
  must(session->run({}, {}, {"go"}, within_a_minute()));
  const auto rest = take(*session, 6);
  std::vector<int64_t> all = first;
  all.insert(all.end(), rest.begin(), rest.end());
  CHECK(all == epoch(*session));
  initialise(*session);
  take(*session, 4);
  // It stays there, however often.
  for (int again = 0; again < 2; ++again)
    must(session->run({}, {}, {"go"}, within_a_minute()));
  CHECK(take(*session, 6) == rest);
  CHECK(next_number(*session).status().code() == Code::kOutOfRange);
  must(session->run({}, {}, {"go"}, within_a_minute()));
  CHECK(next_number(*session).status().code() == Code::kOutOfRange);
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

TEST_CASE("the first iteration has its drawn order when it is restored") {
  const Drawn graph;
  const auto first = graph.session({});
  initialise(*first);
  std::vector<int64_t> numbers = take(*first, 4);
  const Snapshot snapshot = must(must(Snapshots::create(*first))->take());
  const auto second = graph.session({});
  must(must(Snapshots::create(*second))->restore(snapshot));
  initialise(*second);
  const auto rest = take(*second, 6);
  CHECK(rest == take(*first, 6));
  numbers.insert(numbers.end(), rest.begin(), rest.end());
  std::sort(numbers.begin(), numbers.end());
  std::vector<int64_t> all(10);
  std::iota(all.begin(), all.end(), 0);
  CHECK(numbers == all);
}
