#include "graph/builder/tensor_array.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"

namespace tagflow::graph {

namespace {

// `first` and then the dimensions of `rest`.
PartialShape prepend(int64_t first, const PartialShape& rest) {
  if (!rest.has_rank()) return {};
  PartialShape shape{first};
  for (const int64_t dim : rest.dims()) shape.add_dim(dim);
  return shape;
}

PartialShape without_first(const PartialShape& shape) {
  if (!shape.has_rank() || shape.rank() == 0) return {};
  return PartialShape(shape.dims().subspan(1));
}

Output with_shape(const Scope& s, const Output& output,
                  const PartialShape& shape) {
  if (output.valid() && output.shape().compatible(shape))
    s.graph().set_output_shape(output.node(), output.port(),
                               *output.shape().merge(shape));
  return output;
}

}  // namespace

TensorArray::TensorArray(const Scope& s, const Input& size, DataType dtype,
                         TensorArrayOptions options) {
  const OpResult made = s.op("TensorArrayV3", {size},
                             {{"dtype", dtype},
                              {"element_shape", options.element_shape},
                              {"dynamic_size", options.dynamic_size},
                              {"clear_after_read", options.clear_after_read},
                              {"identical_element_shapes", options.infer_shape},
                              {"tensor_array_name", std::move(options.name)}});
  if (made.node() == nullptr) return;
  array_ = std::make_shared<Array>();
  array_->handle = made[0];
  array_->dtype = dtype;
  array_->element_shape = std::move(options.element_shape);
  array_->infer_shape = options.infer_shape;
  flow_ = made[1];
}

DataType TensorArray::dtype() const {
  return valid() ? array_->dtype : DataType::kInvalid;
}

PartialShape TensorArray::element_shape() const {
  return valid() ? array_->element_shape : PartialShape();
}

Output TensorArray::handle() const {
  return valid() ? array_->handle : Output();
}

TensorArray TensorArray::with_flow(Output flow) const {
  TensorArray array = *this;
  array.flow_ = flow;
  return array;
}

bool TensorArray::usable(const Scope& s, const char* what) const {
  if (!s.ok()) return false;
  if (valid() && flow_.valid()) return true;
  s.fail(invalid_argument("[TensorArray] {}: the array is invalid", what));
  return false;
}

bool TensorArray::learn(const Scope& s, const char* what,
                        const PartialShape& shape) const {
  PartialShape& known = array_->element_shape;
  if (!known.compatible(shape)) {
    s.fail(invalid_argument(
        "[TensorArray] {}: \"{}\" has elements of shape {}, not {}", what,
        array_->handle.name(), known.to_string(), shape.to_string()));
    return false;
  }
  if (array_->infer_shape) known = *known.merge(shape);
  return true;
}

Output TensorArray::checked(const Scope& s, const char* what,
                            const Input& value, Element element) const {
  if (!usable(s, what)) return {};
  const Output tensor = s.resolve(value, dtype(), "value");
  if (!s.ok()) return {};
  if (!tensor.has_tensor()) {
    s.fail(
        invalid_argument("[TensorArray] {}: the value is not a tensor", what));
    return {};
  }
  if (remove_ref(tensor.dtype()) != dtype()) {
    s.fail(invalid_argument(
        "[TensorArray] {}: \"{}\" is an array of {}, but \"{}\" is {}", what,
        array_->handle.name(), dtype_name(dtype()), tensor.name(),
        dtype_name(tensor.dtype())));
    return {};
  }
  PartialShape shape = tensor.shape();
  if (element != Element::kWhole && shape.has_rank() && shape.rank() == 0) {
    s.fail(invalid_argument(
        "[TensorArray] {}: \"{}\" is a scalar, which has no first dimension",
        what, tensor.name()));
    return {};
  }
  if (element != Element::kWhole) shape = without_first(shape);
  if (element == Element::kRows) shape = prepend(PartialShape::kUnknown, shape);
  return learn(s, what, shape) ? tensor : Output();
}

TensorArray TensorArray::write(const Scope& s, const Input& index,
                               const Input& value) const {
  const Output tensor = checked(s, "write", value, Element::kWhole);
  if (!tensor.valid()) return with_flow({});
  return with_flow(
      s.op("TensorArrayWriteV3", {handle(), index, tensor, flow_}));
}

Output TensorArray::read(const Scope& s, const Input& index) const {
  if (!usable(s, "read")) return {};
  const Output value =
      s.op("TensorArrayReadV3", {handle(), index, flow_}, {{"dtype", dtype()}});
  return with_shape(s, value, element_shape());
}

Output TensorArray::stack(const Scope& s) const {
  if (!usable(s, "stack")) return {};
  const Scope inner = s.sub_scope("stack");
  return gather(inner, ops::range(inner, 0, size(inner), 1));
}

Output TensorArray::gather(const Scope& s, const Input& indices) const {
  if (!usable(s, "gather")) return {};
  const Output value =
      s.op("TensorArrayGatherV3", {handle(), indices, flow_},
           {{"dtype", dtype()}, {"element_shape", element_shape()}});
  return with_shape(s, value, prepend(PartialShape::kUnknown, element_shape()));
}

Output TensorArray::concat(const Scope& s) const {
  if (!usable(s, "concat")) return {};
  const PartialShape rest = without_first(element_shape());
  return s.op("TensorArrayConcatV3", {handle(), flow_},
              {{"dtype", dtype()}, {"element_shape_except0", rest}})[0];
}

TensorArray TensorArray::unstack(const Scope& s, const Input& value) const {
  const Scope inner = s.sub_scope("unstack");
  const Output tensor = checked(inner, "unstack", value, Element::kRow);
  if (!tensor.valid()) return with_flow({});
  const PartialShape shape = tensor.shape();
  Input count;
  if (shape.has_rank() && shape.dim_known(0))
    count = shape.dim(0);
  else
    count = ops::gather(inner, ops::shape(inner, tensor), 0);
  return scatter(inner, ops::range(inner, 0, count, 1), tensor);
}

TensorArray TensorArray::scatter(const Scope& s, const Input& indices,
                                 const Input& value) const {
  const Output tensor = checked(s, "scatter", value, Element::kRow);
  if (!tensor.valid()) return with_flow({});
  return with_flow(
      s.op("TensorArrayScatterV3", {handle(), indices, tensor, flow_}));
}

TensorArray TensorArray::split(const Scope& s, const Input& value,
                               const Input& lengths) const {
  const Output tensor = checked(s, "split", value, Element::kRows);
  if (!tensor.valid()) return with_flow({});
  Output pieces = s.resolve(lengths, DataType::kInt64, "lengths");
  if (pieces.dtype() == DataType::kInt32)
    pieces = ops::cast(s, pieces, DataType::kInt64);
  return with_flow(
      s.op("TensorArraySplitV3", {handle(), tensor, pieces, flow_}));
}

Output TensorArray::size(const Scope& s) const {
  if (!usable(s, "size")) return {};
  return s.op("TensorArraySizeV3", {handle(), flow_});
}

Output TensorArray::close(const Scope& s) const {
  if (!usable(s, "close")) return {};
  return s.with_control_dependencies(flow_).op("TensorArrayCloseV3",
                                               {handle()});
}

}  // namespace tagflow::graph
