#include "autodiff/checkpoint.h"

#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

graph::Outputs checkpoint(const graph::Scope& scope, const CheckpointFn& f,
                          const graph::Inputs& args) {
  if (!scope.ok()) return {};
  const graph::Scope inside =
      graph::ScopeAccess::construct_scope(scope, "checkpoint");
  std::string name = graph::ScopeAccess::name(inside);
  if (const auto outer = checkpoints_of(graph::ScopeAccess::attrs(scope));
      !outer.empty())
    name = fmt::format("{};{}", outer, name);
  graph::Outputs tensors;
  for (const graph::Input& arg : args) tensors.push_back(scope.resolve(arg));
  if (!f) {
    scope.fail(invalid_argument("[checkpoint] \"{}\" has no function", name));
    return {};
  }
  if (!scope.ok()) return {};
  return f(inside.with_attr(std::string(kCheckpointAttr), name), tensors);
}

std::string_view checkpoints_of(const AttrMap& attrs) {
  const auto found = attrs.find(kCheckpointAttr);
  const auto* names =
      found == attrs.end() ? nullptr : found->second.get_if<std::string>();
  return names == nullptr ? std::string_view() : *names;
}

std::string_view outermost_checkpoint(std::string_view text) {
  return text.substr(0, text.find(';'));
}

std::string_view inner_checkpoints(std::string_view text) {
  const size_t end = text.find(';');
  return end == std::string_view::npos ? "" : text.substr(end + 1);
}

}  // namespace tagflow::autodiff
