#include "graph/builder/rnn_steps.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/scope_access.h"

namespace tagflow::graph {

RnnSize rnn_size(const Scope& s, const Output& x, int dim) {
  const PartialShape shape = x.shape();
  if (shape.has_rank() && dim < shape.rank() && shape.dim_known(dim))
    return {shape.dim(dim),
            s.resolve(shape.dim(dim), DataType::kInt32, "size")};
  return {PartialShape::kUnknown, ops::gather(s, ops::shape(s, x), dim)};
}

Output with_known_shape(const Scope& s, const Output& x,
                        const PartialShape& shape) {
  if (x.has_tensor() && x.shape().compatible(shape))
    s.graph().set_output_shape(x.node(), x.port(), *x.shape().merge(shape));
  return x;
}

Output rnn_zeros(const Scope& s, const RnnSize& batch, const Shape& rest,
                 DataType dtype) {
  Inputs dims{batch.value};
  PartialShape shape{batch.known};
  for (const int64_t dim : rest.dims()) {
    dims.add(s.resolve(dim, DataType::kInt32, "size"));
    shape.add_dim(dim);
  }
  Input nothing = 0;
  if (dtype == DataType::kBool) nothing = false;
  if (dtype == DataType::kString) nothing = std::string();
  const Output zero = s.resolve(nothing, dtype, "zero");
  return with_known_shape(s, ops::fill(s, ops::pack(s, dims), zero), shape);
}

RnnSteps::RnnSteps(const Scope& s, const char* what, const VariableScope& vars,
                   const RnnCell& cell, int64_t input_size,
                   const RnnSize& batch, DataType dtype)
    : scope_(s),
      what_(what),
      name_(ScopeAccess::name(s)),
      state_(cell.state()),
      output_size_(cell.output_size()),
      batch_(batch.known),
      dtype_(dtype),
      fn_(s.ok() ? cell.build(s, vars, input_size, dtype) : CellFn()) {
  if (s.ok() && !fn_)
    s.fail(invalid_argument("[{}] \"{}\": the cell builds no function", what,
                            name_));
}

PartialShape RnnSteps::state_shape(size_t part) const {
  return {batch_, state_[part].size};
}
PartialShape RnnSteps::output_shape() const { return {batch_, output_size_}; }

Status RnnSteps::check_state(const char* which, const Outputs& state) const {
  if (state.size() != state_.size())
    return invalid_argument(
        "[{}] \"{}\": {} has {} tensors, the state of the cell {}", what_,
        name_, which, state.size(), state_.size());
  for (size_t i = 0; i < state_.size(); ++i) {
    const Output& part = state[i];
    if (part.has_tensor() && remove_ref(part.dtype()) == dtype_ &&
        part.shape().compatible(state_shape(i)))
      continue;
    return invalid_argument(
        "[{}] \"{}\": {} of {} must be {}{}, not {}{} (\"{}\")", what_, name_,
        state_[i].name, which, dtype_name(dtype_), state_shape(i).to_string(),
        dtype_name(part.dtype()), part.shape().to_string(), part.name());
  }
  return {};
}

CellStep RnnSteps::operator()(const Scope& in, const Output& input,
                              const Outputs& state) const {
  if (!in.ok() || !fn_) return {};
  CellStep step = fn_(in, input, state);
  if (!in.ok()) return {};
  Status status = check_state("what the cell returns", step.state);
  if (status.ok() && !step.output.has_tensor())
    status = invalid_argument("[{}] \"{}\": the cell returns no output", what_,
                              name_);
  if (status.ok() && !step.output.shape().compatible(output_shape()))
    status = invalid_argument(
        "[{}] \"{}\": the cell returns an output of shape {}, not {}", what_,
        name_, step.output.shape().to_string(), output_shape().to_string());
  if (!status.ok()) {
    in.fail(std::move(status));
    return {};
  }
  with_known_shape(in, step.output, output_shape());
  for (size_t i = 0; i < state_.size(); ++i)
    with_known_shape(in, step.state[i], state_shape(i));
  return step;
}

}  // namespace tagflow::graph
