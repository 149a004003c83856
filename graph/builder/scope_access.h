// Access to internals of a Scope, for while_loop() and similar functions.
#pragma once

#include <string>
#include <vector>

#include "graph/builder/context.h"
#include "graph/builder/scope.h"

namespace tagflow::graph {

struct ScopeAccess {
  static BuilderState& state(const Scope& scope) { return *scope.state_; }
  static Context* context(const Scope& scope) { return scope.context_; }
  static const std::vector<Node*>& control_inputs(const Scope& scope) {
    return scope.control_inputs_;
  }
  static const AttrMap& attrs(const Scope& scope) { return scope.attrs_; }
  // The prefix without its slash: the name of a construct, for messages.
  static std::string name(const Scope& scope) {
    return scope.prefix_.substr(0, scope.prefix_.size() - 1);
  }
  // A name scope for a construct: named() takes precedence over `fallback`.
  static Scope construct_scope(const Scope& scope, std::string_view fallback) {
    return scope.sub_scope(
        scope.op_name_.empty() ? fallback : std::string_view(scope.op_name_));
  }
  // Ops of the new scope are in `context`. Control inputs are not inherited:
  // the values that enter the context have waited for them.
  static Scope inside(const Scope& scope, Context* context) {
    Scope inner = scope.without_control_dependencies();
    inner.context_ = context;
    return inner;
  }
  // A scope outside of all contexts, without prefix and control inputs.
  static Scope root(const Scope& scope) {
    Scope outermost = inside(scope, nullptr);
    outermost.prefix_.clear();
    outermost.op_name_.clear();
    return outermost;
  }
  static Result<Node*> add(const Scope& scope, BuilderState::NodeSpec spec,
                           Context* context) {
    spec.name = scope.prefix_ + spec.name;
    if (spec.device.empty()) spec.device = scope.device_;
    for (const auto& [name, value] : scope.attrs_)
      spec.attrs.emplace(name, value);
    return state(scope).add(std::move(spec), context);
  }
};

}  // namespace tagflow::graph
