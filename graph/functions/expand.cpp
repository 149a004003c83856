// Replaces calls by the bodies of functions.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/analysis/class_labels.h"
#include "graph/functions/instance.h"
#include "graph/functions/ports.h"
#include "graph/op_registry.h"

namespace tagflow::graph {
namespace {

// `attrs` with its placeholders replaced by values of `bound`.
Result<AttrMap> substitute(const AttrMap& attrs, const AttrMap& bound);

Result<AttrValue> substitute(const AttrValue& value, const AttrMap& bound) {
  if (const auto* placeholder = value.get_if<AttrPlaceholder>()) {
    const auto it = bound.find(placeholder->name);
    if (it == bound.end())
      return invalid_argument("no attribute \"{}\" for \"${}\"",
                              placeholder->name, placeholder->name);
    return it->second;
  }
  if (const auto* function = value.get_if<FunctionRef>()) {
    TAGFLOW_ASSIGN(AttrMap inner, substitute(function->attrs, bound));
    return AttrValue(FunctionRef{function->name, std::move(inner)});
  }
  if (const auto* functions = value.get_if<std::vector<FunctionRef>>()) {
    std::vector<FunctionRef> made;
    for (const FunctionRef& function : *functions) {
      TAGFLOW_ASSIGN(AttrMap inner, substitute(function.attrs, bound));
      made.push_back({function.name, std::move(inner)});
    }
    return AttrValue(std::move(made));
  }
  return value;
}

Result<AttrMap> substitute(const AttrMap& attrs, const AttrMap& bound) {
  AttrMap made;
  for (const auto& [name, value] : attrs) {
    TAGFLOW_ASSIGN(made[name], substitute(value, bound));
  }
  return made;
}

}  // namespace

class FunctionInstance::Expander {
 public:
  Expander(const FunctionInstance& instance, const Site& site,
           const Limits& limits)
      : instance_(instance),
        function_(*instance.function_),
        site_(site),
        limits_(limits) {}

  Result<Expansion> run() {
    TAGFLOW_RETURN_IF_ERROR(find_args());
    for (const NodeDef& node : function_.nodes) {
      if (args_.contains(node.name) || bodies_.contains(node.name))
        return twice(node.name);
      if (node.op == "_Call")
        return about(node, invalid_argument("a function cannot have this op"));
      Body& body = bodies_[node.name];
      body.def = &node;
      body.op = OpRegistry::global().find_or_null(node.op);
      if (body.op == nullptr) {
        const FunctionDef* function = instance_.library_->find(node.op);
        if (function != nullptr) body.op = &function->signature;
      }
      Result<AttrMap> attrs = substitute(node.attrs, instance_.attrs_);
      if (!attrs.ok()) return about(node, std::move(attrs).status());
      body.attrs = std::move(attrs).value();
      if (body.op == nullptr)
        return about(node, OpRegistry::global().find(node.op).status());
      for (const AttrDef& attr : body.op->attrs)
        if (attr.default_value)
          body.attrs.emplace(attr.name, *attr.default_value);
    }
    add_args();
    find_loops();
    for (const NodeDef& node : function_.nodes) {
      Status status = add_node(node);
      if (!status.ok()) return about(node, std::move(status));
    }
    TAGFLOW_RETURN_IF_ERROR(add_results());
    return std::move(made_);
  }

 private:
  struct Body {
    const NodeDef* def = nullptr;
    const OpDef* op = nullptr;
    AttrMap attrs;
  };

  std::string full(std::string_view name) const {
    return fmt::format("{}/{}", site_.prefix, name);
  }
  static Status about(const NodeDef& node, Status status) {
    return std::move(status).with_prefix(
        fmt::format("[{}] node \"{}\": ", node.op, node.name));
  }

  static Status twice(const std::string& name) {
    return invalid_argument("two arguments or nodes are named \"{}\"", name);
  }
  // The full name of a node that is not in the body: `name`, with a number if
  // necessary.
  std::string free_name(const std::string& name) {
    std::string free = name;
    for (size_t i = 1; args_.contains(free) || bodies_.contains(free) ||
                       !made_names_.insert(free).second;
         ++i)
      free = fmt::format("{}_{}", name, i);
    return full(free);
  }

  Status find_args() {
    size_t next = 0;
    for (const ArgDef& arg : function_.signature.inputs) {
      TAGFLOW_ASSIGN(const auto types, types_of(arg, instance_.attrs_));
      if (!args_.try_emplace(arg.name, PortRange{next, types.size()}).second)
        return twice(arg.name);
      next += types.size();
    }
    return {};
  }

  // An Identity for each argument, with the control inputs of the call.
  void add_args() {
    for (const ArgDef& arg : function_.signature.inputs) {
      const PortRange range = args_.at(arg.name);
      for (size_t i = 0; i < range.count; ++i) {
        NodeDef node;
        node.name = range.count == 1
                        ? full(arg.name)
                        : free_name(fmt::format("{}_{}", arg.name, i));
        node.op = "Identity";
        node.device = site_.device;
        node.inputs = {site_.args[range.first + i]};
        add_controls(site_.controls, node.inputs);
        if (!site_.always_there.empty() && site_.always_there[range.first + i])
          always_there_.insert(node.name);
        made_.args.push_back(node.name);
        made_.nodes.push_back(std::move(node));
      }
    }
    pivot_ = site_.pivot;
    const bool has_args = !made_.args.empty();
    if (!pivot_.empty() || (!has_args && site_.controls.empty())) return;
    NodeDef node{free_name("pivot"), "NoOp", {}, site_.device, {}};
    add_controls(has_args ? made_.args : site_.controls, node.inputs);
    pivot_ = node.name;
    made_.nodes.push_back(std::move(node));
  }

  Status add_node(const NodeDef& from) {
    const Body& body = bodies_.at(from.name);
    NodeDef node{full(from.name),
                 from.op,
                 {},
                 from.device.empty() ? site_.device : from.device,
                 body.attrs};
    for (const std::string& input : from.inputs) {
      if (input.starts_with('^')) {
        TAGFLOW_RETURN_IF_ERROR(add_control(input.substr(1), node));
      } else {
        TAGFLOW_ASSIGN(auto tensors, tensors_of(input));
        node.inputs.insert(node.inputs.end(), tensors.begin(), tensors.end());
      }
    }
    const auto is_there = [&](const std::string& input) {
      return always_there_.contains(input.starts_with('^') ? input.substr(1)
                                                           : input);
    };
    if (!pivot_.empty() && std::ranges::all_of(node.inputs, is_there))
      node.inputs.push_back("^" + pivot_);
    // Frames and colocation use names.
    if (const auto frame = node.attrs.find("frame_name");
        frame != node.attrs.end())
      if (const auto* name = frame->second.get_if<std::string>())
        node.attrs.insert_or_assign("frame_name", full(*name));
    rename_classes(node.attrs);
    // An object that outlives the step has its name from the function: all
    // calls share it.
    if (const auto shared = node.attrs.find("shared_name");
        shared != node.attrs.end() && body.op->is_stateful)
      if (const auto* name = shared->second.get_if<std::string>();
          name != nullptr && name->empty())
        node.attrs.insert_or_assign("shared_name", from.name);
    const bool in_loop = loop_depth_.contains(from.name);
    if (body.op->is_stateful)
      (in_loop ? made_.inner_effects : made_.effects).push_back(node.name);
    if (node.op == "Exit" && in_loop && loop_depth_.at(from.name) == 1)
      exits_.push_back(node.name);
    made_.nodes.push_back(std::move(node));
    return {};
  }

  // Finds the nodes inside loops of primitives in the body.
  void find_loops() {
    std::unordered_map<std::string_view, std::vector<const NodeDef*>> users;
    std::vector<const NodeDef*> open;
    for (const NodeDef& node : function_.nodes) {
      for (std::string_view input : node.inputs) {
        if (input.starts_with('^')) input.remove_prefix(1);
        users[split_tensor(input).name].push_back(&node);
      }
      if (node.op == "Enter") open.push_back(&node);
    }
    // The depth of the outputs of visited nodes; an Enter's outputs are one
    // level deeper than the Enter.
    std::unordered_map<const NodeDef*, int> depth;
    for (const NodeDef* enter : open) depth[enter] = 1;
    while (!open.empty()) {
      const NodeDef* node = open.back();
      open.pop_back();
      // Deeper ones are cycles of Enters, or rejected later.
      if (depth[node] <= 0 || depth[node] > limits_.max_frame_depth) continue;
      for (const NodeDef* user : users[node->name]) {
        const int inside = depth[node];
        const int out = inside + (user->op == "Enter") - (user->op == "Exit");
        int& known = loop_depth_[user->name];
        if (known >= inside) continue;
        known = inside;
        depth[user] = out;
        open.push_back(user);
      }
    }
  }

  void rename_classes(AttrMap& attrs) const {
    const auto it = attrs.find(kClassAttr);
    if (it == attrs.end()) return;
    const auto* names = it->second.get_if<std::vector<std::string>>();
    if (names == nullptr) return;
    std::vector<std::string> renamed;
    for (const std::string& name : *names) {
      const std::string target = name.starts_with(kClassPrefix)
                                     ? name.substr(kClassPrefix.size())
                                     : "";
      renamed.push_back(bodies_.contains(target)
                            ? std::string(kClassPrefix) + full(target)
                            : name);
    }
    attrs.insert_or_assign(std::string(kClassAttr), std::move(renamed));
  }

  Status add_control(const std::string& name, NodeDef& node) const {
    if (bodies_.contains(name)) {
      node.inputs.push_back("^" + full(name));
      return {};
    }
    const auto arg = args_.find(name);
    if (arg == args_.end())
      return invalid_argument("no node or argument \"{}\"", name);
    for (size_t i = 0; i < arg->second.count; ++i)
      node.inputs.push_back("^" + made_.args[arg->second.first + i]);
    return {};
  }

  // The tensors of an input or a result of the body.
  Result<std::vector<std::string>> tensors_of(const std::string& text) const {
    const TensorText split = split_tensor(text);
    PortRange range;
    if (const auto arg = args_.find(std::string(split.name));
        arg != args_.end()) {
      range = arg->second;
      if (split.index) {
        TAGFLOW_ASSIGN(range, one_of(range, *split.index, text));
      }
      return std::vector<std::string>(
          made_.args.begin() + long(range.first),
          made_.args.begin() + long(range.first + range.count));
    }
    const auto found = bodies_.find(std::string(split.name));
    if (found == bodies_.end())
      return invalid_argument("no node or argument \"{}\" for \"{}\"",
                              split.name, text);
    if (split.output.empty()) {
      range = {size_t(split.index.value_or(0)), 1};
    } else {
      TAGFLOW_ASSIGN(range, output_range(found->second, split.output));
      if (split.index) {
        TAGFLOW_ASSIGN(range, one_of(range, *split.index, text));
      }
    }
    std::vector<std::string> tensors;
    for (size_t i = 0; i < range.count; ++i)
      tensors.push_back(
          fmt::format("{}:{}", full(split.name), range.first + i));
    return tensors;
  }

  static Result<PortRange> one_of(const PortRange& range, int index,
                                  std::string_view text) {
    if (index < 0 || size_t(index) >= range.count)
      return invalid_argument("\"{}\" is out of range, there are {}", text,
                              range.count);
    return PortRange{range.first + size_t(index), 1};
  }

  static Result<PortRange> output_range(const Body& body,
                                        std::string_view name) {
    Result<PortRange> range = find_output(*body.op, body.attrs, name);
    if (range.ok()) return range;
    return std::move(range).status().with_prefix(
        fmt::format("node \"{}\": ", body.def->name));
  }

  Status add_results() {
    for (const ArgDef& output : function_.signature.outputs) {
      const auto ret = function_.ret.find(output.name);
      if (ret == function_.ret.end())
        return invalid_argument("nothing gives its result \"{}\"", output.name);
      TAGFLOW_ASSIGN(auto tensors, tensors_of(ret->second));
      TAGFLOW_ASSIGN(const auto types, types_of(output, instance_.attrs_));
      if (tensors.size() != types.size())
        return invalid_argument("\"{}\" is {} tensor(s), result \"{}\" is {}",
                                ret->second, tensors.size(), output.name,
                                types.size());
      for (const std::string& tensor : tensors)
        made_.results.push_back(always_there_.contains(tensor) ? gated(tensor)
                                                               : tensor);
    }
    std::unordered_set<std::string> known(made_.effects.begin(),
                                          made_.effects.end());
    for (const auto& [name, node] : function_.control_ret) {
      if (!bodies_.contains(node))
        return invalid_argument("no node \"{}\" for its control output \"{}\"",
                                node, name);
      if (known.insert(full(node)).second && !loop_depth_.contains(node))
        made_.effects.push_back(full(node));
    }
    if (!made_.inner_effects.empty())
      made_.effects.insert(made_.effects.end(), exits_.begin(), exits_.end());
    return {};
  }

  // The argument, gated so that it is live only if the body runs.
  std::string gated(const std::string& arg) {
    NodeDef node{free_name(fmt::format("result_{}", made_.results.size())),
                 "Identity",
                 {arg, "^" + pivot_},
                 site_.device,
                 {}};
    made_.nodes.push_back(node);
    return node.name + ":0";
  }

  const FunctionInstance& instance_;
  const FunctionDef& function_;
  const Site& site_;
  const Limits& limits_;
  std::string pivot_;
  std::unordered_set<std::string> always_there_;  // of made_.args
  std::unordered_map<std::string, PortRange> args_;
  std::unordered_map<std::string, Body> bodies_;
  std::unordered_set<std::string> made_names_;  // results of free_name()
  // For nodes inside loops, the number of enclosing loops.
  std::unordered_map<std::string, int> loop_depth_;
  std::vector<std::string> exits_;  // of the outermost loops
  Expansion made_;
};

Result<Expansion> FunctionInstance::expand(const Site& site,
                                           const Limits& limits) const {
  Result<Expansion> made = Expander(*this, site, limits).run();
  if (made.ok()) return made;
  return std::move(made).status().with_prefix(
      fmt::format("function \"{}\": ", name()));
}

}  // namespace tagflow::graph
