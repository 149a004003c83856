#include "graph/placement/ties.h"

#include <unordered_map>

#include "graph/analysis/class_labels.h"

namespace tagflow::graph {

std::string Tie::to_string() const {
  const std::string& a = node->name();
  const std::string& b = other->name();
  switch (kind) {
    case Kind::kClass:
      if (what.substr(kClassPrefix.size()) == b)
        return fmt::format("\"{}\" has the class \"{}\"", a, what);
      return fmt::format("\"{}\" and \"{}\" have the class \"{}\"", a, b, what);
    case Kind::kState:
      return fmt::format("\"{}\" reads a {} of \"{}\"", a, what, b);
    case Kind::kVariable:
      return fmt::format("\"{}\" {} the loop of frame \"{}\" at \"{}\"", b,
                         other->is_enter() ? "enters" : "goes around", what, a);
    case Kind::kWholeLoop:
      break;
  }
  return std::string(what);
}

std::vector<Tie> Ties::between(const Node& from, const Node& to) const {
  std::unordered_map<const Node*, std::vector<const Tie*>> ties_of;
  for (const Tie& tie : ties_)
    for (const Node* end : {tie.node, tie.other}) ties_of[end].push_back(&tie);
  // Backwards, so that the path is found from its beginning.
  std::unordered_map<const Node*, const Tie*> onward = {{&to, nullptr}};
  std::vector<const Node*> open = {&to};
  for (size_t i = 0; i < open.size() && !onward.contains(&from); ++i)
    for (const Tie* tie : ties_of[open[i]]) {
      const Node* next = tie->node == open[i] ? tie->other : tie->node;
      if (onward.emplace(next, tie).second) open.push_back(next);
    }
  std::vector<Tie> way;
  if (!onward.contains(&from)) return way;
  for (const Node* node = &from; node != &to;) {
    const Tie& tie = *onward.at(node);
    way.push_back(tie);
    node = tie.node == node ? tie.other : tie.node;
  }
  return way;
}

}  // namespace tagflow::graph
