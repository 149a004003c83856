// The variables of an optimizer.
#include <algorithm>

#include "autodiff/train/optimizer_step.h"
#include "autodiff/train/values.h"

namespace tagflow::autodiff {

using graph::Scope;
using graph::ScopedVariable;

namespace {

// The partitioner for slots, which are partitioned like the variable; null
// if it is in one piece.
graph::Partitioner same_cut(const ScopedVariable& variable) {
  if (!variable.is_partitioned()) return {};
  const auto parts = int64_t(variable.parts().size());
  const auto axis = size_t(variable.partition_axis());
  return [=](const Shape& shape, DataType) -> Result<std::vector<int64_t>> {
    std::vector<int64_t> counts(size_t(shape.rank()), 1);
    counts[axis] = parts;
    return counts;
  };
}

}  // namespace

// Makes a variable with the first free name of "name", "name_1", ....
ScopedVariable Optimizer::State::make(const Scope& s, const std::string& name,
                                      const Shape& shape, double initial,
                                      graph::VariableOptions options) const {
  const std::string prefix = vars.name().empty() ? "" : vars.name() + "/";
  const std::vector<ScopedVariable> variables = vars.variables();
  const auto is_taken = [&](const std::string& candidate) {
    return std::ranges::find(variables, prefix + candidate,
                             &ScopedVariable::name) != variables.end();
  };
  std::string free = name;
  for (int i = 1; is_taken(free); ++i) free = fmt::format("{}_{}", name, i);
  options.initializer = graph::initializers::constant(initial);
  options.trainable = false;
  return vars.with_reuse(graph::Reuse::kNever)
      .with_partitioner({})
      .get(s, free, shape, options);
}

const std::vector<ScopedVariable>& Optimizer::State::slots_of(
    const Scope& s, const ScopedVariable& variable) {
  const auto [found, is_new] = slots.try_emplace(variable.name());
  if (!is_new) return found->second;
  const Output handle = variable.parts()[0].variable.handle;
  const Scope beside = s.with_device(handle.node()->device());
  for (const UpdateRule::Slot& slot : rule.slots)
    found->second.push_back(
        make(beside, variable.name() + "/" + rule.name, variable.shape(),
             slot.initial,
             {.dtype = variable.dtype(), .partitioner = same_cut(variable)}));
  return found->second;
}

const std::vector<ScopedVariable>& Optimizer::State::all_powers(
    const Scope& s, DataType dtype) {
  for (size_t i = powers.size(); i < rule.powers.size(); ++i)
    powers.push_back(make(s, rule.powers[i].argument, {}, rule.powers[i].base,
                          {.dtype = sum_type(dtype)}));
  return powers;
}

}  // namespace tagflow::autodiff
