// Sets of conditions under which something is live.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// One thing that decides: a predicate takes the port `port` out of `ports`; or,
// where `ports` is 0, the source is live, of which no more is known.
struct Condition {
  Endpoint source;
  int port = 0;
  int ports = 0;
  int depth = 0;  // of the frame that the source has its tokens in

  bool operator==(const Condition&) const = default;
};

// Sets of conditions that all have to hold. Equal sets have equal numbers, so
// that it is quick to compare two, and to join two that were joined before.
//
// A set with a condition on what a predicate takes also has those under which
// the predicate is live. So where all others hold, one port of it is taken.
// Thread-compatible.
class Conditions {
 public:
  using Id = uint32_t;             // of a condition
  using Set = uint32_t;            // its number
  static constexpr Set kNone = 0;  // the empty set: always live

  Conditions();

  // The set of just this one.
  Set only(const Condition& condition);
  const Condition& condition(Id id) const { return conditions_[id]; }
  // Ascending.
  std::span<const Id> of(Set set) const { return *sets_[set]; }

  Set both(Set a, Set b);
  // What is in `a` and not in `b`.
  Set without(Set a, Set b);
  bool includes(Set a, Set b) { return both(a, b) == a; }
  // What all have in common. REQUIRES: at least one.
  Set common(std::span<const Set> sets);
  // Whether of these, but for what they have in common, one holds whatever the
  // predicates take. May be false where that is hard to tell.
  // REQUIRES: at least one.
  bool is_any_certain(std::span<const Set> sets);

 private:
  struct Hash {
    size_t operator()(const Condition& condition) const;
    size_t operator()(const std::vector<Id>& ids) const;
  };
  using Ids = std::vector<Id>;

  Set number(Ids ids);
  bool has_certain(const std::vector<Ids>& choices, int depth) const;
  // Where the ids have a condition on the predicate of `like`.
  Ids::const_iterator find_like(const Ids& ids, const Condition& like) const;

  std::vector<Condition> conditions_;
  std::unordered_map<Condition, Id, Hash> ids_;
  std::vector<const Ids*> sets_;  // the keys of numbers_
  std::unordered_map<Ids, Set, Hash> numbers_;
  std::unordered_map<uint64_t, Set> joined_;  // by two numbers
};

}  // namespace tagflow::graph
