// Functions of a library: a part of graph/file/graph_proto.h.
#include <algorithm>

#include "graph/file/graph_proto.h"
#include "graph/file/tensor_proto.h"
#include "graph/proto/graph.pb.h"

namespace tagflow::graph {
namespace {

Result<ArgDef> arg_from_proto(const tensorflow::OpDef::ArgDef& proto) {
  ArgDef arg;
  arg.name = proto.name();
  TAGFLOW_ASSIGN(arg.dtype, dtype_from_proto(proto.type()));
  arg.type_attr = proto.type_attr();
  arg.number_attr = proto.number_attr();
  arg.type_list_attr = proto.type_list_attr();
  arg.is_ref = proto.is_ref();
  const int said = (arg.dtype != DataType::kInvalid) + !arg.type_attr.empty() +
                   !arg.type_list_attr.empty();
  if (said != 1)
    return invalid_argument(
        "argument \"{}\" must have one of type, type_attr, type_list_attr; "
        "it has {}",
        arg.name, said);
  return arg;
}

void arg_to_proto(const ArgDef& arg, tensorflow::OpDef::ArgDef* proto) {
  proto->set_name(arg.name);
  proto->set_type(tensorflow::DataType(arg.dtype));
  proto->set_type_attr(arg.type_attr);
  proto->set_number_attr(arg.number_attr);
  proto->set_type_list_attr(arg.type_list_attr);
  proto->set_is_ref(arg.is_ref);
}

Result<AttrDef> attr_def_from_proto(const tensorflow::OpDef::AttrDef& proto,
                                    LimitsLeft& left) {
  AttrDef attr;
  attr.name = proto.name();
  attr.type = proto.type();
  if (proto.has_default_value()) {
    TAGFLOW_ASSIGN(attr.default_value,
                   attr_from_proto(proto.default_value(), left));
  }
  if (proto.has_minimum()) attr.minimum = proto.minimum();
  const auto& allowed = proto.allowed_values().list();
  for (int type : allowed.type()) {
    TAGFLOW_ASSIGN(const DataType known, dtype_from_proto(type));
    attr.allowed_types.push_back(known);
  }
  attr.allowed_strings.assign(allowed.s().begin(), allowed.s().end());
  return attr;
}

Status attr_def_to_proto(const AttrDef& attr,
                         tensorflow::OpDef::AttrDef* proto) {
  proto->set_name(attr.name);
  proto->set_type(attr.type);
  if (attr.default_value)
    TAGFLOW_RETURN_IF_ERROR(
        attr_to_proto(*attr.default_value, proto->mutable_default_value()));
  proto->set_has_minimum(attr.minimum.has_value());
  proto->set_minimum(attr.minimum.value_or(0));
  if (attr.allowed_types.empty() && attr.allowed_strings.empty()) return {};
  auto* allowed = proto->mutable_allowed_values()->mutable_list();
  for (DataType type : attr.allowed_types)
    allowed->add_type(tensorflow::DataType(type));
  for (const std::string& text : attr.allowed_strings) allowed->add_s(text);
  return {};
}

// Checks that an attribute that an argument names exists and has its type.
Status check_arg_attr(const OpDef& op, const ArgDef& arg,
                      const std::string& attr, std::string_view type) {
  if (attr.empty()) return {};
  const AttrDef* def = op.find_attr(attr);
  if (def != nullptr && def->type == type) return {};
  return invalid_argument(
      "argument \"{}\" needs an attribute \"{}\" of type {}", arg.name, attr,
      type);
}

Status check_args(const OpDef& op, const std::vector<ArgDef>& args) {
  for (const ArgDef& arg : args) {
    TAGFLOW_RETURN_IF_ERROR(check_arg_attr(op, arg, arg.type_attr, "type"));
    TAGFLOW_RETURN_IF_ERROR(check_arg_attr(op, arg, arg.number_attr, "int"));
    TAGFLOW_RETURN_IF_ERROR(
        check_arg_attr(op, arg, arg.type_list_attr, "list(type)"));
  }
  return {};
}

Result<OpDef> signature_from_proto(const tensorflow::OpDef& proto,
                                   LimitsLeft& left) {
  OpDef op;
  op.name = proto.name();
  TAGFLOW_RETURN_IF_ERROR(check_function_name(op.name));
  for (const auto& attr : proto.attr()) {
    TAGFLOW_ASSIGN(AttrDef def, attr_def_from_proto(attr, left));
    op.attrs.push_back(std::move(def));
  }
  for (const auto& input : proto.input_arg()) {
    TAGFLOW_ASSIGN(ArgDef arg, arg_from_proto(input));
    op.inputs.push_back(std::move(arg));
  }
  for (const auto& output : proto.output_arg()) {
    TAGFLOW_ASSIGN(ArgDef arg, arg_from_proto(output));
    op.outputs.push_back(std::move(arg));
  }
  TAGFLOW_RETURN_IF_ERROR(check_args(op, op.inputs));
  TAGFLOW_RETURN_IF_ERROR(check_args(op, op.outputs));
  op.is_stateful = proto.is_stateful();
  op.is_commutative = proto.is_commutative();
  op.allows_uninitialized_input = proto.allows_uninitialized_input();
  return op;
}

Status signature_to_proto(const OpDef& op, tensorflow::OpDef* proto) {
  proto->set_name(op.name);
  for (const ArgDef& arg : op.inputs) arg_to_proto(arg, proto->add_input_arg());
  for (const ArgDef& arg : op.outputs)
    arg_to_proto(arg, proto->add_output_arg());
  for (const AttrDef& attr : op.attrs)
    TAGFLOW_RETURN_IF_ERROR(attr_def_to_proto(attr, proto->add_attr()));
  proto->set_is_stateful(op.is_stateful);
  proto->set_is_commutative(op.is_commutative);
  proto->set_allows_uninitialized_input(op.allows_uninitialized_input);
  return {};
}

}  // namespace

Result<FunctionDef> function_from_proto(const tensorflow::FunctionDef& proto,
                                        LimitsLeft& left) {
  FunctionDef function;
  TAGFLOW_ASSIGN(function.signature,
                 signature_from_proto(proto.signature(), left));
  function.control_outputs.assign(proto.signature().control_output().begin(),
                                  proto.signature().control_output().end());
  function.nodes.reserve(
      std::min<size_t>(size_t(proto.node_def_size()), left.nodes));
  for (const auto& node : proto.node_def()) {
    TAGFLOW_ASSIGN(NodeDef def, node_from_proto(node, left));
    function.nodes.push_back(std::move(def));
  }
  function.ret.insert(proto.ret().begin(), proto.ret().end());
  function.control_ret.insert(proto.control_ret().begin(),
                              proto.control_ret().end());
  TAGFLOW_ASSIGN(function.attrs, attrs_from_proto(proto.attr(), left));
  for (const auto& [index, arg] : proto.arg_attr()) {
    TAGFLOW_ASSIGN(function.arg_attrs[index],
                   attrs_from_proto(arg.attr(), left));
  }
  function.resource_arg_unique_ids.insert(
      proto.resource_arg_unique_id().begin(),
      proto.resource_arg_unique_id().end());
  return function;
}

Status function_to_proto(const FunctionDef& function,
                         tensorflow::FunctionDef* proto) {
  TAGFLOW_RETURN_IF_ERROR(
      signature_to_proto(function.signature, proto->mutable_signature()));
  for (const std::string& output : function.control_outputs)
    proto->mutable_signature()->add_control_output(output);
  for (const NodeDef& node : function.nodes)
    TAGFLOW_RETURN_IF_ERROR(node_to_proto(node, proto->add_node_def()));
  proto->mutable_ret()->insert(function.ret.begin(), function.ret.end());
  proto->mutable_control_ret()->insert(function.control_ret.begin(),
                                       function.control_ret.end());
  TAGFLOW_RETURN_IF_ERROR(
      attrs_to_proto(function.attrs, proto->mutable_attr()));
  for (const auto& [index, attrs] : function.arg_attrs)
    TAGFLOW_RETURN_IF_ERROR(attrs_to_proto(
        attrs, (*proto->mutable_arg_attr())[index].mutable_attr()));
  proto->mutable_resource_arg_unique_id()->insert(
      function.resource_arg_unique_ids.begin(),
      function.resource_arg_unique_ids.end());
  return {};
}

}  // namespace tagflow::graph
