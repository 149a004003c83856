#include "graph/file/custom_gradient.h"

#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/functions/ports.h"
#include "graph/op_registry.h"
#include "graph/proto/meta_graph.pb.h"

namespace tagflow::graph {
namespace {

using Types = std::vector<DataType>;

constexpr std::string_view kGradientType = "_gradient_op_type";

class StoredGradients {
 public:
  StoredGradients(const tensorflow::MetaGraphDef& proto,
                  const FunctionLibrary& library)
      : objects_(proto.object_graph_def()), library_(library) {
    for (const auto& one : proto.graph_def().library().registered_gradients())
      functions_.emplace(one.registered_op_type(), one.gradient_func());
  }

  bool empty() const { return functions_.empty(); }

  // The function, or a copy with calls.
  FunctionDef with_calls(const FunctionDef& function) {
    FunctionDef made = function;
    for (NodeDef& node : made.nodes) {
      if (node.op != "IdentityN") continue;
      const auto type = node.attrs.find(kGradientType);
      if (type == node.attrs.end()) continue;
      const auto* name = type->second.get_if<std::string>();
      const auto found =
          name == nullptr ? functions_.end() : functions_.find(*name);
      if (found == functions_.end()) continue;
      if (std::optional<NodeDef> call =
              call_instead(function, node, found->second)) {
        node = *std::move(call);
        // What it captures belongs to one IdentityN.
        functions_.erase(found);
      }
    }
    return made;
  }

  // The functions that the calls need, each with its gradient function.
  struct Made {
    FunctionDef forward, gradient;
  };
  std::vector<Made> take_made() { return std::move(made_); }

 private:
  std::optional<NodeDef> call_instead(const FunctionDef& function,
                                      const NodeDef& node,
                                      const std::string& gradient) {
    const FunctionDef* const stored = library_.find(gradient);
    const auto concrete = objects_.concrete_functions().find(gradient);
    const auto attr = node.attrs.find("T");
    const auto* types =
        attr == node.attrs.end() ? nullptr : attr->second.get_if<Types>();
    if (stored == nullptr || types == nullptr ||
        concrete == objects_.concrete_functions().end())
      return std::nullopt;
    const auto& bound = concrete->second.bound_inputs();
    const auto& args = stored->signature.inputs;
    if (args.size() != types->size() + size_t(bound.size()))
      return std::nullopt;
    Types all = *types;
    for (size_t i = 0; i < args.size(); ++i) {
      if (i >= types->size()) all.push_back(args[i].dtype);
      if (args[i].dtype != all[i] || all[i] == DataType::kInvalid)
        return std::nullopt;
    }
    const std::vector<bool> has_gradient =
        gradients_of(concrete->second, types->size());
    if (!gives(stored->signature, *types, has_gradient)) return std::nullopt;
    NodeDef call{node.name, "PartitionedCall", {}, node.device, {}};
    std::vector<std::string> controls;
    for (const std::string& input : node.inputs)
      (input.starts_with('^') ? controls : call.inputs).push_back(input);
    if (call.inputs.size() != types->size()) return std::nullopt;
    for (const int32_t object : bound) {
      std::optional<std::string> tensor = captured(function, object);
      if (!tensor) return std::nullopt;
      call.inputs.push_back(*std::move(tensor));
    }
    for (std::string& control : controls)
      call.inputs.push_back(std::move(control));
    const std::string forward =
        free_name(fmt::format("{}_forward_{}", gradient, made_.size()));
    call.attrs = {{"Tin", all}, {"Tout", *types}, {"f", FunctionRef{forward}}};
    made_.push_back(
        {make_forward(forward, all, types->size()),
         make_gradient(
             free_name(fmt::format("{}_all_{}", gradient, made_.size())),
             gradient, all, types->size(), has_gradient)});
    return call;
  }

  // Which of the inputs have gradients: "none" in the structure that the
  // function returns stands for the others.
  static std::vector<bool> gradients_of(
      const tensorflow::SavedConcreteFunction& concrete, size_t inputs) {
    const auto& result = concrete.output_signature();
    std::vector<bool> has(inputs, true);
    const auto read = [&](const auto& values) {
      has.clear();
      for (const auto& value : values) has.push_back(!value.has_none_value());
    };
    if (result.has_list_value()) read(result.list_value().values());
    if (result.has_tuple_value()) read(result.tuple_value().values());
    return has;
  }

  // Whether the results are gradients of such inputs.
  static bool gives(const OpDef& stored, const Types& types,
                    const std::vector<bool>& has_gradient) {
    if (has_gradient.size() != types.size()) return false;
    size_t next = 0;
    for (size_t i = 0; i < types.size(); ++i) {
      if (!has_gradient[i]) continue;
      if (next == stored.outputs.size() ||
          stored.outputs[next++].dtype != types[i])
        return false;
    }
    return next == stored.outputs.size();
  }

  // The text of the tensor in the function's body that the object is.
  std::optional<std::string> captured(const FunctionDef& function,
                                      int32_t object) const {
    if (object < 0 || object >= objects_.nodes_size()) return std::nullopt;
    const auto& tensor = objects_.nodes(object).captured_tensor();
    if (tensor.concrete_function() != function.name()) return std::nullopt;
    const std::string_view text = tensor.name();  // "node:port"
    const size_t colon = text.rfind(':');
    size_t port = 0;
    if (colon != text.npos) {
      const char* const end = text.data() + text.size();
      const auto [at, bad] =
          std::from_chars(text.data() + colon + 1, end, port);
      if (bad != std::errc() || at != end) return std::nullopt;
    }
    const std::string_view name = text.substr(0, colon);
    for (const ArgDef& arg : function.signature.inputs)
      if (arg.name == name && port == 0) return arg.name;
    for (const NodeDef& node : function.nodes)
      if (node.name == name) return output_of(node, port);
    return std::nullopt;
  }

  // "node:output:index".
  std::optional<std::string> output_of(const NodeDef& node, size_t port) const {
    const OpDef* op = OpRegistry::global().find_or_null(node.op);
    if (op == nullptr)
      if (const FunctionDef* called = library_.find(node.op))
        op = &called->signature;
    if (op == nullptr) return std::nullopt;
    AttrMap attrs = node.attrs;
    for (const AttrDef& attr : op->attrs)
      if (attr.default_value) attrs.emplace(attr.name, *attr.default_value);
    size_t count = 0;
    for (const ArgDef& arg : op->outputs) {
      const auto types = types_of(arg, attrs);
      if (!types.ok()) return std::nullopt;
      count += types->size();
    }
    if (port >= count) return std::nullopt;
    const Result<std::string> output = output_text(*op, attrs, port);
    if (!output.ok()) return std::nullopt;
    return fmt::format("{}:{}", node.name, *output);
  }

  std::string free_name(std::string name) const {
    while (library_.find(name) != nullptr ||
           OpRegistry::global().find_or_null(name) != nullptr)
      name += '_';
    return name;
  }

  // Returns the first of its arguments.
  static FunctionDef make_forward(std::string name, const Types& all,
                                  size_t results) {
    FunctionDef made;
    made.signature.name = std::move(name);
    const Types types(all.begin(), all.begin() + ptrdiff_t(results));
    NodeDef& node = made.nodes.emplace_back(
        NodeDef{"results", "IdentityN", {}, "", {{"T", types}}});
    for (size_t i = 0; i < all.size(); ++i)
      made.signature.inputs.push_back(
          one_tensor(fmt::format("x_{}", i), all[i]));
    for (size_t i = 0; i < results; ++i) {
      node.inputs.push_back(fmt::format("x_{}", i));
      const ArgDef& result = made.signature.outputs.emplace_back(
          one_tensor(fmt::format("y_{}", i), all[i]));
      made.ret.emplace(result.name, fmt::format("results:output:{}", i));
    }
    return made;
  }

  // Of the arguments of the above and the gradients of its results: calls the
  // stored function; inputs without a gradient get zeros.
  static FunctionDef make_gradient(std::string name, const std::string& stored,
                                   const Types& all, size_t results,
                                   const std::vector<bool>& has_gradient) {
    FunctionDef made;
    made.signature.name = std::move(name);
    NodeDef call{"call", "PartitionedCall", {}, "", {}};
    Types out;
    for (size_t i = 0; i < all.size(); ++i)
      made.signature.inputs.push_back(
          one_tensor(fmt::format("x_{}", i), all[i]));
    for (size_t i = 0; i < results; ++i) {
      made.signature.inputs.push_back(
          one_tensor(fmt::format("dy_{}", i), all[i]));
      call.inputs.push_back(fmt::format("dy_{}", i));
    }
    for (size_t i = results; i < all.size(); ++i)
      call.inputs.push_back(fmt::format("x_{}", i));
    for (size_t i = 0; i < all.size(); ++i) {
      const ArgDef& result = made.signature.outputs.emplace_back(
          one_tensor(fmt::format("dx_{}", i), all[i]));
      if (i < results && has_gradient[i]) {
        made.ret.emplace(result.name,
                         fmt::format("call:output:{}", out.size()));
        out.push_back(all[i]);
      } else {
        const std::string zeros = fmt::format("zeros_{}", i);
        made.nodes.push_back(NodeDef{
            zeros, "ZerosLike", {fmt::format("x_{}", i)}, "", {{"T", all[i]}}});
        made.ret.emplace(result.name, zeros + ":y:0");
      }
    }
    // A gradient has the type of its result.
    call.attrs = {{"Tin", all}, {"Tout", out}, {"f", FunctionRef{stored}}};
    made.nodes.push_back(std::move(call));
    return made;
  }
  const tensorflow::SavedObjectGraph& objects_;
  const FunctionLibrary& library_;
  std::map<std::string, std::string, std::less<>> functions_;  // by types
  std::vector<Made> made_;
};

}  // namespace

Status use_stored_gradients(const tensorflow::MetaGraphDef& proto,
                            FunctionLibrary& library) {
  StoredGradients stored(proto, library);
  if (stored.empty()) return {};
  FunctionLibrary made;
  for (const FunctionDef* function : library.in_order_added())
    TAGFLOW_RETURN_IF_ERROR(made.add(stored.with_calls(*function)));
  for (const auto& [function, gradient] : library.gradients())
    TAGFLOW_RETURN_IF_ERROR(made.add_gradient(function, gradient));
  for (auto& [forward, gradient] : stored.take_made()) {
    TAGFLOW_RETURN_IF_ERROR(made.add_gradient(forward.name(), gradient.name()));
    TAGFLOW_RETURN_IF_ERROR(made.add(std::move(forward)));
    TAGFLOW_RETURN_IF_ERROR(made.add(std::move(gradient)));
  }
  library = std::move(made);
  return {};
}

}  // namespace tagflow::graph
