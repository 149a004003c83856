#include "autodiff/train/optimizer_step.h"

#include "autodiff/train/values.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/op_registry.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Input;
using graph::Outputs;
using graph::Scope;

namespace {

// There is no ResourceSparseApplyGradientDescent: rows are subtracted.
constexpr std::string_view kDescent = "GradientDescent";

std::string sparse_op(const UpdateRule& rule) {
  return "ResourceSparseApply" + rule.op;
}

}  // namespace

Output Optimizer::Step::run(const Scope& s, std::vector<VariableGradient> list,
                            Outputs before, const ApplyOptions& options) {
  if (!s.ok()) return {};
  if (options.transform) transform(list, options.transform);
  if (Status status = check(list, options); !status.ok())
    s.fail(std::move(status));
  std::erase_if(list, [](const auto& one) { return !one.gradient.valid(); });
  for (const VariableGradient& one : list) {
    before.push_back(one.gradient.values);
    if (one.gradient.is_sparse()) before.push_back(one.gradient.indices);
  }
  if (!s.ok()) return {};
  after_ = in_.with_control_dependencies({ops::group(in_, before)});
  const auto& powers = state_.all_powers(in_, list[0].variable.dtype());
  for (size_t i = 0; i < powers.size(); ++i)
    powers_[rule_.powers[i].argument] = powers[i].read(after_);
  Outputs updates;
  for (const VariableGradient& one : list) updates.push_back(update(one));
  if (!s.ok()) return {};
  return ops::group(s, finish(updates, options));
}

void Optimizer::Step::transform(std::vector<VariableGradient>& list,
                                const GradientTransform& fn) const {
  std::vector<Gradient> gradients;
  gradients.reserve(list.size());
  for (const VariableGradient& one : list) gradients.push_back(one.gradient);
  gradients = fn(in_, gradients);
  if (gradients.size() != list.size())
    in_.fail(
        invalid_argument("[Optimizer] the transform made {} gradients of {}",
                         gradients.size(), list.size()));
  for (size_t i = 0; i < list.size() && i < gradients.size(); ++i)
    list[i].gradient = gradients[i];
}

Status Optimizer::Step::check(const std::vector<VariableGradient>& list,
                              const ApplyOptions& options) const {
  std::string names;
  bool is_any = false;
  for (const auto& [variable, gradient, part] : list) {
    if (part >= variable.parts().size())
      return invalid_argument("[Optimizer] \"{}\" has no part {} to train",
                              variable.name(), part);
    is_any = is_any || gradient.valid();
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ",
                         variable.parts()[part].name);
  }
  if (!is_any)
    return invalid_argument(
        "[Optimizer] there is no gradient by any variable of [{}]", names);
  if (options.global_step.valid() && options.global_step.parts().size() != 1)
    return invalid_argument(
        "[Optimizer] the global step \"{}\" is not a variable",
        options.global_step.name());
  return {};
}

Outputs Optimizer::Step::finish(const Outputs& updates,
                                const ApplyOptions& options) {
  const Scope end = in_.with_control_dependencies({ops::group(in_, updates)});
  Outputs last;
  for (size_t i = 0; i < rule_.powers.size() && in_.ok(); ++i) {
    const auto& [name, base] = rule_.powers[i];
    last.push_back(
        state_.powers[i].assign(end, ops::mul(end, powers_[name], base)));
  }
  if (options.global_step.valid())
    last.push_back(
        ops::assign_add(end, options.global_step.parts()[0].variable, 1));
  return last.empty() ? updates : last;
}

Output Optimizer::Step::update(const VariableGradient& one) {
  if (!in_.ok()) return {};
  const graph::VariablePart& part = one.variable.parts()[one.part];
  const ops::Variable& v = part.variable;
  const Gradient gradient = usable(one.gradient, part.shape);
  Scope at = after_;
  if (rule_.weight_decay != 0 && (!rule_.decays || rule_.decays(one.variable)))
    at = at.with_control_dependencies({decay(v, gradient)});
  if (gradient.is_sparse() && rule_.op == kDescent)
    return at.op("ResourceScatterSub",
                 {v.handle, gradient.indices,
                  ops::mul(at, gradient.values, rate(v.dtype))});
  const std::string op =
      gradient.is_sparse() ? sparse_op(rule_) : "ResourceApply" + rule_.op;
  const auto def = graph::OpRegistry::global().find(op);
  if (!def.ok()) {
    in_.fail(def.status());
    return {};
  }
  graph::Inputs inputs;
  for (const graph::ArgDef& input : (*def)->inputs)
    inputs.add(argument(input.name, one, gradient));
  return Output(at.op(op, inputs, rule_.attrs).node());
}

Gradient Optimizer::Step::usable(const Gradient& gradient,
                                 const Shape& shape) const {
  if (!gradient.is_sparse()) return gradient;
  const bool takes_rows =
      rule_.op == kDescent ||
      graph::OpRegistry::global().find_or_null(sparse_op(rule_)) != nullptr;
  if (takes_rows && !rule_.dense) return with_unique_rows(in_, gradient);
  return {dense_rows(in_, gradient, shape.rank() > 0 ? shape.dim(0) : 0)};
}

Output Optimizer::Step::decay(const ops::Variable& v,
                              const Gradient& gradient) {
  const Output factor = ops::mul(in_, rate(v.dtype), rule_.weight_decay);
  if (!gradient.is_sparse())
    return ops::assign_sub(after_, v,
                           ops::mul(after_, ops::read(after_, v), factor));
  const Output rows = after_.op("ResourceGather", {v.handle, gradient.indices},
                                {{"dtype", v.dtype}});
  return after_.op("ResourceScatterSub", {v.handle, gradient.indices,
                                          ops::mul(after_, rows, factor)});
}

Input Optimizer::Step::argument(const std::string& name,
                                const VariableGradient& one,
                                const Gradient& gradient) {
  const DataType dtype = one.variable.dtype();
  if (name == "var") return one.variable.parts()[one.part].variable.handle;
  if (name == "grad" || name == "delta") return gradient.values;
  if (name == "indices") return gradient.indices;
  if (name == "lr" || name == "alpha") return rate(dtype);
  const auto& slots = state_.slots_of(in_, one.variable);
  if (!in_.ok()) return Output();
  for (size_t i = 0; i < slots.size(); ++i)
    if (rule_.slots[i].argument == name)
      return slots[i].parts()[one.part].variable.handle;
  if (const auto power = powers_.find(name); power != powers_.end())
    return scalar(name, power->second, dtype);
  if (const auto found = rule_.scalars.find(name); found != rule_.scalars.end())
    return scalar(name, found->second, dtype);
  in_.fail(invalid_argument(
      "[Optimizer] the rule \"{}\" does not say what \"{}\" of "
      "ResourceApply{} is",
      rule_.name, name, rule_.op));
  return Output();
}

Output Optimizer::Step::scalar(const std::string& name, const Input& value,
                               DataType dtype) {
  Output& made = scalars_[{name, dtype}];
  if (!made.valid()) made = typed_value(in_, value, dtype, name);
  return made;
}

}  // namespace tagflow::autodiff
