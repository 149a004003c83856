#include "graph/builder/scoped_variable.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/scope_access.h"
#include "graph/builder/scoped_variable_data.h"

namespace tagflow::graph {

namespace {

const std::string kNoName;
const Shape kNoShape;
const std::vector<VariablePart> kNoParts;

}  // namespace

const std::string& ScopedVariable::name() const {
  return valid() ? data_->name : kNoName;
}
DataType ScopedVariable::dtype() const {
  return valid() ? data_->dtype : DataType::kInvalid;
}
const Shape& ScopedVariable::shape() const {
  return valid() ? data_->shape : kNoShape;
}
bool ScopedVariable::trainable() const { return valid() && data_->trainable; }
const std::vector<VariablePart>& ScopedVariable::parts() const {
  return valid() ? data_->parts : kNoParts;
}
bool ScopedVariable::is_partitioned() const {
  return valid() && data_->is_partitioned;
}
int ScopedVariable::partition_axis() const {
  return valid() ? data_->partition_axis : 0;
}

Output ScopedVariable::read(const Scope& s) const {
  if (!valid() || !s.ok()) return {};
  if (data_->value.valid()) return data_->value;
  if (parts().size() == 1) return ops::read(s, parts()[0].variable);
  const Scope in = ScopeAccess::construct_scope(s, "read");
  Inputs slices;
  for (const VariablePart& part : parts())
    slices.add(ops::read(in, part.variable));
  return ops::concat(in, slices, partition_axis());
}

Output ScopedVariable::assign(const Scope& s, const Input& value) const {
  if (!valid() || !s.ok()) return {};
  if (parts().empty()) {
    s.fail(
        invalid_argument("[VariableScope::get] \"{}\" is a value, to which "
                         "nothing can be assigned",
                         name()));
    return {};
  }
  if (parts().size() == 1) return ops::assign(s, parts()[0].variable, value);
  const Scope in = ScopeAccess::construct_scope(s, "assign");
  const Output whole = in.resolve(value, dtype(), "value");
  // Without this check, slices of a value that is too large would succeed.
  const Output checked = ops::ensure_shape(in, whole, shape());
  Outputs all;
  for (const VariablePart& part : parts()) {
    const int64_t rank = part.shape.rank();
    const Tensor begin = Tensor::of<int64_t>({rank}, std::span(part.offset));
    const Tensor size = Tensor::of<int64_t>({rank}, part.shape.dims());
    all.push_back(
        ops::assign(in, part.variable, ops::slice(in, checked, begin, size)));
  }
  return ops::group(in, all);
}

std::string ScopedVariable::shape_and_slice(size_t part) const {
  if (!is_partitioned()) return "";
  std::string whole, slice;
  const VariablePart& one = parts()[part];
  for (int i = 0; i < shape().rank(); ++i) {
    whole += fmt::format("{} ", shape().dim(i));
    slice += fmt::format("{}{},{}", i == 0 ? "" : ":", one.offset[size_t(i)],
                         one.shape.dim(i));
  }
  return whole + slice;
}

}  // namespace tagflow::graph
