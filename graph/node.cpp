#include "graph/node.h"

#include <unordered_map>

namespace tagflow::graph {

std::string Endpoint::to_string() const {
  if (node == nullptr) return "<open>";
  return fmt::format("{}:{}", node->name(), port);
}

Node::Kind Node::kind_of(std::string_view op) {
  static const std::unordered_map<std::string_view, Kind> kinds = {
      {"Switch", Kind::kSwitch},
      {"RefSwitch", Kind::kSwitch},
      {"_SwitchN", Kind::kSwitch},
      {"Merge", Kind::kMerge},
      {"RefMerge", Kind::kMerge},
      {"Enter", Kind::kEnter},
      {"RefEnter", Kind::kEnter},
      {"Exit", Kind::kExit},
      {"RefExit", Kind::kExit},
      {"NextIteration", Kind::kNextIteration},
      {"RefNextIteration", Kind::kNextIteration},
      {"LoopCond", Kind::kLoopCond},
      {"ControlTrigger", Kind::kControlTrigger},
      {"Const", Kind::kConst},
      {"Identity", Kind::kIdentity},
      {"RefIdentity", Kind::kIdentity},
  };
  auto it = kinds.find(op);
  return it == kinds.end() ? Kind::kOther : it->second;
}

bool Node::is_constant_enter() const {
  if (!is_enter()) return false;
  const Result<bool> is_constant = attr<bool>("is_constant");
  return is_constant.ok() && *is_constant;
}

}  // namespace tagflow::graph
