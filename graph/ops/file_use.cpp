#include "graph/ops/file_use.h"

#include <string>

namespace tagflow::graph {

bool may_say(const AttrMap& attrs, std::string_view name,
             bool (*says_so)(std::string_view text)) {
  const auto found = attrs.find(name);
  if (found == attrs.end()) return false;
  const auto* const text = found->second.get_if<std::string>();
  return text == nullptr || says_so(*text);
}

}  // namespace tagflow::graph
