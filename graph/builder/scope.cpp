#include "graph/builder/scope.h"

#include <unordered_set>

#include "graph/analysis/class_labels.h"
#include "graph/builder/context.h"
#include "graph/builder/growth.h"
#include "graph/builder/op_inputs.h"
#include "graph/builder/scope_access.h"
#include "graph/function.h"
#include "graph/op_registry.h"

namespace tagflow::graph {

void limit_growth(const Scope& scope, const Limits& limits) {
  ScopeAccess::state(scope).set_limits(limits);
}

const Limits& growth_limits(const Scope& scope) {
  return ScopeAccess::state(scope).limits();
}

Scope::Scope(Graph& graph) : state_(std::make_shared<BuilderState>(graph)) {}

Graph& Scope::graph() const { return state_->graph(); }
Status Scope::status() const { return state_->status(); }
bool Scope::ok() const { return state_->status().ok(); }
void Scope::fail(Status status) const { state_->fail(std::move(status)); }

std::string Scope::full_name(std::string_view name) const {
  return prefix_ + (op_name_.empty() ? std::string(name) : op_name_);
}

Scope Scope::sub_scope(std::string_view name) const {
  Scope scope = *this;
  scope.prefix_ = state_->unique_scope(prefix_ + std::string(name)) + "/";
  scope.op_name_.clear();
  return scope;
}

Scope Scope::named(std::string_view name) const {
  Scope scope = *this;
  scope.op_name_ = name;
  return scope;
}

Scope Scope::with_device(std::string device) const {
  Scope scope = *this;
  scope.device_ = std::move(device);
  return scope;
}

Scope Scope::with_attr(std::string name, AttrValue value) const {
  if (!name.starts_with('_'))
    fail(invalid_argument(
        "[Scope] the attribute \"{}\" is not for every op: its name must "
        "start with _",
        name));
  Scope scope = *this;
  scope.attrs_.insert_or_assign(std::move(name), std::move(value));
  return scope;
}

Scope Scope::colocate_with(const Output& output) const {
  if (Status status = check_input(output, "colocate_with", 0); !status.ok()) {
    fail(std::move(status));
    return *this;
  }
  return with_attr(std::string(kClassAttr),
                   std::vector<std::string>{std::string(kClassPrefix) +
                                            output.node()->name()});
}

Scope Scope::with_control_dependencies(const Outputs& outputs) const {
  Scope scope = *this;
  auto& all = scope.control_inputs_;
  std::unordered_set<const Node*> seen(all.begin(), all.end());
  size_t index = 0;
  for (const Output& output : outputs) {
    if (Status status =
            check_input(output, "with_control_dependencies", index++);
        !status.ok()) {
      fail(std::move(status));
      continue;
    }
    if (seen.insert(output.node()).second) all.push_back(output.node());
  }
  return scope;
}

Scope Scope::without_control_dependencies() const {
  Scope scope = *this;
  scope.control_inputs_.clear();
  return scope;
}

// If an Output is invalid because of an earlier error, that error is kept.
Status Scope::check_input(const Output& output, std::string_view user,
                          size_t index) const {
  if (!output.valid())
    return invalid_argument("[{}] input {} is an invalid Output", user, index);
  return state_->check_own(output.node(), user);
}

OpResult Scope::op(std::string_view op, const Inputs& inputs,
                   AttrMap attrs) const {
  if (!ok()) return {};
  Result<Node*> node = add(op, inputs, std::move(attrs));
  if (node.ok()) return OpResult(*node);
  fail(std::move(node).status());
  return {};
}

Result<Node*> Scope::add(std::string_view op, const Inputs& inputs,
                         AttrMap attrs) const {
  TAGFLOW_RETURN_IF_ERROR(check_attr_names(op, attrs));
  BuilderState::NodeSpec spec;
  spec.name = full_name(op);
  spec.op = op;
  std::vector<InputType> literals;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_literal()) {
      if (literals.empty()) {
        TAGFLOW_ASSIGN(const OpDef* def, find_op(op));
        TAGFLOW_ASSIGN(literals, literal_types(*def, inputs, attrs));
      }
      const std::string name = fmt::format(
          "{}/{}", op_name_.empty() ? op : op_name_, literals[i].name);
      const Output made = named(name).resolve(inputs[i], literals[i].dtype);
      if (!made.valid()) return status();
      spec.inputs.push_back(made.endpoint());
      continue;
    }
    const Output& output = inputs[i].output();
    if (!output.valid())
      return invalid_argument("[{}] \"{}\": input {} is an invalid Output", op,
                              spec.name, i);
    if (!output.has_tensor())
      return invalid_argument(
          "[{}] \"{}\": input {}, \"{}\", is an operation without that output",
          op, spec.name, i, output.endpoint().to_string());
    spec.inputs.push_back(output.endpoint());
  }
  for (const auto& [name, value] : attrs_) attrs.emplace(name, value);
  spec.attrs = std::move(attrs);
  spec.control_inputs = control_inputs_;
  spec.device = device_;
  return state_->add(std::move(spec), context_);
}

// With a misspelt name, the intended attribute would keep its default.
Status Scope::check_attr_names(std::string_view op,
                               const AttrMap& attrs) const {
  if (attrs.empty()) return {};
  TAGFLOW_ASSIGN(const OpDef* def, find_op(op));
  for (const auto& [name, value] : attrs) {
    if (name.starts_with('_') || def->find_attr(name) != nullptr) continue;
    std::vector<std::string> names;
    for (const AttrDef& attr : def->attrs) names.push_back(attr.name);
    const std::string nearest = nearest_name(name, names);
    return invalid_argument(
        "[{}] the op has no attribute \"{}\"{}", op, name,
        nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", nearest));
  }
  return {};
}

// A function of the graph's library is called like an op.
Result<const OpDef*> Scope::find_op(std::string_view op) const {
  const OpRegistry& registry = OpRegistry::global();
  if (registry.find_or_null(op) == nullptr) {
    const FunctionDef* function = graph().library().find(op);
    if (function != nullptr) return &function->signature;
  }
  return registry.find(op);
}

Output Scope::constant(Tensor value, std::string_view name) const {
  if (!ok()) return {};
  if (!value.valid()) {
    fail(invalid_argument("[Const] \"{}\": a tensor without a value",
                          full_name(name)));
    return {};
  }
  const DataType dtype = value.dtype();
  const Scope scope = op_name_.empty() ? named(name) : *this;
  return scope.op("Const", {},
                  {{"value", std::move(value)}, {"dtype", dtype}})[0];
}

Output Scope::resolve(const Input& input, DataType dtype,
                      std::string_view name) const {
  if (!ok()) return {};
  if (!input.is_literal()) return input.output();
  if (!input.is_weak()) return constant(input.literal(), name);
  Result<Tensor> value = weak_to_dtype(input.literal(), dtype);
  if (value.ok()) return constant(std::move(*value), name);
  fail(std::move(value).status().with_prefix(
      fmt::format("[Const] \"{}\": ", full_name(name))));
  return {};
}

}  // namespace tagflow::graph
