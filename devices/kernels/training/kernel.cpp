#include "devices/kernels/training/kernel.h"

#include "devices/kernels/variable/rows.h"
#include "devices/training_rules.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

// The variable, then its slots.
struct TrainingKernel::States {
  std::array<Variable*, DenseTraining::kMostStates> variables{};
  Shape shape;  // of each
};

TrainingKernel::TrainingKernel(const KernelInfo& info, int states,
                               double nanoseconds)
    : dtype_(attr_of<DataType>(info, "T")),
      num_states_(states),
      nanoseconds_(nanoseconds) {
  constexpr std::string_view kApply = "Apply";
  const std::string& op = info.node().op();
  rule_ = op.substr(op.find(kApply) + kApply.size());
  const auto& inputs = info.node().op_def().inputs;
  for (int i = states; i < int(inputs.size()); ++i) {
    const std::string& name = inputs[size_t(i)].name;
    if (rules::is_gradient(name)) {
      gradient_ = i;
    } else if (name == "indices") {
      indices_ = i;
    } else {
      scalars_.push_back(i);
    }
  }
  for (const char* name :
       {"use_nesterov", "update_slots", "multiply_linear_by_lr"})
    option_ = option_ || attr_of<bool>(info, name);
}

Status TrainingKernel::claim(const KernelContext& context,
                             StateClaim& claim) const {
  for (int i = 0; i < num_states_; ++i)
    TAGFLOW_RETURN_IF_ERROR(
        claim_variable(context, i, StateLock::Mode::kExclusive, claim));
  return {};
}

double TrainingKernel::cost(const KernelContext& context) const {
  return nanoseconds_ * double(context.input(gradient_).num_elements());
}

Status TrainingKernel::update(KernelContext& context) const {
  States states;
  TrainingStep step;
  TAGFLOW_RETURN_IF_ERROR(find_states(context, states));
  TAGFLOW_RETURN_IF_ERROR(read_scalars(context, step));
  step.gradient = context.input(gradient_).raw();
  TAGFLOW_RETURN_IF_ERROR(indices_ < 0 ? update_all(context, states, step)
                                       : update_rows(context, states, step));
  pass_reference_on(context);
  return {};
}

Status TrainingKernel::find_states(const KernelContext& context,
                                   States& states) const {
  for (int i = 0; i < num_states_; ++i) {
    TAGFLOW_ASSIGN(Variable * variable,
                   initialized_variable(context, i, dtype_));
    // A slot and the variable must not be the same state.
    const auto& inputs = context.node().op_def().inputs;
    for (int other = 0; other < i; ++other)
      if (states.variables[size_t(other)] == variable)
        return context.fail("{} and {} are both {}, and must be apart",
                            inputs[size_t(other)].name, inputs[size_t(i)].name,
                            variable->describe());
    states.variables[size_t(i)] = variable;
    const Shape shape = variable->value().shape();
    if (i == 0) states.shape = shape;
    if (shape != states.shape)
      return context.fail(
          "{}: {}, whose value is of shape {}, does not fit {}, whose value is "
          "of shape {}",
          inputs[size_t(i)].name, variable->describe(), shape.to_string(),
          states.variables[0]->describe(), states.shape.to_string());
  }
  return {};
}

Status TrainingKernel::read_scalars(const KernelContext& context,
                                    TrainingStep& step) const {
  for (const int i : scalars_) {
    const Tensor& scalar = context.input(i);
    if (!scalar.is_scalar())
      return context.fail("{} must be a scalar, got {}",
                          context.node().op_def().inputs[size_t(i)].name,
                          scalar.describe());
    double& value = step.scalars.emplace_back();
    if (scalar.dtype() == DataType::kInt64) {
      value = double(scalar.scalar_value<int64_t>());
    } else {
      visit_floating(scalar.dtype(), [&]<class T>(TypeTag<T>) {
        value = double(scalar.scalar_value<T>());
      });
    }
  }
  return {};
}

Status TrainingKernel::update_all(KernelContext& context, States& states,
                                  TrainingStep& step) const {
  const Tensor& gradient = context.input(gradient_);
  if (gradient.shape() != states.shape)
    return context.fail(
        "the gradient {} does not fit {}, whose value is of "
        "shape {}",
        gradient.describe(), states.variables[0]->describe(),
        states.shape.to_string());
  std::array<Tensor, DenseTraining::kMostStates> fresh;
  DenseTraining training{rule_, option_, step.scalars, &gradient, {}, {}};
  for (size_t i = 0; i < size_t(num_states_); ++i) {
    Variable& variable = *states.variables[i];
    TAGFLOW_ASSIGN(Tensor * place, variable.place_of_update(context, fresh[i]));
    training.before.push_back(&variable.value());
    training.after.push_back(place);
  }
  if (ElementMover* mover = mover_of(context)) {
    TAGFLOW_RETURN_IF_ERROR(mover->train(context, training));
  } else {
    for (size_t i = 0; i < training.after.size(); ++i) {
      step.before[i] = training.before[i]->raw();
      step.after[i] = training.after[i]->mutable_raw();
    }
    context.parallel_for(
        gradient.num_elements(), nanoseconds_,
        [&](int64_t begin, int64_t end) { apply(step, begin, end); });
  }
  for (size_t i = 0; i < size_t(num_states_); ++i)
    if (fresh[i].valid())
      TAGFLOW_RETURN_IF_ERROR(states.variables[i]->set(std::move(fresh[i])));
  return {};
}

Status TrainingKernel::update_rows(KernelContext& context, States& states,
                                   TrainingStep& step) const {
  const Tensor& gradient = context.input(gradient_);
  const Tensor& indices = context.input(indices_);
  const Shape& shape = states.shape;
  if (shape.rank() < 1)
    return context.fail("{} is a scalar, which has no rows",
                        states.variables[0]->describe());
  if (indices.rank() != 1)
    return context.fail("indices must be a vector, got {}", indices.describe());
  Shape wanted = indices.shape();
  for (int i = 1; i < shape.rank(); ++i) wanted.add_dim(shape.dim(i));
  if (gradient.shape() != wanted)
    return context.fail(
        "the gradient {} should be {} for indices {} into {}, whose value is "
        "of shape {}",
        gradient.describe(), wanted.to_string(), indices.describe(),
        states.variables[0]->describe(), shape.to_string());
  TAGFLOW_ASSIGN(const Tensor numbers,
                 row_numbers(context, indices, shape.dim(0)));
  if (gradient.num_elements() == 0) return {};
  step.numbers = numbers.flat<int64_t>();
  step.row = gradient.num_elements() / numbers.num_elements();
  for (size_t i = 0; i < size_t(num_states_); ++i) {
    TAGFLOW_ASSIGN(Tensor * rows, states.variables[i]->change_rows(context));
    step.before[i] = step.after[i] = rows->mutable_raw();
  }
  // Each shard has the rows of a range, in their order.
  const double nanoseconds = nanoseconds_ * double(gradient.num_elements());
  context.parallel_for(
      shape.dim(0), nanoseconds / double(shape.dim(0)),
      [&](int64_t begin, int64_t end) { apply_rows(step, begin, end); },
      double(numbers.num_elements()));
  return {};
}

}  // namespace tagflow::devices
