// Lowering of calls and conditionals.
#include "graph/functions/lowering.h"
#include "graph/functions/ports.h"

namespace tagflow::graph {

Status Lowering::lower_call(Draft& draft, const FunctionRef& reference) {
  const Node& node = *draft.node;
  TAGFLOW_ASSIGN(const FunctionInstance function,
                 bind(reference, node.input_dtypes(), node.output_dtypes()));
  Site site;
  site.args = draft.inputs;
  site.controls = draft.controls;
  TAGFLOW_ASSIGN(Inlined made,
                 inline_call(draft, function, "", std::move(site)));
  // The results are separate Identities: a control edge from an output of a
  // Switch would not transmit its deadness.
  for (size_t i = 0; i < made.results.size(); ++i)
    draft.outputs.push_back(
        put(draft, fmt::format("result_{}", i), "Identity", {made.results[i]}) +
        ":0");
  std::vector<std::string> last;
  add_controls(draft.outputs, last);
  add_controls(made.effects, last);
  // Without a result, the inputs determine whether the call was live.
  if (made.results.empty()) {
    std::vector<std::string> live;
    for (const std::string& input : draft.inputs)
      live.push_back(
          put(draft, fmt::format("live_{}", live.size()), "Identity", {input}));
    add_controls(live, last);
    add_controls(draft.controls, last);
  }
  draft.done = put(draft, "done", "NoOp", std::move(last));
  draft.must_run = !made.effects.empty();
  return {};
}

Status Lowering::lower_if(Draft& draft) {
  const Node& node = *draft.node;
  const std::span<const DataType> args =
      std::span(node.input_dtypes()).subspan(1);
  std::vector<FunctionInstance> branches;
  for (const char* branch : {"else_branch", "then_branch"}) {
    TAGFLOW_ASSIGN(const auto reference,
                   get_attr<FunctionRef>(node.attrs(), branch));
    TAGFLOW_ASSIGN(auto function, bind(reference, args, node.output_dtypes()));
    branches.push_back(std::move(function));
  }
  const Endpoint& predicate = node.inputs()[0];
  std::string selector = draft.inputs[0];
  const PartialShape& shape = predicate.node->output_shape(predicate.port);
  const Result<bool> is_lowered =  // as in TensorFlow
      get_attr<bool>(node.attrs(), "_lower_using_switch_merge");
  // A value that is not a bool is true if it is not zero, or not empty; a
  // Switch needs a scalar.
  const bool is_strict = is_lowered.ok() && *is_lowered;
  if (node.input_dtypes()[0] != DataType::kBool ||
      (!is_strict && !(shape.has_rank() && shape.rank() == 0)))
    selector = put(draft, "to_bool", "ToBool", {selector});
  return lower_branches(draft, selector, branches);
}

Status Lowering::lower_case(Draft& draft) {
  const Node& node = *draft.node;
  TAGFLOW_ASSIGN(const auto references,
                 get_attr<std::vector<FunctionRef>>(node.attrs(), "branches"));
  std::vector<FunctionInstance> branches;
  for (const FunctionRef& reference : references) {
    TAGFLOW_ASSIGN(auto function,
                   bind(reference, std::span(node.input_dtypes()).subspan(1),
                        node.output_dtypes()));
    branches.push_back(std::move(function));
  }
  return lower_branches(draft, draft.inputs[0], branches);
}

Status Lowering::lower_branches(Draft& draft, const std::string& selector,
                                const std::vector<FunctionInstance>& branches) {
  const Node& node = *draft.node;
  const bool is_case = node.op().ends_with("Case");
  const size_t count = branches.size();
  // All others wait for the selector, which has the node's control inputs.
  std::vector<std::string> first = {selector};
  add_controls(draft.controls, first);
  const std::string index =
      put(draft, "selector", "Identity", std::move(first));
  const auto split = [&](std::string_view name, const std::string& value) {
    if (!is_case) return put(draft, name, "Switch", {value, index});
    return put(draft, name, "_SwitchN", {value, index},
               {{"num_outs", int64_t(count)}});
  };
  const std::string pivots = split("switch_selector", index);
  std::vector<std::string> switches;
  for (size_t i = 1; i < draft.inputs.size(); ++i)
    switches.push_back(split(fmt::format("switch_{}", i - 1), draft.inputs[i]));

  std::vector<std::vector<std::string>> merged(node.output_dtypes().size());
  std::vector<std::string> ends;
  bool has_effects = false;
  for (size_t b = 0; b < count; ++b) {
    const std::string name = is_case  ? fmt::format("branch_{}", b)
                             : b == 0 ? "else"
                                      : "then";
    Site site;
    site.pivot = put(draft, name + "_pivot", "Identity",
                     {fmt::format("{}:{}", pivots, b)});
    for (const std::string& value : switches)
      site.args.push_back(fmt::format("{}:{}", value, b));
    const std::string pivot = site.pivot;
    TAGFLOW_ASSIGN(const Inlined made,
                   inline_call(draft, branches[b], name, std::move(site)));
    for (size_t i = 0; i < merged.size(); ++i)
      merged[i].push_back(made.results[i]);
    has_effects = has_effects || !made.effects.empty();
    std::vector<std::string> end = {pivot};
    add_controls(made.effects, end);
    ends.push_back(put(draft, name + "_end", "Identity", std::move(end)));
  }
  for (size_t i = 0; i < merged.size(); ++i)
    draft.outputs.push_back(
        put(draft, fmt::format("merge_{}", i), "Merge", std::move(merged[i])) +
        ":0");
  const std::string end = put(draft, "merge_end", "Merge", std::move(ends));
  std::vector<std::string> last;
  add_controls(draft.outputs, last);
  add_controls({end}, last);
  draft.done = put(draft, "done", "NoOp", std::move(last));
  draft.must_run = has_effects;
  return {};
}

}  // namespace tagflow::graph
