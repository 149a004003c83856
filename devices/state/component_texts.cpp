#include "devices/state/component_texts.h"

#include <fmt/ranges.h>

#include <vector>

namespace tagflow::devices {

std::string shapes_text(const graph::PartialShapes& shapes) {
  if (shapes.empty()) return "any shapes";
  std::vector<std::string> texts;
  for (const PartialShape& shape : shapes) texts.push_back(shape.to_string());
  return fmt::format("shapes {}", fmt::join(texts, ", "));
}

std::string types_text(std::span<const DataType> types) {
  std::vector<std::string> names;
  for (const DataType type : types) names.emplace_back(dtype_name(type));
  return fmt::format("({})", fmt::join(names, ", "));
}

}  // namespace tagflow::devices
