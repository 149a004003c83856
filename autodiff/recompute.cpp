#include "autodiff/recompute.h"

#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

graph::Outputs recompute(const graph::Scope& scope, const RecomputeFn& f,
                         const graph::Inputs& args) {
  if (!scope.ok()) return {};
  const graph::Scope inside =
      graph::ScopeAccess::construct_scope(scope, "recompute");
  std::string name = graph::ScopeAccess::name(inside);
  if (const auto outer = blocks_of(graph::ScopeAccess::attrs(scope));
      !outer.empty())
    name = fmt::format("{};{}", outer, name);
  graph::Outputs tensors;
  for (const graph::Input& arg : args) tensors.push_back(scope.resolve(arg));
  if (!f) {
    scope.fail(invalid_argument("[recompute] \"{}\" has no function", name));
    return {};
  }
  if (!scope.ok()) return {};
  return f(inside.with_attr(std::string(kRecomputeAttr), name), tensors);
}

std::string_view blocks_of(const AttrMap& attrs) {
  const auto found = attrs.find(kRecomputeAttr);
  const auto* names =
      found == attrs.end() ? nullptr : found->second.get_if<std::string>();
  return names == nullptr ? std::string_view() : *names;
}

std::string_view outermost_block(std::string_view text) {
  return text.substr(0, text.find(';'));
}

std::string_view inner_blocks(std::string_view text) {
  const size_t end = text.find(';');
  return end == std::string_view::npos ? "" : text.substr(end + 1);
}

}  // namespace tagflow::autodiff
