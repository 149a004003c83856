#include "graph/file/stored_gradients.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/functions/ports.h"
#include "graph/op_registry.h"
#include "graph/proto/meta_graph.pb.h"
#include "graph/stored_gradient.h"

namespace tagflow::graph {
namespace {

using Types = std::vector<DataType>;
using tensorflow::SavedConcreteFunction;

constexpr std::string_view kGradientType = "_gradient_op_type";
// A file must not cost more than this: calls within calls, and their inputs.
constexpr int kMostDepth = 100;
constexpr size_t kMostSteps = size_t(1) << 26;

// The name of the custom gradient that an IdentityN asks for, or null.
const std::string* gradient_type(const NodeDef& node) {
  if (node.op != "IdentityN" || node.attrs.contains(kStoredGradientAttr))
    return nullptr;
  const auto type = node.attrs.find(kGradientType);
  return type == node.attrs.end() ? nullptr
                                  : type->second.get_if<std::string>();
}

// Control inputs come last.
size_t num_data_inputs(const NodeDef& node) {
  return size_t(std::ranges::find_if(node.inputs,
                                     [](const std::string& input) {
                                       return input.starts_with('^');
                                     }) -
                node.inputs.begin());
}

// How a node calls a function: its input `first` is the argument 0.
struct Call {
  const FunctionDef* caller = nullptr;  // null: the graph
  const NodeDef* node = nullptr;
  size_t first = 0;
  const FunctionDef* body = nullptr;  // of a While
  bool is_known = true;               // false: the arguments are not known
};

class StoredGradients {
 public:
  StoredGradients(const tensorflow::MetaGraphDef& proto,
                  const FunctionLibrary& library)
      : objects_(proto.object_graph_def()), library_(library) {
    for (const auto& one : proto.graph_def().library().registered_gradients())
      functions_.emplace(one.registered_op_type(), one.gradient_func());
  }

  bool empty() const { return functions_.empty(); }

  // REQUIRES: `nodes` and the library outlive this.
  void find_calls(const std::vector<NodeDef>& nodes) {
    for (const NodeDef& node : nodes) add_calls(nullptr, node);
    for (const FunctionDef* function : library_.in_order_added())
      for (const NodeDef& node : function->nodes) add_calls(function, node);
  }

  // The function with its stored gradients.
  FunctionDef completed(const FunctionDef& function) {
    FunctionDef made = function;
    std::map<std::string_view, int> count;
    for (const NodeDef& node : function.nodes)
      if (const std::string* type = gradient_type(node)) ++count[*type];
    for (NodeDef& node : made.nodes) {
      const std::string* const type = gradient_type(node);
      if (type == nullptr) continue;
      const auto stored = functions_.find(*type);
      if (stored == functions_.end()) continue;
      const Status status =
          complete(function, node, stored->second, count[*type] == 1);
      if (!status.ok())
        node.attrs.insert_or_assign(std::string(kNotStoredAttr),
                                    std::string(status.message()));
    }
    return made;
  }

 private:
  void add_calls(const FunctionDef* caller, const NodeDef& node) {
    const auto add = [&](const std::string& name, Call call) {
      const FunctionDef* const called = library_.find(name);
      if (called == nullptr) return;
      call.caller = caller;
      call.node = &node;
      calls_[called].push_back(call);
    };
    const auto function = [&](const char* attr) -> const FunctionDef* {
      const auto found = node.attrs.find(attr);
      const auto* ref = found == node.attrs.end()
                            ? nullptr
                            : found->second.get_if<FunctionRef>();
      return ref == nullptr ? nullptr : library_.find(ref->name);
    };
    Call call;
    if (node.op == "While" || node.op == "StatelessWhile") {
      call.body = function("body");
      call.is_known = call.body != nullptr;
    } else if (node.op == "If" || node.op == "StatelessIf" ||
               node.op == "Case" || node.op == "StatelessCase") {
      call.first = 1;
    } else {
      call.is_known =
          node.op == "PartitionedCall" || node.op == "StatefulPartitionedCall";
    }
    for (const FunctionRef* ref : functions_of(node.attrs))
      add(ref->name, call);
    call.is_known = true;
    add(node.op, call);
  }

  Status complete(const FunctionDef& function, NodeDef& node,
                  const std::string& gradient, bool is_only) {
    const auto fail = [&](std::string_view why) {
      return error(Code::kNotFound, "the function \"{}\" {}", gradient, why);
    };
    const FunctionDef* const stored = library_.find(gradient);
    const auto concrete = objects_.concrete_functions().find(gradient);
    if (stored == nullptr || concrete == objects_.concrete_functions().end())
      return fail("is missing");
    const auto attr = node.attrs.find("T");
    const Types* const types =
        attr == node.attrs.end() ? nullptr : attr->second.get_if<Types>();
    const auto& bound = concrete->second.bound_inputs();
    const size_t outputs = num_data_inputs(node);
    const auto& args = stored->signature.inputs;
    if (types == nullptr || types->size() != outputs ||
        args.size() != outputs + size_t(bound.size()))
      return fail("has other arguments than the node has outputs");
    for (size_t i = 0; i < args.size(); ++i)
      if (args[i].dtype != (i < outputs ? (*types)[i] : args[i].dtype) ||
          args[i].dtype == DataType::kInvalid || !args[i].number_attr.empty())
        return fail("has arguments of other types than the node's outputs");
    // Which of several nodes has the captured tensors is unknown.
    if (!is_only && !bound.empty())
      return fail(
          fmt::format("belongs to several nodes of \"{}\"", function.name()));
    const std::vector<int64_t> inputs = gradients_of(concrete->second);
    if (concrete->second.output_signature().list_value().values_size() !=
            int(outputs) ||
        inputs.size() != stored->signature.outputs.size())
      return fail("does not give a gradient for each input");
    std::vector<std::string> captured;
    Types all = *types;
    for (const int32_t object : bound) {
      TAGFLOW_ASSIGN(std::string tensor, find(function, object, 0));
      captured.push_back(std::move(tensor));
      all.push_back(args[all.size()].dtype);
    }
    node.inputs.insert(node.inputs.begin() + ptrdiff_t(outputs),
                       captured.begin(), captured.end());
    node.attrs.insert_or_assign("T", all);
    node.attrs.insert_or_assign(std::string(kStoredGradientAttr), gradient);
    node.attrs.insert_or_assign(std::string(kStoredOutputsAttr),
                                int64_t(outputs));
    node.attrs.insert_or_assign(std::string(kStoredInputsAttr), inputs);
    return {};
  }

  // The inputs that have gradients: "none" in the list that the function
  // returns stands for the others.
  static std::vector<int64_t> gradients_of(
      const SavedConcreteFunction& concrete) {
    std::vector<int64_t> inputs;
    const auto& values = concrete.output_signature().list_value().values();
    for (int i = 0; i < values.size(); ++i)
      if (!values[i].has_none_value()) inputs.push_back(i);
    return inputs;
  }

  // The text of the tensor that the object is in the function's body.
  Result<std::string> find(const FunctionDef& function, int32_t object,
                           int depth) {
    const auto [known, is_new] = found_.try_emplace({&function, object});
    if (!is_new && !known->second.empty()) return known->second;
    const auto fail = [&]() -> Status {
      return error(Code::kNotFound,
                   "it captures {}, which is not passed to \"{}\"",
                   name_of(object), function.name());
    };
    // A function that calls itself is here again before it is known.
    if (!is_new || depth == kMostDepth || object < 0 ||
        object >= objects_.nodes_size() ||
        !may_look_at(function.signature.inputs.size()))
      return fail();
    const auto& tensor = objects_.nodes(object).captured_tensor();
    std::string text;
    if (tensor.concrete_function() == function.name())
      text = tensor_of(function, tensor.name());
    else if (const size_t bound = bound_argument(function, object);
             bound < function.signature.inputs.size())
      text = function.signature.inputs[bound].name;
    else if (const size_t passed = passed_argument(function, object, depth);
             passed < function.signature.inputs.size())
      text = function.signature.inputs[passed].name;
    if (text.empty()) return fail();
    return found_[{&function, object}] = text;
  }

  std::string name_of(int32_t object) const {
    if (object < 0 || object >= objects_.nodes_size())
      return fmt::format("object {}", object);
    const auto& node = objects_.nodes(object);
    if (node.has_captured_tensor())
      return fmt::format("the tensor \"{}\" of \"{}\"",
                         node.captured_tensor().name(),
                         node.captured_tensor().concrete_function());
    if (node.has_variable())
      return fmt::format("the variable \"{}\"", node.variable().name());
    return fmt::format("object {}", object);
  }

  // The tensor "node:port", or an argument, in the way of a function's body;
  // empty if there is none.
  std::string tensor_of(const FunctionDef& function,
                        const std::string& tensor) {
    const TensorText text = split_tensor(tensor);
    const int port = text.index.value_or(0);
    if (!text.output.empty() || port < 0) return "";
    for (const ArgDef& arg : function.signature.inputs)
      if (arg.name == text.name) return port == 0 ? arg.name : "";
    auto& nodes = nodes_[&function];
    if (nodes.empty())
      for (const NodeDef& node : function.nodes)
        nodes.emplace(node.name, &node);
    const auto node = nodes.find(text.name);
    return node == nodes.end() ? "" : output_of(*node->second, size_t(port));
  }

  // "node:output:index".
  std::string output_of(const NodeDef& node, size_t port) const {
    const OpDef* op = OpRegistry::global().find_or_null(node.op);
    if (op == nullptr)
      if (const FunctionDef* called = library_.find(node.op))
        op = &called->signature;
    if (op == nullptr) return "";
    AttrMap attrs = node.attrs;
    for (const AttrDef& attr : op->attrs)
      if (attr.default_value) attrs.emplace(attr.name, *attr.default_value);
    const Result<std::string> output = output_text(*op, attrs, port);
    return output.ok() ? fmt::format("{}:{}", node.name, *output) : "";
  }

  static constexpr size_t kNone = size_t(-1);

  // The argument that the object graph says to be the object.
  size_t bound_argument(const FunctionDef& function, int32_t object) const {
    const auto found = objects_.concrete_functions().find(function.name());
    if (found == objects_.concrete_functions().end()) return kNone;
    const auto& bound = found->second.bound_inputs();
    const size_t num_args = function.signature.inputs.size();
    const auto at = std::ranges::find(bound, object);
    if (at == bound.end() || size_t(bound.size()) > num_args) return kNone;
    return num_args - size_t(bound.end() - at);
  }

  // The argument that has the object in each call of the function.
  size_t passed_argument(const FunctionDef& function, int32_t object,
                         int depth) {
    const auto calls = calls_.find(&function);
    if (calls == calls_.end()) return kNone;
    std::set<size_t> common;
    bool is_first = true;
    for (const Call& call : calls->second) {
      if (call.caller == nullptr || !call.is_known) return kNone;
      const Result<std::string> source = find(*call.caller, object, depth + 1);
      if (!source.ok()) return kNone;
      std::set<size_t> here;
      const size_t end = num_data_inputs(*call.node);
      if (!may_look_at(end)) return kNone;
      for (size_t i = call.first; i < end; ++i)
        if (call.node->inputs[i] == *source && stays(call, i) &&
            (is_first || common.contains(i - call.first)))
          here.insert(i - call.first);
      common = std::move(here);
      is_first = false;
      if (common.empty()) return kNone;
    }
    return *common.begin();
  }

  bool may_look_at(size_t count) {
    if (count > steps_) return false;
    steps_ -= count;
    return true;
  }

  // Whether the body of a While hands the argument on as it is.
  static bool stays(const Call& call, size_t i) {
    if (call.body == nullptr) return true;
    const OpDef& body = call.body->signature;
    if (i >= body.inputs.size() || i >= body.outputs.size()) return false;
    const auto result = call.body->ret.find(body.outputs[i].name);
    return result != call.body->ret.end() &&
           result->second == body.inputs[i].name;
  }

  const tensorflow::SavedObjectGraph& objects_;
  const FunctionLibrary& library_;
  std::map<std::string, std::string, std::less<>> functions_;  // by types
  std::unordered_map<const FunctionDef*, std::vector<Call>> calls_;
  std::unordered_map<const FunctionDef*,
                     std::unordered_map<std::string_view, const NodeDef*>>
      nodes_;  // by function and name
  // By function and object; empty: not known.
  std::map<std::pair<const FunctionDef*, int32_t>, std::string> found_;
  size_t steps_ = kMostSteps;
};

}  // namespace

Status use_stored_gradients(const tensorflow::MetaGraphDef& proto,
                            GraphFile& file) {
  const FunctionLibrary& library = file.library;
  StoredGradients stored(proto, library);
  if (stored.empty()) return {};
  stored.find_calls(file.nodes);
  FunctionLibrary made;
  for (const FunctionDef* function : library.in_order_added())
    TAGFLOW_RETURN_IF_ERROR(made.add(stored.completed(*function)));
  for (const auto& [function, gradient] : library.gradients())
    TAGFLOW_RETURN_IF_ERROR(made.add_gradient(function, gradient));
  file.library = std::move(made);
  return {};
}

}  // namespace tagflow::graph
