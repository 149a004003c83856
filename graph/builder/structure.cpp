#include "graph/builder/structure.h"

#include <fmt/format.h>

#include <unordered_set>

namespace tagflow::graph {

namespace structure {

std::string_view field_name(std::string_view names, size_t i) {
  for (; i > 0; --i) names.remove_prefix(names.find(',') + 1);
  names = names.substr(0, names.find(','));
  names.remove_prefix(names.find_first_not_of(' '));
  return names.substr(0, names.find_last_not_of(' ') + 1);
}

std::string dotted(const std::string& path, std::string_view field) {
  return path.empty() ? std::string(field) : fmt::format("{}.{}", path, field);
}

std::string indexed(const std::string& path, size_t i) {
  return fmt::format("{}[{}]", path, i);
}

}  // namespace structure

Outputs outputs_of(const std::vector<Leaf>& leaves) {
  Outputs outputs;
  for (const Leaf& leaf : leaves) outputs.push_back(leaf.output);
  return outputs;
}

std::string missing_path(const std::vector<Leaf>& leaves,
                         const std::vector<Leaf>& others) {
  std::unordered_set<std::string_view> paths;
  for (const Leaf& other : others) paths.insert(other.path);
  for (const Leaf& leaf : leaves)
    if (!paths.contains(leaf.path)) return leaf.path;
  return "";
}

}  // namespace tagflow::graph
