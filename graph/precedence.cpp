#include "graph/precedence.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace tagflow::graph {
namespace {

// How many nodes of a cycle a message names.
constexpr size_t kShownCycle = 12;

// Names a cycle among the nodes not `placed`, each of which waits for another.
Status cycle_error(const Precedence& before, const std::vector<bool>& placed,
                   const std::function<std::string_view(size_t)>& name) {
  auto at = size_t(std::ranges::find(placed, false) - placed.begin());
  // Walking back must reach one of them twice.
  std::vector<size_t> path;
  std::vector<bool> on_path(placed.size());
  while (!on_path[at]) {
    on_path[at] = true;
    path.push_back(at);
    at = *std::ranges::find_if(before.of(at),
                               [&](size_t input) { return !placed[input]; });
  }
  path.erase(path.begin(), std::ranges::find(path, at));
  std::ranges::reverse(path);
  std::string text(name(path.back()));
  for (size_t n = 0; n < path.size(); ++n) {
    if (n == kShownCycle) {
      text += fmt::format(" -> ... ({} nodes)", path.size());
      break;
    }
    text += fmt::format(" -> {}", name(path[n]));
  }
  return invalid_argument(
      "[graph] the cycle {} does not go through a NextIteration into a Merge",
      text);
}

// Most graphs are in order already and need no sorting.
bool is_in_order(const Precedence& before) {
  for (size_t i = 0; i < before.size(); ++i)
    for (size_t input : before.of(i))
      if (input >= i) return false;
  return true;
}

}  // namespace

Precedence Precedence::reversed() const {
  Precedence after(size(), before_.size());
  after.first_.assign(size() + 1, 0);
  after.before_.resize(before_.size());
  for (const uint32_t thing : before_) ++after.first_[thing + 1];
  std::partial_sum(after.first_.begin(), after.first_.end(),
                   after.first_.begin());
  std::vector<size_t> next = after.first_;
  for (size_t i = 0; i < size(); ++i)
    for (const uint32_t thing : of(i))
      after.before_[next[thing]++] = uint32_t(i);
  return after;
}

Result<std::vector<uint32_t>> topological_order(
    const Precedence& before,
    const std::function<std::string_view(size_t)>& name) {
  const size_t count = before.size();
  std::vector<uint32_t> order;
  if (is_in_order(before)) {
    order.resize(count);
    std::iota(order.begin(), order.end(), uint32_t(0));
    return order;
  }
  const Precedence after = before.reversed();
  std::vector<size_t> pending(count);
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i) {
    pending[i] = before.of(i).size();
    if (pending[i] == 0) ready.push(uint32_t(i));
  }
  order.reserve(count);
  std::vector<bool> placed(count);
  while (!ready.empty()) {
    const uint32_t i = ready.top();
    ready.pop();
    order.push_back(i);
    placed[i] = true;
    for (const uint32_t thing : after.of(i))
      if (--pending[thing] == 0) ready.push(thing);
  }
  if (order.size() < count) return cycle_error(before, placed, name);
  return order;
}

}  // namespace tagflow::graph
