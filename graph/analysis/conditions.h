// Sets of conditions for liveness.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/node.h"

namespace tagflow::graph {

// A condition: a predicate selects port `port` of `ports`; or, if `ports` is 0,
// the source is live for unknown reasons.
struct Condition {
  Endpoint source;
  int port = 0;
  int ports = 0;
  int depth = 0;  // nesting depth of the source's frame

  bool operator==(const Condition&) const = default;
};

// Sets of conditions that all must hold. Equal sets have equal numbers, so
// comparing two is fast, and so is joining two that were joined before.
//
// A set with a condition on a predicate also contains the conditions for the
// predicate to be live. So if all others hold, one of its ports is selected.
// Thread-compatible.
class Conditions {
 public:
  using Id = uint32_t;             // of a condition
  using Set = uint32_t;            // its number
  static constexpr Set kNone = 0;  // the empty set: always live

  Conditions();

  // The set of this single condition.
  Set only(const Condition& condition);
  const Condition& condition(Id id) const { return conditions_[id]; }
  // Ascending.
  std::span<const Id> of(Set set) const { return *sets_[set]; }

  Set both(Set a, Set b);
  // The conditions in `a` that are not in `b`.
  Set without(Set a, Set b);
  bool includes(Set a, Set b) { return both(a, b) == a; }
  // The conditions that all sets share. REQUIRES: at least one set.
  Set common(std::span<const Set> sets);
  // Whether at least one of the sets holds for all values of the predicates,
  // given the conditions that they share. May be false if that is hard to
  // prove. REQUIRES: at least one set.
  bool is_any_certain(std::span<const Set> sets);

 private:
  struct Hash {
    size_t operator()(const Condition& condition) const;
    size_t operator()(const std::vector<Id>& ids) const;
  };
  using Ids = std::vector<Id>;

  Set number(Ids ids);
  bool has_certain(const std::vector<Ids>& choices, int depth) const;
  // The position of a condition on the predicate of `like`.
  Ids::const_iterator find_like(const Ids& ids, const Condition& like) const;

  std::vector<Condition> conditions_;
  std::unordered_map<Condition, Id, Hash> ids_;
  std::vector<const Ids*> sets_;  // the keys of numbers_
  std::unordered_map<Ids, Set, Hash> numbers_;
  std::unordered_map<uint64_t, Set> joined_;  // by pairs of numbers
};

}  // namespace tagflow::graph
