#include <mutex>

#include "autodiff/rule.h"
#include "autodiff/rules/control_flow_call.h"
#include "autodiff/rules/families.h"
#include "autodiff/stand_in.h"
#include "graph/stored_gradient.h"

namespace tagflow::autodiff {
namespace {

const RuleEntry* find_in(
    const std::unordered_map<std::string, RuleEntry>& entries,
    std::string_view name) {
  const auto found = entries.find(std::string(name));
  return found == entries.end() ? nullptr : &found->second;
}

}  // namespace

RuleTable& RuleTable::global() {
  static RuleTable* table = [] {
    auto* made = new RuleTable;
    for (const auto& family : rule_families()) family.add(*made);
    return made;
  }();
  return *table;
}

void RuleTable::add(std::string_view op, Rule rule) {
  std::unique_lock lock(mutex_);
  by_op_.insert_or_assign(std::string(op), RuleEntry{.rule = rule});
}

void RuleTable::add(std::initializer_list<std::string_view> ops, Rule rule) {
  for (const std::string_view op : ops) add(op, rule);
}

void RuleTable::add_none(std::initializer_list<std::string_view> ops,
                         std::string_view reason) {
  std::unique_lock lock(mutex_);
  for (const std::string_view op : ops)
    by_op_.insert_or_assign(std::string(op),
                            RuleEntry{.reason = std::string(reason)});
}

void RuleTable::add_custom(std::string_view name, Rule rule) {
  std::unique_lock lock(mutex_);
  custom_.insert_or_assign(std::string(name), RuleEntry{.rule = rule});
}

void RuleTable::add_forward(std::initializer_list<std::string_view> ops,
                            ForwardRule rule) {
  std::unique_lock lock(mutex_);
  for (const std::string_view op : ops)
    by_op_.at(std::string(op)).forward = rule;
}

const RuleEntry* RuleTable::find(std::string_view op) const {
  std::shared_lock lock(mutex_);
  return find_in(by_op_, op);
}

std::vector<std::string> RuleTable::ops() const {
  std::shared_lock lock(mutex_);
  std::vector<std::string> ops;
  for (const auto& [op, entry] : by_op_) ops.push_back(op);
  return ops;
}

const RuleEntry* RuleTable::find_custom(std::string_view name) const {
  std::shared_lock lock(mutex_);
  return find_in(custom_, name);
}

Result<const RuleEntry*> rule_of(const Node& node) {
  static const RuleEntry of_function{.rule = &function_rule};
  static const RuleEntry stored{.rule = &stored_gradient_rule};
  const RuleTable& table = RuleTable::global();
  if (node.attrs().contains(graph::kStoredGradientAttr)) return &stored;
  if (node.attrs().find("_gradient_op_type") != node.attrs().end()) {
    const auto name = node.attr<std::string>("_gradient_op_type");
    const RuleEntry* entry = name.ok() ? table.find_custom(*name) : nullptr;
    if (entry != nullptr) return entry;
    const auto why = node.attr<std::string>(graph::kNotStoredAttr);
    return error(Code::kNotFound,
                 "[gradients] node \"{}\" asks for the custom gradient "
                 "\"{}\", which is not registered{}{}",
                 node.name(), name.ok() ? *name : "?", why.ok() ? ": " : "",
                 why.ok() ? *why : "");
  }
  const auto other = node.attr<std::string>(kStandsForAttr);
  const RuleEntry* entry = table.find(other.ok() ? *other : node.op());
  if (entry == nullptr && !node.op_def().is_registered) return &of_function;
  return entry;
}

}  // namespace tagflow::autodiff
