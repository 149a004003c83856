// The copy of recomputed nodes: the needed ones, and their definitions.
#include <algorithm>

#include "autodiff/recomputation.h"
#include "autodiff/recompute.h"
#include "autodiff/stand_in.h"
#include "graph/analysis/class_labels.h"

namespace tagflow::autodiff {

using graph::NodeDef;

// --- What is needed ---------------------------------------------------------

bool Recomputation::runs_once(const Node& node) {
  const auto known = runs_once_.find(&node);
  if (known != runs_once_.end()) return known->second;
  return runs_once_[&node] = stateful_.runs_once(node, members_);
}

// Whether a gradient leads through a node that runs once.
bool Recomputation::leads_on(const Node& node) const {
  return std::ranges::any_of(node.inputs(), [&](const Endpoint& input) {
    return all_.paths.has(input);
  });
}

FrameId Recomputation::frame_of(const Endpoint& tensor) const {
  return all_.analysis.output_frame(*tensor.node);
}

// Whether a trip of its loop may go on without it.
bool Recomputation::is_guarded(const Endpoint& tensor) {
  const Loop& loop = analysis().loop(frame_of(tensor));
  return !analysis().conditions().includes(analysis().goes_on(loop),
                                           analysis().live(tensor));
}

Status Recomputation::need(const Endpoint& tensor) {
  const Node& node = *tensor.node;
  if (!members_.has(node)) {
    argument(tensor);
    return {};
  }
  if (runs_once(node) && !node.is_exit()) return need_kept(tensor);
  if (is_needed_.insert(&node).second) open_.push_back(&node);
  return {};
}

std::vector<const Node*> Recomputation::waits_of(const Node& node) {
  std::vector<const Node*> waits;
  std::unordered_set<const Node*> known{&node};
  std::vector<const Node*> open{&node};
  const auto meet = [&](const Node* from) {
    if (from == nullptr || !members_.has(*from) || !known.insert(from).second)
      return;
    if (runs_once(*from))
      open.push_back(from);
    else
      waits.push_back(from);
  };
  while (!open.empty()) {
    const Node* from = open.back();
    open.pop_back();
    for (const Endpoint& input : from->inputs())
      if (from != &node || runs_once(node)) meet(input.node);
    for (const Node* control : from->control_inputs()) meet(control);
  }
  return waits;
}

// Nodes that waited for a node that runs once wait for what it waited for.
void Recomputation::need_control(const Node& node) {
  const auto need_node = [&](const Node& copied) {
    if (is_needed_.insert(&copied).second) open_.push_back(&copied);
  };
  if (!members_.has(node)) return;
  if (!runs_once(node)) return need_node(node);
  if (!passed_.insert(&node).second) return;
  for (const Node* from : waits_of(node)) need_node(*from);
}

Status Recomputation::need_inputs(const Node& node) {
  if (segment_ != nullptr && &node == segment_->loop_cond)
    return need_number(segment_->frame);
  if (is_state(node)) {
    add_state(node);
    return {};
  }
  // An Enter of an inner loop may have the loop's save plan, too.
  if (node.is_loop_cond() && node.attrs().contains(graph::kSaveAttr))
    for (const Node* enter :
         analysis().loop(frame_of({const_cast<Node*>(&node), 0})).constants)
      if (enter->attrs().contains(graph::kSaveEveryAttr)) need_control(*enter);
  for (const Endpoint& input : node.inputs())
    TAGFLOW_RETURN_IF_ERROR(need(input));
  for (const Node* control : node.control_inputs()) need_control(*control);
  return {};
}

Status Recomputation::need_kept(const Endpoint& tensor) {
  if (!kept_.insert(tensor).second) return {};
  const Node& node = *tensor.node;
  const FrameId frame = frame_of(tensor);
  if (members_.has(node) && leads_on(node)) {
    // A stand-in has all outputs, in order.
    if (is_needed_.insert(&node).second) open_.push_back(&node);
    for (int port = 0; port < node.num_outputs(); ++port)
      TAGFLOW_RETURN_IF_ERROR(need_kept({tensor.node, port}));
  }
  if (frame == around_) {
    argument(tensor);
    return {};
  }
  const DataType type = node.output_dtypes()[size_t(tensor.port)];
  if (is_ref(type) || type == DataType::kResource)
    return error(Code::kUnimplemented,
                 "[gradients] \"{}\", a {} in the loop of frame \"{}\", cannot "
                 "be kept for what is computed again",
                 tensor.to_string(), dtype_name(type),
                 analysis().frame(frame).name);
  const Loop& loop = analysis().loop(frame);
  if (!loop.trouble.empty())
    return error(Code::kUnimplemented,
                 "[gradients] \"{}\" runs once, and the loop of frame \"{}\" "
                 "that it is in cannot be computed again without it, since its "
                 "iterations do not end by its LoopCond: {}",
                 node.name(), analysis().frame(frame).name, loop.trouble);
  TAGFLOW_ASSIGN(lists_[tensor], all_.forward_loop(frame).listed(tensor));
  if (members_.has(node)) analysis().note(frame, tensor, Kept::kSaved);
  if (is_guarded(tensor) && members_.has(node)) need_control(node);
  TAGFLOW_RETURN_IF_ERROR(need_number(frame));
  return need_kept(lists_.at(tensor));
}

// The number of a trip: a variable of the copied loop.
Status Recomputation::need_number(FrameId frame) {
  if (!numbered_.insert(frame).second) return {};
  const Loop& loop = analysis().loop(frame);
  if (&loop == segment_) return {};
  need_control(*loop.loop_cond);
  return need(loop.variables.front().enter->inputs()[0]);
}

// An argument instead of the initial value, with the shape that the variable
// has in all iterations.
void Recomputation::add_state(const Node& enter) {
  const auto variable = std::ranges::find(
      segment_->variables, &enter,
      [](const auto& of) { return static_cast<const Node*>(of.enter); });
  Argument& made =
      arguments_.emplace_back(Argument{fresh("state"), enter.output_dtypes()[0],
                                       variable->merge->output_shape(0)});
  made.is_flow = made.type != DataType::kVariant &&
                 analysis().is_container({variable->merge, 0});
  states_[&enter] = made.name;
}

Status Recomputation::find_needed(std::span<const Endpoint> tensors) {
  for (const Endpoint& tensor : tensors) TAGFLOW_RETURN_IF_ERROR(need(tensor));
  while (!open_.empty()) {
    const Node* node = open_.back();
    open_.pop_back();
    needed_.push_back(node);
    TAGFLOW_RETURN_IF_ERROR(need_inputs(*node));
  }
  return {};
}

// --- The copy ---------------------------------------------------------------

std::string Recomputation::put(std::string name, std::string_view op,
                               std::vector<std::string> inputs, AttrMap attrs) {
  NodeDef def{std::move(name), std::string(op), std::move(inputs), "",
              std::move(attrs)};
  return defs_.emplace_back(std::move(def)).name;
}

// The name of the Identity that reads it.
const std::string& Recomputation::argument(const Endpoint& tensor) {
  const auto [known, is_new] = argument_of_.emplace(tensor, arguments_.size());
  if (is_new) {
    const DataType type =
        remove_ref(tensor.node->output_dtypes()[size_t(tensor.port)]);
    const bool is_flow =
        type != DataType::kVariant && analysis().is_container(tensor);
    arguments_.push_back({fresh("argument"), type,
                          tensor.node->output_shape(tensor.port), tensor,
                          is_flow});
  }
  return arguments_[known->second].name;
}

std::string Recomputation::text_of(const Endpoint& tensor) {
  const Node& node = *tensor.node;
  if (members_.has(node) && runs_once(node) && !node.is_exit())
    return leads_on(node) ? tensor.to_string() : kept_text(tensor);
  if (members_.has(node)) return tensor.to_string();
  return argument(tensor);
}

// A tensor of frame `from` as a constant of a loop within it.
std::string Recomputation::entered(const std::string& tensor, FrameId from,
                                   FrameId frame) {
  if (frame == from) return tensor;
  const std::string outside = entered(tensor, from, analysis().parent(frame));
  std::string& made = entered_[fmt::format("{} {}", outside, uint32_t(frame))];
  if (made.empty())
    made = put(
        fresh("entered"), "Enter", {outside},
        {{"frame_name", analysis().frame(frame).name},
         {"is_constant", true},
         {"parallel_iterations", analysis().frame(frame).parallel_iterations}});
  return made;
}

const Recomputation::Numbers& Recomputation::numbers_of(FrameId frame) {
  Numbers& made = numbers_[frame];
  if (!made.all.empty()) return made;
  const Loop& loop = analysis().loop(frame);
  const std::string base = fresh("number");
  const auto name = [&](std::string_view suffix) {
    return fmt::format("{}/{}", base, suffix);
  };
  const AttrMap type = {{"T", DataType::kInt64}};
  const auto number = [&](std::string_view suffix, int64_t value,
                          const std::string& control) {
    return put(name(suffix), "Const", {"^" + control},
               {{"value", Tensor::scalar(value)}, {"dtype", DataType::kInt64}});
  };
  std::string first = first_;
  if (&loop != segment_) {
    const std::string anchor =
        put(name("anchor"), "Identity",
            {text_of(loop.variables.front().enter->inputs()[0])});
    first = number("zero", 0, anchor);
  }
  const std::string enter = put(
      name("Enter"), "Enter", {first},
      {{"T", DataType::kInt64},
       {"frame_name", analysis().frame(frame).name},
       {"is_constant", false},
       {"parallel_iterations", analysis().frame(frame).parallel_iterations}});
  made.all = put(name("Merge"), "Merge", {enter, name("NextIteration")},
                 {{"N", 2}, {"T", DataType::kInt64}});
  const std::string split =
      put(name("Switch"), "Switch", {made.all, loop.loop_cond->name()}, type);
  made.going_on = put(name("now"), "Identity", {split + ":1"}, type);
  const std::string next =
      put(name("next"), "AddV2",
          {made.going_on, number("one", 1, made.going_on)}, type);
  put(name("NextIteration"), "NextIteration", {next}, type);
  return made;
}

// The output of a node that ran once, in the copy: an argument, or an element
// of one.
std::string Recomputation::kept_text(const Endpoint& tensor) {
  const FrameId frame = frame_of(tensor);
  if (frame == around_) return argument(tensor);
  std::string& made = kept_texts_[tensor];
  if (!made.empty()) return made;
  const std::string list =
      entered(kept_text(lists_.at(tensor)), analysis().parent(frame), frame);
  const std::string base = fresh("kept");
  const Numbers& numbers = numbers_of(frame);
  const bool has_last = !analysis().conditions().includes(
      analysis().live(tensor), analysis().goes_on(analysis().loop(frame)));
  const std::string number =
      put(base + "/number", "Cast", {has_last ? numbers.all : numbers.going_on},
          {{"DstT", DataType::kInt32}});
  std::string& any = entered_["any shape"];
  if (any.empty())
    any = put(
        fresh("any_shape"), "Const", {},
        {{"value", Tensor::scalar<int32_t>(-1)}, {"dtype", DataType::kInt32}});
  std::vector<std::string> inputs{list, number, entered(any, around_, frame)};
  if (is_guarded(tensor) && members_.has(*tensor.node))
    for (const Node* from : waits_of(*tensor.node))
      inputs.push_back("^" + from->name());
  const DataType type = tensor.node->output_dtypes()[size_t(tensor.port)];
  return kept_texts_[tensor] = put(base, "TensorListGetItem", std::move(inputs),
                                   {{"element_dtype", type}});
}

void Recomputation::define(const Node& node) {
  if (runs_once(node) && !node.is_exit()) return define_stand_in(node);
  NodeDef def{node.name(), node.op(), {}, node.device(), {}};
  const bool ends_segment = segment_ != nullptr && &node == segment_->loop_cond;
  for (const auto& [name, value] : node.attrs()) {
    if (name == graph::kClassAttr || (ends_segment && name == graph::kSaveAttr))
      continue;
    if (name != kRecomputeAttr) {
      def.attrs.emplace(name, value);
      continue;
    }
    // Only the names of inner blocks are left.
    const std::string_view rest = inner_blocks(blocks_of(node.attrs()));
    if (!rest.empty()) def.attrs.emplace(name, std::string(rest));
  }
  if (ends_segment) {
    const FrameId frame = segment_->frame;
    def.inputs.push_back(
        put(fresh("goes_on"), "Less",
            {numbers_of(frame).all,
             entered(last_, analysis().parent(frame), frame)}));
  } else if (const auto state = states_.find(&node); state != states_.end()) {
    def.inputs.push_back(state->second);
  } else {
    for (const Endpoint& input : node.inputs())
      def.inputs.push_back(text_of(input));
  }
  for (const Node* from : waits_of(node))
    def.inputs.push_back("^" + from->name());
  defs_.push_back(std::move(def));
}

void Recomputation::define_stand_in(const Node& node) {
  std::vector<std::string> inputs;
  std::vector<DataType> types;
  for (int port = 0; port < node.num_outputs(); ++port)
    inputs.push_back(kept_text({const_cast<Node*>(&node), port}));
  for (const Endpoint& input : node.inputs()) inputs.push_back(text_of(input));
  types.assign(node.output_dtypes().begin(), node.output_dtypes().end());
  types.insert(types.end(), node.input_dtypes().begin(),
               node.input_dtypes().end());
  AttrMap attrs = {{"T", types},
                   {std::string(kStandsForAttr), node.op()},
                   {std::string(kStandInOutputsAttr), node.num_outputs()}};
  for (const auto& [name, value] : node.attrs())
    if (!name.starts_with('_')) attrs.emplace("_" + name, value);
  if (node.num_outputs() > 0 && node.output_dtypes()[0] != DataType::kVariant &&
      analysis().is_container({const_cast<Node*>(&node), 0}))
    attrs.emplace(kFlowAttr, true);
  put(node.name(), "IdentityN", std::move(inputs), std::move(attrs));
}

void Recomputation::define_arguments() {
  for (const Argument& argument : arguments_) {
    if (!argument.is_gated) continue;
    std::vector<std::string> inputs{
        put(fresh(argument.name + "_in"), "Placeholder", {},
            {{"dtype", argument.type}, {"shape", argument.shape}})};
    for (const std::string& awaited : awaited_) inputs.push_back("^" + awaited);
    AttrMap attrs = {{"T", argument.type}};
    if (argument.is_flow) attrs.emplace(kFlowAttr, true);
    put(argument.name, "Identity", std::move(inputs), std::move(attrs));
  }
}

// Takes known shapes that cannot be inferred in the copy.
void Recomputation::take_shapes() {
  const auto take = [&](const Endpoint& from, const Endpoint& to) {
    narrow_shape(graph_, to, from.node->output_shape(from.port));
  };
  for (const Node* node : needed_)
    if (Node* made = graph_.find(node->name()))
      for (int port = 0; port < node->num_outputs(); ++port)
        take({const_cast<Node*>(node), port}, {made, port});
  for (const auto& [tensor, text] : kept_texts_)
    if (Node* made = graph_.find(text)) take(tensor, {made, 0});
}

Status Recomputation::copy(std::span<const Endpoint> tensors) {
  TAGFLOW_RETURN_IF_ERROR(find_needed(tensors));
  for (const Node* node : needed_) define(*node);
  define_arguments();
  TAGFLOW_RETURN_IF_ERROR(graph_.extend(std::move(defs_)));
  take_shapes();
  return {};
}

std::vector<Endpoint> Recomputation::stops() const {
  std::vector<Endpoint> twins;
  for (const Endpoint& stop : all_.stops)
    if (members_.has(*stop.node))
      if (const Endpoint made = twin(stop); made.node != nullptr)
        twins.push_back(made);
  return twins;
}

Endpoint Recomputation::twin(const Endpoint& tensor) const {
  const Node& node = *tensor.node;
  if (members_.has(node)) {
    if (!is_needed_.contains(&node)) return {};
    return {graph_.find(node.name()), tensor.port};
  }
  const auto found = argument_of_.find(tensor);
  if (found == argument_of_.end()) return {};
  return {graph_.find(arguments_[found->second].name), 0};
}

}  // namespace tagflow::autodiff
