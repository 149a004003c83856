#include "graph/builder/variable_maker.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "graph/builder/scope_access.h"

namespace tagflow::graph {

VariableMaker::VariableMaker(const Scope& s, std::string name,
                             const Shape& shape, const VariableOptions& options)
    : root_(ScopeAccess::root(s)),
      options_(options),
      data_(std::make_shared<ScopedVariable::Data>()) {
  data_->name = std::move(name);
  data_->dtype = options.dtype;
  data_->shape = shape;
  data_->trainable = options.trainable;
}

ScopedVariable VariableMaker::done() const {
  ScopedVariable variable;
  variable.data_ = data_;
  return variable;
}

Result<std::vector<int64_t>> VariableMaker::partition(
    const std::string& name, const Shape& shape,
    const VariableOptions& options) {
  if (!options.partitioner || shape.rank() == 0) return std::vector<int64_t>();
  Result<std::vector<int64_t>> result =
      options.partitioner(shape, options.dtype);
  if (!result.ok())
    return std::move(result).status().with_prefix(
        fmt::format("[VariableScope::get] \"{}\": ", name));
  const auto fits = [&](size_t i) {
    return (*result)[i] == 1 ||
           ((*result)[i] > 1 && (*result)[i] <= shape.dim(int(i)));
  };
  int cut = 0;  // dimensions
  bool good = result->size() == size_t(shape.rank());
  for (size_t i = 0; good && i < result->size(); ++i) {
    good = fits(i);
    cut += (*result)[i] > 1 ? 1 : 0;
  }
  if (good && cut <= 1) return result;
  return invalid_argument(
      "[VariableScope::get] \"{}\" of shape {} cannot be cut into [{}] parts: "
      "there "
      "must be a number for each dimension, 1 to its size, and at most one "
      "above 1",
      name, shape.to_string(), fmt::join(*result, ","));
}

Status VariableMaker::check_same(const ScopedVariable& variable,
                                 const Shape& shape,
                                 const VariableOptions& options) {
  const ScopedVariable::Data& known = *variable.data_;
  if (known.shape != shape || known.dtype != options.dtype)
    return invalid_argument(
        "[VariableScope::get] \"{}\" is {}{}, and asked for as {}{}",
        known.name, dtype_name(known.dtype), known.shape.to_string(),
        dtype_name(options.dtype), shape.to_string());
  if (known.value.valid()) return {};
  TAGFLOW_ASSIGN(const auto wanted, partition(known.name, shape, options));
  if (wanted == known.partition) return {};
  const auto text = [](const std::vector<int64_t>& parts) {
    return parts.empty() ? "in one piece"
                         : fmt::format("in [{}] parts", fmt::join(parts, ","));
  };
  return invalid_argument("[VariableScope::get] \"{}\" is {}, and asked for {}",
                          known.name, text(known.partition), text(wanted));
}

Result<ScopedVariable> VariableMaker::make_value(
    const VariableScope::ValueFn& value) {
  const Scope at = root_.named(data_->name);
  data_->value = value(at, data_->name, data_->shape, data_->dtype);
  TAGFLOW_RETURN_IF_ERROR(root_.status());
  if (!data_->value.has_tensor() || data_->value.dtype() != data_->dtype ||
      !data_->value.shape().compatible(data_->shape))
    return invalid_argument(
        "[VariableScope::get] \"{}\": {}{} is wanted, the value is {}{}",
        data_->name, dtype_name(data_->dtype), data_->shape.to_string(),
        dtype_name(data_->value.dtype()), data_->value.shape().to_string());
  return done();
}

Result<ScopedVariable> VariableMaker::make() {
  const DataType dtype = data_->dtype;
  if (!is_numeric(dtype) && dtype != DataType::kBool &&
      dtype != DataType::kString)
    return invalid_argument(
        "[VariableScope::get] \"{}\": there is no variable of {}", data_->name,
        dtype_name(dtype));
  TAGFLOW_ASSIGN(data_->partition,
                 partition(data_->name, data_->shape, options_));
  data_->is_partitioned = !data_->partition.empty();
  const auto& cuts = data_->partition;
  const auto cut =
      std::ranges::find_if(cuts, [](int64_t parts) { return parts > 1; });
  data_->partition_axis = cut == cuts.end() ? 0 : int(cut - cuts.begin());
  const int64_t parts = cut == cuts.end() ? 1 : *cut;
  std::vector<int64_t> offset(size_t(data_->shape.rank()), 0);
  for (int64_t i = 0; i < parts; ++i) {
    Shape shape = data_->shape;
    if (parts > 1) {
      const int axis = data_->partition_axis;
      const int64_t rows = shape.dim(axis);
      // The first parts are one row longer.
      shape.set_dim(axis, rows / parts + (i < rows % parts ? 1 : 0));
    }
    TAGFLOW_RETURN_IF_ERROR(add_part(offset, shape));
    if (parts > 1)
      offset[size_t(data_->partition_axis)] += shape.dim(data_->partition_axis);
  }
  return done();
}

Status VariableMaker::add_part(std::vector<int64_t> offset,
                               const Shape& shape) {
  VariablePart part;
  part.name = data_->name;
  if (data_->is_partitioned)
    part.name += fmt::format("/part_{}", data_->parts.size());
  part.offset = std::move(offset);
  part.shape = shape;
  part.variable = ops::variable(root_.named(part.name), data_->dtype, shape,
                                {.container = "", .shared_name = part.name});
  TAGFLOW_RETURN_IF_ERROR(root_.status());
  if (part.variable.handle.node()->name() != part.name)
    return error(
        Code::kAlreadyExists,
        "[VariableScope::get] \"{}\": the graph has another node or scope "
        "of that name",
        part.name);
  TAGFLOW_ASSIGN(const Output value, initial_value(part));
  part.initializer =
      ops::assign(root_.named(part.name + "/Assign"), part.variable, value);
  data_->parts.push_back(std::move(part));
  return root_.status();
}

Result<Output> VariableMaker::initial_value(const VariablePart& part) {
  Initializer make = options_.initializer;
  if (!make)
    make = is_floating(data_->dtype) ? initializers::glorot_uniform()
                                     : initializers::zeros();
  const Output value =
      make(root_.sub_scope(part.name + "/Initializer"),
           {data_->dtype, part.shape, data_->shape, part.offset});
  TAGFLOW_RETURN_IF_ERROR(root_.status());
  if (value.has_tensor() && value.dtype() == data_->dtype &&
      value.shape().compatible(part.shape))
    return value;
  return invalid_argument(
      "[VariableScope::get] \"{}\" is {}{}, but its initializer makes {}{}",
      part.name, dtype_name(data_->dtype), part.shape.to_string(),
      dtype_name(value.dtype()), value.shape().to_string());
}

}  // namespace tagflow::graph
