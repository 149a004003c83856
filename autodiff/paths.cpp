#include "autodiff/paths.h"

#include <algorithm>

#include "autodiff/mutable_stacks.h"
#include "autodiff/rule.h"
#include "autodiff/stand_in.h"
#include "graph/stored_gradient.h"

namespace tagflow::autodiff {
namespace {

bool is_primitive(const Node& node) {
  return node.is_switch() || node.is_merge() || node.is_enter() ||
         node.is_exit() || node.is_next_iteration();
}

}  // namespace

bool has_gradient(DataType dtype) {
  const DataType plain = remove_ref(dtype);
  return is_floating(plain) || is_complex(plain) ||
         plain == DataType::kResource || plain == DataType::kVariant;
}

Paths::Paths(const Analysis& analysis, FrameId frame,
             std::span<const Endpoint> xs, std::span<const Endpoint> ys,
             const Set& stops)
    : analysis_(analysis), frame_(frame) {
  follow(xs, stops);
  go_back(ys);
}

void Paths::follow(std::span<const Endpoint> xs, const Set& stops) {
  std::vector<Endpoint> open;
  for (const Endpoint& x : xs)
    if (!stops.contains(x) && before_.emplace(x, x).second) open.push_back(x);
  while (!open.empty()) {
    const Endpoint from = open.back();
    open.pop_back();
    for (const Use& use : analysis_.uses(*from.node))
      if (use.node->inputs()[use.index] == from) reach(use, from, stops, open);
  }
}

void Paths::reach(const Use& use, const Endpoint& from, const Set& stops,
                  std::vector<Endpoint>& open) {
  Node& node = *use.node;
  const auto find = [&](int port) {
    const Endpoint to{&node, port};
    if (!has_gradient(node.output_dtypes()[size_t(port)]) ||
        stops.contains(to) || !before_.emplace(to, from).second)
      return;
    open.push_back(to);
  };
  if (analysis_.only_orders(node, use.index)) return;
  if (is_primitive(node)) {
    // Paths do not leave the frame, and do not lead into the next iteration of
    // it or of those around.
    if ((node.is_exit() || node.is_next_iteration()) &&
        is_around(analysis_.frame_of(node)))
      return;
    // The value of a variable differs in each iteration.
    if (node.is_enter() && !node.is_constant_enter() &&
        is_around(analysis_.output_frame(node)))
      return;
  } else {
    const RuleEntry* entry = RuleTable::global().find(node.op());
    if (entry != nullptr && entry->rule == nullptr &&
        node.attrs().find("_gradient_op_type") == node.attrs().end())
      return;
  }
  for (int port = 0; port < node.num_outputs(); ++port)
    if (leads_to(node, use.index, port)) find(port);
}

// Whether it is the frame of the ys, or around it.
bool Paths::is_around(FrameId frame) const {
  return analysis_.is_within(frame_, frame);
}

// Whether the output may depend on that input, by the node's definition.
bool Paths::leads_to(const Node& node, size_t index, int port) const {
  // An invalid stand-in is reported later.
  if (const auto outputs = stand_in_outputs(node); !outputs.ok())
    return true;
  else if (*outputs > 0)
    return size_t(port) < *outputs && index >= *outputs;
  if (node.attrs().contains(graph::kStoredGradientAttr))
    return graph::has_stored_gradient(node, index);
  // The inputs of a custom gradient's IdentityN are also its function's.
  if (node.op() == "IdentityN" && !node.attrs().contains("_gradient_op_type"))
    return size_t(port) == index;
  const CalledFunction* called = analysis_.called(node);
  return called == nullptr || called->has_path(index, size_t(port));
}

void Paths::go_back(std::span<const Endpoint> ys) {
  std::vector<Endpoint> open;
  for (const Endpoint& y : ys) {
    if (!depends(y) || !needed_.insert(y).second) continue;
    after_.emplace(y, y);
    open.push_back(y);
  }
  while (!open.empty()) {
    const Endpoint to = open.back();
    open.pop_back();
    if (to.node->is_exit() && analysis_.frame_of(*to.node) == frame_) continue;
    // An x before another x has a gradient through it, too.
    for (size_t i = 0; i < to.node->inputs().size(); ++i) {
      const Endpoint& input = to.node->inputs()[i];
      if (input.node == nullptr || !depends(input) ||
          !leads_to(*to.node, i, to.port) || analysis_.only_orders(*to.node, i))
        continue;
      if (!needed_.insert(input).second) continue;
      after_.emplace(input, to);
      open.push_back(input);
    }
  }
}

std::vector<const Node*> Paths::hidden_pops(
    std::span<const Endpoint> ys) const {
  std::unordered_set<const Node*> stacks;
  for (const auto& [tensor, from] : before_)
    for (const Use& use : analysis_.uses(*tensor.node))
      if (pushes_onto_stack(*use.node) && use.node->inputs()[1] == tensor)
        stacks.insert(analysis_.maker_of(use.node->inputs()[0]));
  std::vector<const Node*> pops;
  if (stacks.empty()) return pops;
  for (const Node* node : leading_to(ys))
    if (pops_from_stack(*node) &&
        stacks.contains(analysis_.maker_of(node->inputs()[0])))
      pops.push_back(node);
  // In the same order in each run.
  std::ranges::sort(pops, {}, &Node::id);
  return pops;
}

std::unordered_set<const Node*> Paths::leading_to(
    std::span<const Endpoint> ys) const {
  std::unordered_set<const Node*> known;
  std::vector<const Node*> open;
  const auto find = [&](const Node* node) {
    if (node != nullptr && known.insert(node).second) open.push_back(node);
  };
  for (const Endpoint& y : ys) find(y.node);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (size_t i = 0; i < node->inputs().size(); ++i)
      if (!analysis_.only_orders(*node, i)) find(node->inputs()[i].node);
  }
  return known;
}

std::string Paths::describe(const Node& node) const {
  constexpr size_t kMostNames = 12;
  std::vector<std::string> names;
  Endpoint at;
  for (int port = 0; port < node.num_outputs() && at.node == nullptr; ++port)
    if (const auto found = before_.find({const_cast<Node*>(&node), port});
        found != before_.end())
      at = found->first;
  if (at.node == nullptr) return "";
  for (Endpoint from = at; names.size() <= before_.size();) {
    names.insert(names.begin(), from.to_string());
    const Endpoint before = before_.at(from);
    if (before == from) break;
    from = before;
  }
  for (auto found = after_.find(at);
       found != after_.end() && found->second != found->first &&
       names.size() <= before_.size() + after_.size();
       found = after_.find(found->second))
    names.push_back(found->second.to_string());
  std::string text = names.front();
  for (size_t i = 1; i < names.size(); ++i) {
    if (names.size() > kMostNames && i == kMostNames / 2) {
      text += " -> ...";
      i = names.size() - kMostNames / 2;
    }
    text += " -> " + names[i];
  }
  return text;
}

}  // namespace tagflow::autodiff
