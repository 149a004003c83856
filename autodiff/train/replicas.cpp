#include "autodiff/train/replicas.h"

#include <algorithm>

#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Outputs;
using graph::Scope;
using graph::ScopedVariable;
using graph::VariableScope;

namespace {

// The variable's name without that of the scope it is in.
std::string_view local_name(const ScopedVariable& variable,
                            const VariableScope& vars) {
  std::string_view name = variable.name();
  if (!vars.name().empty() && name.starts_with(vars.name() + "/"))
    name.remove_prefix(vars.name().size() + 1);
  return name;
}

const ScopedVariable* find(const std::vector<ScopedVariable>& variables,
                           const VariableScope& vars, std::string_view name) {
  const auto found =
      std::ranges::find_if(variables, [&](const ScopedVariable& variable) {
        return local_name(variable, vars) == name;
      });
  return found == variables.end() ? nullptr : &*found;
}

Output initial_value(const ScopedVariable& variable, size_t part) {
  return Output(variable.parts()[part].initializer.node()->inputs()[1]);
}

bool is_alike(const ScopedVariable& a, const ScopedVariable& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.parts().size() == b.parts().size();
}

}  // namespace

Replicas::Replicas(const Scope& s, const VariableScope& vars,
                   ReplicaOptions options, const ReplicaLoss& loss)
    : vars_(vars), options_(std::move(options)) {
  if (s.ok() && options_.devices.empty())
    s.fail(invalid_argument("[Replicas] there are no devices"));
  if (!s.ok()) return;
  build(s, loss);
  const Scope in = s.sub_scope("copies");
  Status status = has_servers() ? make_bases(in) : Status();
  bases_ = vars_.trainable_variables();
  for (size_t k = 0; k < copies_.size(); ++k)
    if (s.ok() && status.ok()) status = join_copy(in, k);
  if (!status.ok()) s.fail(std::move(status).with_prefix("[Replicas] "));
}

void Replicas::build(const Scope& s, const ReplicaLoss& loss) {
  for (size_t k = 0; k < options_.devices.size(); ++k) {
    const std::string name = fmt::format("{}_{}", options_.name, k);
    copies_.push_back(
        {is_base(k) ? vars_ : VariableScope().sub_scope(name), {}});
    losses_.push_back(loss({k, at(s.sub_scope(name), k), copies_.back().vars}));
  }
}

// The variables of servers begin with what was to be the first copy's values.
Status Replicas::make_bases(const Scope& s) {
  const VariableScope& first = copies_[0].vars;
  const std::vector<ScopedVariable> variables = first.variables();
  for (size_t i = 0; i < variables.size() && s.ok(); ++i) {
    const ScopedVariable& variable = variables[i];
    const auto name = local_name(variable, first);
    if (!variable.trainable() || variable.parts().size() != 1)
      return invalid_argument(
          "\"{}\" is {}, and servers do not have such variables", name,
          variable.trainable() ? "partitioned" : "not trainable");
    vars_.with_reuse(graph::Reuse::kAuto)
        .with_partitioner({})
        .get(at_server(s, i), name, variable.shape(),
             {.dtype = variable.dtype(),
              .initializer = [value = initial_value(variable, 0)](
                                 const Scope&, const graph::InitialPart&) {
                return value;
              }});
  }
  return {};
}

// Finds the copies of all variables, and lets them begin like those.
Status Replicas::join_copy(const Scope& s, size_t replica) {
  Copy& copy = copies_[replica];
  const auto own = copy.vars.trainable_variables();
  for (const ScopedVariable& base : bases_) {
    const auto name = local_name(base, vars_);
    const ScopedVariable* same = find(own, copy.vars, name);
    if (same == nullptr || !is_alike(*same, base))
      return invalid_argument(
          "{} has {} \"{}\"", copy.vars.name(),
          same == nullptr ? "no variable" : "another shape or type of", name);
    copy.trainable.push_back(*same);
  }
  if (is_base(replica)) return {};
  const auto bases = vars_.variables();
  for (const ScopedVariable& variable : copy.vars.variables()) {
    const auto name = local_name(variable, copy.vars);
    const ScopedVariable* base = find(bases, vars_, name);
    if (base == nullptr || !is_alike(variable, *base) ||
        base->trainable() != variable.trainable())
      return invalid_argument("only {} has \"{}\"", copy.vars.name(), name);
    Outputs& operations = initial_[variable.name()];
    for (size_t i = 0; i < variable.parts().size(); ++i) {
      const ops::Variable& part = variable.parts()[i].variable;
      operations.push_back(
          ops::assign(s.with_device(part.handle.node()->device()), part,
                      initial_value(*base, i)));
    }
  }
  return {};
}

Output Replicas::initialize(const Scope& s) const {
  if (!s.ok()) return {};
  Outputs all = vars_.initialize(s.sub_scope("initialize"));
  for (size_t k = 0; k < copies_.size(); ++k) {
    if (is_base(k)) continue;
    for (const ScopedVariable& variable : copies_[k].vars.variables()) {
      const auto like_base = initial_.find(variable.name());
      if (like_base != initial_.end()) {
        for (const Output& one : like_base->second) all.push_back(one);
      } else {  // a slot
        for (const graph::VariablePart& part : variable.parts())
          all.push_back(part.initializer);
      }
    }
  }
  return ops::group(s, all);
}

std::vector<VariableGradient> Replicas::gradients(const Scope& in,
                                                  size_t replica) const {
  return compute_gradients(at(in, replica), losses_[replica],
                           copies_[replica].trainable);
}

Output Replicas::minimize(const Scope& s, const OptimizerFn& make,
                          const ApplyOptions& options) const {
  const Scope in = s.sub_scope("minimize");
  if (!in.ok()) return {};
  return has_servers() ? minimize_at_servers(s, in, make, options)
                       : minimize_mirrored(s, in, make, options);
}

Output Replicas::minimize_mirrored(const Scope& s, const Scope& in,
                                   const OptimizerFn& make,
                                   const ApplyOptions& options) const {
  GradientLists lists;
  for (size_t k = 0; k < copies_.size(); ++k) lists.push_back(gradients(in, k));
  lists = all_reduce_mean(in, options_.devices, std::move(lists),
                          options_.all_reduce);
  Outputs updates;
  for (size_t k = 0; k < copies_.size() && in.ok(); ++k) {
    const Scope after = in.with_control_dependencies({losses_[k]});
    // The step is counted when all have read it.
    updates.push_back(make(copies_[k].vars)
                          .apply_gradients(at(after, k), lists[k],
                                           {.transform = options.transform}));
  }
  if (!in.ok()) return {};
  if (options.global_step.valid()) {
    const Scope end = in.with_control_dependencies(updates);
    updates = options.global_step.assign(
        end, ops::add(end, options.global_step.read(end), 1));
  }
  return ops::group(s, updates);
}

}  // namespace tagflow::autodiff
