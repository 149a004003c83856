#include "graph/analysis/conditions.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tagflow::graph {
namespace {

// The maximum of successive predicates that choose between inputs of one Merge;
// more than builders make.
constexpr size_t kMostChoices = 8;

size_t mix(size_t hash, size_t value) {
  return (hash ^ value) * size_t(0x9e3779b97f4a7c15) + (hash >> 29);
}

}  // namespace

size_t Conditions::Hash::operator()(const Condition& condition) const {
  return mix(EndpointHash()(condition.source),
             size_t(condition.port) << 32 | size_t(condition.ports));
}

size_t Conditions::Hash::operator()(const std::vector<Id>& ids) const {
  size_t hash = ids.size();
  for (const Id id : ids) hash = mix(hash, id);
  return hash;
}

Conditions::Conditions() { number({}); }

Conditions::Set Conditions::number(Ids ids) {
  const auto [entry, is_new] =
      numbers_.try_emplace(std::move(ids), Set(sets_.size()));
  if (is_new) sets_.push_back(&entry->first);
  return entry->second;
}

Conditions::Set Conditions::only(const Condition& condition) {
  const auto [entry, is_new] =
      ids_.try_emplace(condition, Id(conditions_.size()));
  if (is_new) conditions_.push_back(condition);
  return number({entry->second});
}

Conditions::Set Conditions::both(Set a, Set b) {
  if (a == b || b == kNone) return a;
  if (a == kNone) return b;
  if (a > b) std::swap(a, b);
  const auto [known, is_new] =
      joined_.try_emplace(uint64_t(a) << 32 | b, kNone);
  if (is_new) {
    Ids ids;
    std::ranges::set_union(of(a), of(b), std::back_inserter(ids));
    known->second = number(std::move(ids));
  }
  return known->second;
}

Conditions::Set Conditions::without(Set a, Set b) {
  if (b == kNone) return a;
  Ids ids;
  std::ranges::set_difference(of(a), of(b), std::back_inserter(ids));
  return number(std::move(ids));
}

Conditions::Set Conditions::common(std::span<const Set> sets) {
  Ids ids(of(sets[0]).begin(), of(sets[0]).end());
  for (const Set set : sets.subspan(1)) {
    if (set == sets[0]) continue;
    Ids fewer;
    std::ranges::set_intersection(ids, of(set), std::back_inserter(fewer));
    ids = std::move(fewer);
  }
  return number(std::move(ids));
}

bool Conditions::is_any_certain(std::span<const Set> sets) {
  const Set shared = common(sets);
  std::vector<Ids> choices;
  for (const Set set : sets) {
    if (set == shared) return true;
    Ids& ids = choices.emplace_back();
    std::ranges::set_difference(of(set), of(shared), std::back_inserter(ids));
  }
  return has_certain(choices, kMostChoices);
}

Conditions::Ids::const_iterator Conditions::find_like(
    const Ids& ids, const Condition& like) const {
  return std::ranges::find_if(ids, [&](Id id) {
    return conditions_[id].source == like.source &&
           conditions_[id].ports == like.ports;
  });
}

// Looks for a predicate that all of them depend on, such that for each port one
// of the sets with that port is certain.
bool Conditions::has_certain(const std::vector<Ids>& choices, int depth) const {
  const Ids& shortest = *std::ranges::min_element(choices, {}, &Ids::size);
  if (shortest.empty()) return true;
  if (depth == 0 || shortest.size() > kMostChoices) return false;
  for (const Id id : shortest) {
    const Condition& like = conditions_[id];
    if (size_t(like.ports) > choices.size() ||
        std::ranges::any_of(choices, [&](const Ids& choice) {
          return find_like(choice, like) == choice.end();
        }))
      continue;
    std::vector<std::vector<Ids>> by_port(size_t(like.ports));
    if (by_port.empty()) continue;
    for (const Ids& choice : choices) {
      const auto at = find_like(choice, like);
      Ids& rest = by_port[size_t(conditions_[*at].port)].emplace_back(choice);
      rest.erase(rest.begin() + (at - choice.begin()));
    }
    return std::ranges::all_of(by_port, [&](const auto& rests) {
      return !rests.empty() && has_certain(rests, depth - 1);
    });
  }
  return false;
}

}  // namespace tagflow::graph
