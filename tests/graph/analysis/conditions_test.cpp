#include "graph/analysis/conditions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

using Set = Conditions::Set;

// Predicates that take one of `ports` each.
struct Predicates {
  explicit Predicates(std::vector<int> ports) : ports_of(std::move(ports)) {
    for (size_t i = 0; i < ports_of.size(); ++i)
      nodes.push_back(
          constant(graph, "p" + std::to_string(i), Tensor::scalar(0)));
  }
  Set takes(size_t predicate, int port) {
    return conditions.only(
        {{nodes[predicate], 0}, port, ports_of[predicate], 0});
  }
  // Calls function(what each takes) for all that they can take.
  template <class Function>
  void for_each_case(const Function& function) const {
    std::vector<int> taken(ports_of.size());
    for (size_t i = 0; i < taken.size();) {
      if (i == 0) function(taken);
      if (++taken[i] < ports_of[i])
        i = 0;
      else
        taken[i++] = 0;
    }
  }
  bool holds(Set set, const std::vector<int>& taken) const {
    for (const Conditions::Id id : conditions.of(set)) {
      const Condition& condition = conditions.condition(id);
      const auto at = std::ranges::find(nodes, condition.source.node);
      if (taken[size_t(at - nodes.begin())] != condition.port) return false;
    }
    return true;
  }

  Graph graph;
  std::vector<int> ports_of;
  std::vector<Node*> nodes;
  Conditions conditions;
};

}  // namespace

TEST_CASE("sets of conditions are joined, shared and taken away") {
  Predicates p({2, 2, 2});
  Conditions& c = p.conditions;
  const Set ab = c.both(p.takes(0, 1), p.takes(1, 0));
  const Set bc = c.both(p.takes(2, 1), p.takes(1, 0));
  CHECK(ab == c.both(p.takes(1, 0), p.takes(0, 1)));
  CHECK(c.both(ab, Conditions::kNone) == ab);
  CHECK(c.includes(ab, p.takes(0, 1)));
  CHECK_FALSE(c.includes(ab, p.takes(0, 0)));
  CHECK(c.common(std::vector{ab, bc, ab}) == p.takes(1, 0));
  CHECK(c.without(ab, bc) == p.takes(0, 1));
  CHECK(c.without(ab, ab) == Conditions::kNone);
  // Of a thing of which no more is known, there is no other case.
  const Set live = c.only({{p.nodes[0], 0}, 0, 0, 0});
  CHECK(c.is_any_certain(std::vector{live}));
  CHECK_FALSE(c.is_any_certain(std::vector{live, p.takes(0, 1)}));
}

TEST_CASE("conditions: one of random sets is certain only if they cover all") {
  std::mt19937 random(7);
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  int certain = 0;
  for (int round = 0; round < 3'000; ++round) {
    CAPTURE(round);
    Predicates p({2, 3, 2});
    Conditions& c = p.conditions;
    // Starts as one set for all cases, and is split.
    std::vector<Set> sets = {Conditions::kNone};
    for (int split = below(4); split > 0; --split) {
      const size_t predicate = size_t(below(3));
      const Set whole = sets.front();
      sets.erase(sets.begin());
      for (int port = 0; port < p.ports_of[predicate]; ++port)
        sets.push_back(c.both(whole, p.takes(predicate, port)));
    }
    if (sets.size() > 1 && below(2) == 0) sets.pop_back();
    bool always = true;
    const Set common = c.common(sets);
    p.for_each_case([&](const std::vector<int>& taken) {
      if (!p.holds(common, taken)) return;
      always &= std::ranges::any_of(
          sets, [&](Set set) { return p.holds(set, taken); });
    });
    const bool found = c.is_any_certain(sets);
    if (found) CHECK(always);
    certain += found;
  }
  CHECK(certain > 1'000);
}
