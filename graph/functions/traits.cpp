#include "graph/functions/traits.h"

#include <vector>

#include "graph/functions/extended.h"
#include "graph/functions/lower.h"
#include "graph/op_registry.h"

namespace tagflow::graph {
namespace {

void merge(Traits& traits, const Traits& more) {
  traits.has_effects |= more.has_effects;
  traits.may_die |= more.may_die;
}

// Calls visit(name) for functions that attributes name, also indirectly.
template <class Visit>
void visit_functions(const AttrMap& attrs, const Visit& visit) {
  for (const FunctionRef* function : functions_of(attrs)) {
    visit(std::string_view(function->name));
    visit_functions(function->attrs, visit);
  }
}

// For the nodes themselves; calls visit(name) for the functions they call.
template <class Visit>
Traits own_traits(const FunctionDef& function, const Visit& visit) {
  Traits own;
  own.has_effects = !function.control_ret.empty();
  AttrMap defaults;
  for (const AttrDef& attr : function.signature.attrs)
    if (attr.default_value) defaults.emplace(attr.name, *attr.default_value);
  visit_functions(defaults, visit);
  for (const NodeDef& node : function.nodes) {
    const OpDef* op = OpRegistry::global().find_or_null(node.op);
    if (op == nullptr) {
      visit(std::string_view(node.op));
    } else {
      own.has_effects |= op->is_stateful && !is_functional_op(node.op);
      own.may_die |= op->may_die;
    }
    visit_functions(node.attrs, visit);
  }
  return own;
}

}  // namespace

void LibraryTraits::learn(std::string_view name) {
  const auto is_new = [&](std::string_view called) {
    return !traits_.contains(called) && library_.find(called) != nullptr;
  };
  if (!is_new(name)) return;
  // Functions that are already known do not reach new ones.
  std::unordered_map<std::string_view, std::vector<std::string_view>> callers;
  std::vector<std::string_view> met;
  const auto meet = [&](std::string_view called) {
    const FunctionDef& function = *library_.find(called);
    traits_.emplace(function.name(), Traits());
    met.push_back(function.name());
  };
  meet(name);
  for (size_t i = 0; i < met.size(); ++i) {
    const std::string_view caller = met[i];
    const FunctionDef& function = *library_.find(caller);
    const auto visit = [&](std::string_view called) {
      if (is_new(called)) meet(called);
      if (traits_.contains(called)) callers[called].push_back(caller);
    };
    // An extension has the traits of its base: Note [Extended functions].
    const FunctionRef* extended = extended_function(function);
    if (extended != nullptr && library_.find(extended->name) != nullptr)
      visit(library_.find(extended->name)->name());
    else
      merge(traits_.at(caller), own_traits(function, visit));
  }
  std::vector<std::string_view> open;
  for (const auto& [called, by] : callers) open.push_back(called);
  while (!open.empty()) {
    const std::string_view called = open.back();
    open.pop_back();
    const auto found = callers.find(called);
    if (found == callers.end()) continue;
    for (const std::string_view caller : found->second) {
      Traits& traits = traits_.at(caller);
      const Traits before = traits;
      merge(traits, traits_.at(called));
      if (!(traits == before)) open.push_back(caller);
    }
  }
}

Traits LibraryTraits::of(std::string_view op, const AttrMap& attrs) {
  Traits traits;
  const auto add = [&](std::string_view name) {
    learn(name);
    if (const auto it = traits_.find(name); it != traits_.end())
      merge(traits, it->second);
  };
  add(op);
  visit_functions(attrs, add);
  return traits;
}

Traits LibraryTraits::of(const FunctionInstance& function) {
  return of(function.name(), function.attrs());
}

}  // namespace tagflow::graph
