// Lowering of While and For.
#include "graph/functions/lowering.h"
#include "graph/functions/ports.h"

namespace tagflow::graph {

// The frame of a loop during construction: open(), then the predicate, split(),
// then the body, close().
struct Lowering::Loop {
  Lowering& lowering;
  Draft& draft;
  int64_t window = 10;
  std::vector<std::string> merges = {};    // of the variables
  std::vector<std::string> switches = {};  // the same

  std::string frame() const { return draft.own + "/frame"; }

  // Adds an Enter. A constant is the same in each iteration.
  std::string enter(std::string_view name, const std::string& value,
                    bool is_constant) const {
    std::vector<std::string> inputs = {value};
    add_controls(draft.controls, inputs);
    return lowering.put(draft, name, "Enter", std::move(inputs),
                        {{"frame_name", frame()},
                         {"is_constant", is_constant},
                         {"parallel_iterations", window}});
  }
  std::string numbered(std::string_view name, size_t variable) const {
    return fmt::format("{}_{}", name, variable);
  }
  // A variable; returns its value at the beginning of an iteration.
  std::string open(const std::string& initial) {
    const size_t i = merges.size();
    const std::string entered = enter(numbered("enter", i), initial, false);
    const std::string back =
        fmt::format("{}/{}", draft.own, numbered("next", i));
    merges.push_back(
        lowering.put(draft, numbered("merge", i), "Merge", {entered, back}));
    return merges.back();
  }
  // The condition's nodes without inputs wait for this one.
  const std::string& pivot() const { return merges[0]; }
  // All variables are switched by the predicate, which waits for `effects`.
  void split(const std::string& predicate,
             const std::vector<std::string>& effects) {
    std::vector<std::string> inputs = {predicate};
    add_controls(effects, inputs);
    const std::string cond =
        lowering.put(draft, "loop_cond", "LoopCond", std::move(inputs));
    for (size_t i = 0; i < merges.size(); ++i)
      switches.push_back(lowering.put(draft, numbered("switch", i), "Switch",
                                      {merges[i], cond}));
  }
  // A variable's value in the body.
  std::string value(size_t i) const { return switches[i] + ":1"; }
  // The body's nodes without inputs wait for this one.
  std::string body_pivot() const {
    return lowering.put(draft, "body_pivot", "Identity", {value(0)});
  }
  // Its value in the next iteration, which waits for `effects`; returns its
  // last value.
  std::string close(size_t i, const std::string& next,
                    const std::vector<std::string>& effects) const {
    std::vector<std::string> inputs = {next};
    add_controls(effects, inputs);
    lowering.put(draft, numbered("next", i), "NextIteration",
                 std::move(inputs));
    return lowering.put(draft, numbered("exit", i), "Exit",
                        {switches[i] + ":0"}) +
           ":0";
  }
  // A constant, as seen outside.
  std::string pass(size_t i, const std::string& value) const {
    std::vector<std::string> inputs = {value};
    add_controls(draft.controls, inputs);
    return lowering.put(draft, numbered("constant", i), "Identity",
                        std::move(inputs)) +
           ":0";
  }
  // Defines the replacement of the node once all variables have left.
  void end(const std::vector<std::string>& exits, bool has_effects) const {
    std::vector<std::string> controls;
    add_controls(exits, controls);
    draft.done = lowering.put(draft, "done", "NoOp", std::move(controls));
    draft.must_run = has_effects;
  }
};

Status Lowering::lower_while(Draft& draft) {
  const Node& node = *draft.node;
  const std::span<const DataType> types = node.input_dtypes();
  TAGFLOW_ASSIGN(const auto cond_name,
                 get_attr<FunctionRef>(node.attrs(), "cond"));
  TAGFLOW_ASSIGN(const auto body_name,
                 get_attr<FunctionRef>(node.attrs(), "body"));
  TAGFLOW_ASSIGN(const FunctionInstance body, bind(body_name, types, types));
  TAGFLOW_ASSIGN(
      FunctionInstance cond,
      FunctionInstance::bind(graph_.library(), cond_name, bodies_.limits()));
  const std::vector<DataType> predicate_type = cond.result_types();
  if (predicate_type.size() != 1)
    return invalid_argument("function \"{}\" has {} results, a condition one",
                            cond.name(), predicate_type.size());
  TAGFLOW_ASSIGN(cond, bind(cond_name, types, predicate_type));
  Loop loop{*this, draft};
  TAGFLOW_ASSIGN(loop.window,
                 get_attr<int64_t>(node.attrs(), "parallel_iterations"));

  // Arguments that the body returns unchanged need not be loop variables.
  const std::vector<std::string>& inputs = draft.inputs;
  std::vector<bool> is_constant(inputs.size());
  std::vector<size_t> variables;  // argument numbers
  std::vector<std::string> values;
  const std::vector<int> passed = body.passed_arguments();
  for (size_t i = 0; i < inputs.size(); ++i) {
    is_constant[i] = passed[i] == int(i);
    if (is_constant[i]) {
      values.push_back(
          loop.enter(fmt::format("enter_constant_{}", i), inputs[i], true));
    } else {
      variables.push_back(i);
      values.push_back(loop.open(inputs[i]));
    }
  }
  // There must be at least one variable.
  const bool has_tick = variables.empty();
  if (has_tick) {
    // It starts with the other nodes, which may be inside another loop, or on a
    // branch. It uses an Identity, since a control edge from an output of a
    // Switch would not transmit its deadness.
    std::vector<std::string> after;
    if (!inputs.empty())
      add_controls({put(draft, "tick_input", "Identity", {inputs[0]})}, after);
    add_controls(draft.controls, after);
    loop.open(
        put(draft, "tick", "Const", std::move(after),
            {{"value", Tensor::scalar(false)}, {"dtype", DataType::kBool}}));
  }

  Site site;
  site.args = values;
  site.always_there = is_constant;
  site.pivot = loop.pivot();
  TAGFLOW_ASSIGN(const Inlined test, inline_call(draft, cond, "cond", site));
  std::string predicate = test.results[0];
  if (predicate_type[0] != DataType::kBool)
    predicate = put(draft, "to_bool", "ToBool", {predicate});
  loop.split(predicate, test.effects);

  for (size_t k = 0; k < variables.size(); ++k)
    values[variables[k]] = loop.value(k);
  site.args = values;
  site.pivot = loop.body_pivot();
  TAGFLOW_ASSIGN(const Inlined made, inline_call(draft, body, "body", site));
  draft.outputs.resize(inputs.size());
  std::vector<std::string> exits;
  for (size_t k = 0; k < variables.size(); ++k)
    exits.push_back(draft.outputs[variables[k]] = loop.close(
                        k, made.results[variables[k]], made.effects));
  if (has_tick) exits.push_back(loop.close(0, loop.value(0), made.effects));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (is_constant[i]) draft.outputs[i] = loop.pass(i, inputs[i]);
  loop.end(exits, !made.effects.empty() || !test.effects.empty());
  return {};
}

// A While over the iteration number, from which the index is computed.
Status Lowering::lower_for(Draft& draft) {
  const Node& node = *draft.node;
  const std::span<const DataType> types = node.input_dtypes();
  TAGFLOW_ASSIGN(const auto body_name,
                 get_attr<FunctionRef>(node.attrs(), "body"));
  std::vector<DataType> body_args(types.begin() + 3, types.end());
  body_args.insert(body_args.begin(), DataType::kInt32);
  TAGFLOW_ASSIGN(const FunctionInstance body,
                 bind(body_name, body_args, types.subspan(3)));
  Loop loop{*this, draft};
  const std::vector<std::string>& range = draft.inputs;
  std::vector<std::string> bounds(range.begin(), range.begin() + 3);
  add_controls(draft.controls, bounds);
  const std::string trips =
      put(draft, "trips", "_ForTripCount", std::move(bounds));
  const auto constant = [&](std::string_view name, int32_t value) {
    return put(draft, name, "Const", {"^" + trips},
               {{"value", Tensor::scalar(value)}, {"dtype", DataType::kInt32}});
  };
  const std::string trip = loop.open(constant("zero", 0));
  for (size_t i = 3; i < range.size(); ++i) loop.open(range[i]);
  loop.split(put(draft, "more", "Less",
                 {trip, loop.enter("enter_trips", trips, true)}),
             {});
  Site site;
  site.pivot = loop.body_pivot();
  const std::string offset =
      put(draft, "offset", "Mul",
          {loop.value(0), loop.enter("enter_delta", range[2], true)});
  site.args = {put(draft, "index", "AddV2",
                   {loop.enter("enter_start", range[0], true), offset})};
  for (size_t i = 3; i < range.size(); ++i)
    site.args.push_back(loop.value(i - 2));
  const std::string one = loop.enter("enter_one", constant("one", 1), true);
  TAGFLOW_ASSIGN(const Inlined made, inline_call(draft, body, "body", site));
  std::vector<std::string> exits = {loop.close(
      0, put(draft, "next_trip", "AddV2", {loop.value(0), one}), made.effects)};
  for (size_t i = 0; i + 3 < range.size(); ++i) {
    draft.outputs.push_back(loop.close(i + 1, made.results[i], made.effects));
    exits.push_back(draft.outputs.back());
  }
  loop.end(exits, !made.effects.empty());
  return {};
}

}  // namespace tagflow::graph
