// Attributes of nodes from values of Python.
#include <nanobind/stl/string.h>

#include "graph/op_registry.h"
#include "python/src/build_scope.h"
#include "python/src/convert.h"
#include "python/src/error.h"

namespace tagflow::python {
namespace {

namespace nb = nanobind;

std::string bytes_of(nb::handle value) {
  if (nb::isinstance<nb::bytes>(value)) {
    const auto bytes = nb::borrow<nb::bytes>(value);
    return {bytes.c_str(), bytes.size()};
  }
  return nb::cast<std::string>(value);
}

DataType dtype_attr(nb::handle value) {
  const DataType dtype = to_dtype(value.ptr());
  if (dtype == DataType::kInvalid) throw nb::python_error();
  return dtype;
}

Tensor tensor_attr(nb::handle value) {
  Tensor tensor;
  if (!to_tensor(value.ptr(), DataType::kInvalid, "", tensor))
    throw nb::python_error();
  return tensor;
}

template <class F>
auto list_attr(nb::handle value, const F& one) {
  std::vector<decltype(one(value))> list;
  for (const nb::handle item : value) list.push_back(one(item));
  return list;
}

int64_t int_attr(nb::handle value) { return nb::cast<int64_t>(value); }
float float_attr(nb::handle value) { return float(nb::cast<double>(value)); }
bool bool_attr(nb::handle value) { return nb::cast<bool>(value); }
PartialShape shape_attr(nb::handle value) { return to_partial_shape(value); }

FunctionRef func_attr(nb::handle value) {
  return {nb::cast<std::string>(value), {}};
}

AttrValue of_type(std::string_view type, nb::handle value) {
  if (type == "type") return dtype_attr(value);
  if (type == "int") return int_attr(value);
  if (type == "float") return float_attr(value);
  if (type == "bool") return bool_attr(value);
  if (type == "string") return bytes_of(value);
  if (type == "shape") return shape_attr(value);
  if (type == "tensor") return tensor_attr(value);
  if (type == "func") return func_attr(value);
  if (type == "list(type)") return list_attr(value, dtype_attr);
  if (type == "list(int)") return list_attr(value, int_attr);
  if (type == "list(float)") return list_attr(value, float_attr);
  if (type == "list(bool)") return list_attr(value, bool_attr);
  if (type == "list(string)") return list_attr(value, bytes_of);
  if (type == "list(shape)") return list_attr(value, shape_attr);
  if (type == "list(tensor)") return list_attr(value, tensor_attr);
  if (type == "list(func)") return list_attr(value, func_attr);
  throw nb::type_error("an attribute of a type that Python cannot give");
}

// Attributes that no definition has begin with an underscore.
AttrValue of_value(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return bool_attr(value);
  if (nb::isinstance<nb::int_>(value)) return int_attr(value);
  if (nb::isinstance<nb::float_>(value)) return float_attr(value);
  if (nb::isinstance<nb::list>(value)) return list_attr(value, int_attr);
  return bytes_of(value);
}

}  // namespace

AttrMap attrs_of(const graph::OpDef& def, nb::handle dict) {
  AttrMap attrs;
  if (dict.is_none()) return attrs;
  for (const auto& [key, value] : nb::cast<nb::dict>(dict)) {
    const auto name = nb::cast<std::string>(key);
    const graph::AttrDef* const attr = def.find_attr(name);
    if (attr == nullptr && !name.starts_with("_")) {
      std::vector<std::string> names;
      for (const graph::AttrDef& known : def.attrs) names.push_back(known.name);
      const std::string nearest = graph::nearest_name(name, names);
      raise(invalid_argument(
          "[{}] it has no attribute \"{}\"{}", def.name, name,
          nearest.empty() ? ""
                          : fmt::format(", did you mean \"{}\"?", nearest)));
    }
    try {
      attrs.insert_or_assign(
          name, attr == nullptr ? of_value(value) : of_type(attr->type, value));
    } catch (const nb::cast_error&) {
      raise(invalid_argument("[{}] attribute \"{}\" must be of type {}",
                             def.name, name, attr ? attr->type : "string"));
    }
  }
  return attrs;
}

}  // namespace tagflow::python
