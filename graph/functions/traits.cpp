#include "graph/functions/traits.h"

#include <algorithm>
#include <vector>

#include "graph/functions/lower.h"
#include "graph/op_registry.h"

namespace tagflow::graph {
namespace {

constexpr std::string_view kMortalOps[] = {
    "Switch",   "RefSwitch", "_SwitchN",  "Merge",
    "RefMerge", "_Recv",     "_HostRecv",
};

void merge(Traits& traits, const Traits& more) {
  traits.has_effects |= more.has_effects;
  traits.may_die |= more.may_die;
}

// Calls visit(name) for the functions that attributes name, and those that
// the attributes of these do.
template <class Visit>
void visit_functions(const AttrMap& attrs, const Visit& visit) {
  for (const FunctionRef* function : functions_of(attrs)) {
    visit(std::string_view(function->name));
    visit_functions(function->attrs, visit);
  }
}

// Of the nodes themselves; calls visit(name) for what they call.
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
    } else if (op->is_stateful && !is_functional_op(node.op)) {
      own.has_effects = true;
    }
    if (std::ranges::find(kMortalOps, node.op) != std::end(kMortalOps))
      own.may_die = true;
    visit_functions(node.attrs, visit);
  }
  return own;
}

}  // namespace

LibraryTraits::LibraryTraits(const FunctionLibrary& library) {
  std::unordered_map<std::string_view, std::vector<std::string_view>> callers;
  std::vector<std::string_view> open;
  for (const FunctionDef* function : library.functions()) {
    const std::string_view name = function->name();
    traits_[name] = own_traits(*function, [&](std::string_view called) {
      callers[called].push_back(name);
    });
    open.push_back(name);
  }
  while (!open.empty()) {
    const std::string_view called = open.back();
    open.pop_back();
    const auto found = traits_.find(called);
    for (const std::string_view caller : callers[called]) {
      Traits& traits = traits_.at(caller);
      const Traits before = traits;
      merge(traits, found->second);
      if (!(traits == before)) open.push_back(caller);
    }
  }
}

Traits LibraryTraits::of(std::string_view op, const AttrMap& attrs) const {
  Traits traits;
  const auto add = [&](std::string_view name) {
    if (const auto it = traits_.find(name); it != traits_.end())
      merge(traits, it->second);
  };
  add(op);
  visit_functions(attrs, add);
  return traits;
}

Traits LibraryTraits::of(const FunctionInstance& function) const {
  return of(function.name(), function.attrs());
}

}  // namespace tagflow::graph
