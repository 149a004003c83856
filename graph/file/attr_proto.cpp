#include "graph/file/attr_proto.h"

#include "graph/file/tensor_proto.h"
#include "graph/proto/attr.pb.h"

namespace tagflow::graph {
namespace {

using ListValue = tensorflow::AttrValue::ListValue;

Result<FunctionRef> function_from_proto(const tensorflow::NameAttrList& proto,
                                        LimitsLeft& left, int depth) {
  if (depth >= left.limits.max_attr_depth)
    return error(Code::kResourceExhausted,
                 "functions nest deeper than {} in an attribute",
                 left.limits.max_attr_depth);
  FunctionRef function;
  function.name = proto.name();
  Result<AttrMap> attrs = attrs_from_proto(proto.attr(), left, depth + 1);
  if (!attrs.ok())
    return std::move(attrs).status().with_prefix(
        fmt::format("function \"{}\": ", proto.name()));
  function.attrs = std::move(attrs).value();
  return function;
}

Status function_to_proto(const FunctionRef& function,
                         tensorflow::NameAttrList* proto) {
  proto->set_name(function.name);
  return attrs_to_proto(function.attrs, proto->mutable_attr());
}

// The list of a repeated field, each element converted.
template <class T, class Field, class F>
Result<AttrValue> list_of(const Field& field, F&& convert) {
  std::vector<T> list;
  list.reserve(size_t(field.size()));
  for (const auto& element : field) {
    TAGFLOW_ASSIGN(T value, convert(element));
    list.push_back(std::move(value));
  }
  return AttrValue(std::move(list));
}

template <class T, class Field>
AttrValue plain_list(const Field& field) {
  return AttrValue(std::vector<T>(field.begin(), field.end()));
}

Result<AttrValue> list_from_proto(const ListValue& list, LimitsLeft& left,
                                  int depth) {
  const int kinds = (list.s_size() > 0) + (list.i_size() > 0) +
                    (list.f_size() > 0) + (list.b_size() > 0) +
                    (list.type_size() > 0) + (list.shape_size() > 0) +
                    (list.tensor_size() > 0) + (list.func_size() > 0);
  if (kinds == 0) return AttrValue(EmptyList());
  if (kinds > 1)
    return invalid_argument("a list has elements of {} kinds", kinds);
  if (list.s_size() > 0) return plain_list<std::string>(list.s());
  if (list.i_size() > 0) return plain_list<int64_t>(list.i());
  if (list.f_size() > 0) return plain_list<float>(list.f());
  if (list.b_size() > 0) return plain_list<bool>(list.b());
  if (list.type_size() > 0)
    return list_of<DataType>(list.type(), dtype_from_proto);
  if (list.shape_size() > 0)
    return list_of<PartialShape>(list.shape(), shape_from_proto);
  if (list.tensor_size() > 0)
    return list_of<Tensor>(list.tensor(), [&](const auto& tensor) {
      return tensor_from_proto(tensor, &left.tensor_bytes,
                               &left.repeated_bytes);
    });
  return list_of<FunctionRef>(list.func(), [&](const auto& function) {
    return function_from_proto(function, left, depth);
  });
}

// Writes one attribute; an alternative per overload.
struct Writer {
  tensorflow::AttrValue* proto;

  Status operator()(std::monostate) const { return {}; }
  Status operator()(const std::string& s) const {
    proto->set_s(s);
    return {};
  }
  Status operator()(int64_t i) const {
    proto->set_i(i);
    return {};
  }
  Status operator()(float f) const {
    proto->set_f(f);
    return {};
  }
  Status operator()(bool b) const {
    proto->set_b(b);
    return {};
  }
  Status operator()(DataType type) const {
    proto->set_type(tensorflow::DataType(type));
    return {};
  }
  Status operator()(const PartialShape& shape) const {
    shape_to_proto(shape, proto->mutable_shape());
    return {};
  }
  Status operator()(const SharedTensor& tensor) const {
    return tensor_to_proto(*tensor, proto->mutable_tensor());
  }
  Status operator()(const FunctionRef& function) const {
    return function_to_proto(function, proto->mutable_func());
  }
  Status operator()(const AttrPlaceholder& placeholder) const {
    proto->set_placeholder(placeholder.name);
    return {};
  }
  Status operator()(const EmptyList&) const {
    proto->mutable_list();
    return {};
  }
  template <class T>
  Status operator()(const std::vector<T>& values) const {
    ListValue& list = *proto->mutable_list();
    for (const auto& value : values)
      TAGFLOW_RETURN_IF_ERROR(add(static_cast<const T&>(value), list));
    return {};
  }

  static Status add(const std::string& s, ListValue& list) {
    list.add_s(s);
    return {};
  }
  static Status add(int64_t i, ListValue& list) {
    list.add_i(i);
    return {};
  }
  static Status add(float f, ListValue& list) {
    list.add_f(f);
    return {};
  }
  static Status add(bool b, ListValue& list) {
    list.add_b(b);
    return {};
  }
  static Status add(DataType type, ListValue& list) {
    list.add_type(tensorflow::DataType(type));
    return {};
  }
  static Status add(const PartialShape& shape, ListValue& list) {
    shape_to_proto(shape, list.add_shape());
    return {};
  }
  static Status add(const Tensor& tensor, ListValue& list) {
    return tensor_to_proto(tensor, list.add_tensor());
  }
  static Status add(const FunctionRef& function, ListValue& list) {
    return function_to_proto(function, list.add_func());
  }
};

}  // namespace

Result<AttrValue> attr_from_proto(const tensorflow::AttrValue& proto,
                                  LimitsLeft& left, int depth) {
  using tensorflow::AttrValue;
  switch (proto.value_case()) {
    case AttrValue::kList:
      return list_from_proto(proto.list(), left, depth);
    case AttrValue::kS:
      return tagflow::AttrValue(proto.s());
    case AttrValue::kI:
      return tagflow::AttrValue(int64_t(proto.i()));
    case AttrValue::kF:
      return tagflow::AttrValue(proto.f());
    case AttrValue::kB:
      return tagflow::AttrValue(proto.b());
    case AttrValue::kType: {
      TAGFLOW_ASSIGN(const DataType type, dtype_from_proto(proto.type()));
      return tagflow::AttrValue(type);
    }
    case AttrValue::kShape: {
      TAGFLOW_ASSIGN(PartialShape shape, shape_from_proto(proto.shape()));
      return tagflow::AttrValue(std::move(shape));
    }
    case AttrValue::kTensor: {
      TAGFLOW_ASSIGN(Tensor tensor,
                     tensor_from_proto(proto.tensor(), &left.tensor_bytes,
                                       &left.repeated_bytes));
      return tagflow::AttrValue(std::move(tensor));
    }
    case AttrValue::kPlaceholder:
      return tagflow::AttrValue(AttrPlaceholder{proto.placeholder()});
    case AttrValue::kFunc: {
      TAGFLOW_ASSIGN(FunctionRef function,
                     function_from_proto(proto.func(), left, depth));
      return tagflow::AttrValue(std::move(function));
    }
    case AttrValue::VALUE_NOT_SET:
      break;
  }
  return tagflow::AttrValue();
}

Status attr_to_proto(const AttrValue& value, tensorflow::AttrValue* proto) {
  return std::visit(Writer{proto}, value.value());
}

}  // namespace tagflow::graph
