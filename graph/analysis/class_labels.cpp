#include "graph/analysis/class_labels.h"

namespace tagflow::graph {

Result<std::span<const std::string>> class_labels(const Node& node) {
  std::span<const std::string> labels;
  const auto it = node.attrs().find(kClassAttr);
  if (it == node.attrs().end()) return labels;
  if (it->second.get_if<EmptyList>() != nullptr) return labels;
  const auto* list = it->second.get_if<std::vector<std::string>>();
  if (list == nullptr)
    return invalid_argument(
        "[placement] node \"{}\": attribute \"_class\" is of type {}, not "
        "list(string)",
        node.name(), it->second.type_name());
  labels = *list;
  for (const std::string& label : labels)
    if (label == kClassPrefix)
      return invalid_argument(
          "[placement] node \"{}\": the class \"{}\" names no node",
          node.name(), label);
  return labels;
}

}  // namespace tagflow::graph
