#include "autodiff/recomputation.h"

#include <algorithm>

#include "autodiff/recompute.h"
#include "graph/analysis/prune.h"
#include "graph/functions/make_function.h"

namespace tagflow::autodiff {

using graph::NodeDef;

Recomputation::Recomputation(Differentiation& all, FrameId around,
                             const NodeFlags& members)
    : all_(all),
      around_(around),
      members_(members),
      stateful_(all.analysis),
      scope_(graph::Scope(graph_).sub_scope("gradients")) {
  graph_.library() = all.analysis.graph().library();
}

std::string Recomputation::fresh(std::string_view name) {
  std::string made(name);
  for (size_t i = 1;
       analysis().graph().find(made) != nullptr || !names_.insert(made).second;
       ++i)
    made = fmt::format("{}_{}", name, i);
  return made;
}

Output Recomputation::add_placeholder(std::string_view name, DataType type,
                                      PartialShape shape) {
  Argument& made =
      arguments_.emplace_back(Argument{fresh(name), type, std::move(shape)});
  made.is_gated = false;
  auto node = graph_.add(made.name, "Placeholder", {},
                         {{"dtype", type}, {"shape", made.shape}});
  if (node.ok()) return Output(*node);
  scope_.fail(std::move(node).status());
  return {};
}

Output Recomputation::add_plain_argument(const Endpoint& like, DataType type) {
  return add_placeholder("value", type,
                         type == DataType::kVariant
                             ? PartialShape::scalar()
                             : like.node->output_shape(like.port));
}

Output Recomputation::add_argument(const Endpoint& like, DataType type) {
  const Output made = add_plain_argument(like, type);
  if (made.valid()) awaited_.push_back(made.node()->name());
  return made;
}

Recomputation::Segment Recomputation::set_segment(const Loop& loop) {
  segment_ = &loop;
  const Segment segment{
      add_placeholder("first", DataType::kInt64, PartialShape::scalar()),
      add_placeholder("last", DataType::kInt64, PartialShape::scalar())};
  if (!segment.last.valid()) return segment;
  first_ = segment.first.node()->name();
  last_ = segment.last.node()->name();
  awaited_.push_back(first_);
  return segment;
}

// Whether it enters a variable of the segment.
bool Recomputation::is_state(const Node& enter) const {
  return segment_ != nullptr &&
         std::ranges::any_of(segment_->variables, [&](const auto& variable) {
           return variable.enter == &enter && !variable.is_invariant();
         });
}

Output Recomputation::state(const LoopVariable& variable) const {
  const auto found = states_.find(variable.enter);
  return found == states_.end() ? Output() : Output(graph_.find(found->second));
}

Output Recomputation::state_at_end(const LoopVariable& variable) {
  Node* merge = graph_.find(variable.merge->name());
  Node* goes_on = graph_.find(segment_->loop_cond->name());
  const auto add = [&](std::string_view op,
                       std::vector<Endpoint> inputs) -> Result<Node*> {
    return graph_.add(graph_.unique_name(fmt::format("at_end/{}", op)), op,
                      inputs);
  };
  Result<Node*> split = add("Switch", {{merge, 0}, {goes_on, 0}});
  Result<Node*> exit = split.ok() ? add("Exit", {{*split, 0}}) : split;
  if (exit.ok()) return Output(*exit);
  scope_.fail(std::move(exit).status());
  return {};
}

// --- The function -----------------------------------------------------------

Status Recomputation::finish(std::span<const Output> results) {
  TAGFLOW_RETURN_IF_ERROR(scope_.status());
  results_.assign(results.begin(), results.end());
  std::vector<Endpoint> ends;
  for (const Output& result : results) ends.push_back(result.endpoint());
  const graph::NodeSet used = graph::prune(graph_, ends, {}, {});
  std::vector<Node*> unused;
  for (Node* node : graph_.nodes())
    if (!used.contains(*node)) unused.push_back(node);
  graph_.remove(unused);

  std::vector<Endpoint> args;
  for (const Argument& argument : arguments_) {
    Node* node = graph_.find(argument.name);
    if (node == nullptr) continue;
    if (argument.is_gated) node = node->inputs()[0].node;
    args.push_back({node, 0});
    used_.push_back(&argument);
  }
  graph::FunctionLibrary& library = analysis().graph().library();
  TAGFLOW_RETURN_IF_ERROR(library.merge(graph_.library()));
  function_ = graph::free_function_name(library, "recomputation");
  TAGFLOW_ASSIGN(graph::FunctionDef function,
                 graph::make_function(function_, graph_, args, ends));
  // The gradients are made, so no stand-ins are needed any more.
  for (NodeDef& def : function.nodes) {
    AttrMap rest;
    for (const auto& [key, value] : def.attrs)
      if (key != kRecomputeAttr && key != graph::kSaveAttr &&
          key != graph::kSaveEveryAttr)
        rest.emplace(key, value);
    if (rest.size() != def.attrs.size()) def.attrs = std::move(rest);
  }
  is_stateful_ = function.signature.is_stateful;
  return library.add(std::move(function));
}

bool Recomputation::needs(const Output& argument) const {
  return std::ranges::any_of(used_, [&](const Argument* used) {
    return graph_.find(used->name) == argument.node();
  });
}

bool Recomputation::needs(const LoopVariable& variable) const {
  const auto found = states_.find(variable.enter);
  return found != states_.end() && graph_.find(found->second) != nullptr;
}

Result<graph::OpResult> Recomputation::call(
    const graph::Scope& s, Region& region,
    const std::vector<std::pair<Output, Output>>& values) {
  graph::Inputs inputs;
  std::vector<DataType> in, out;
  for (const Argument* argument : used_) {
    const Output node(graph_.find(argument->name));
    const auto given =
        std::ranges::find(values, node, &std::pair<Output, Output>::first);
    inputs.add(argument->outside.node != nullptr
                   ? region.value(argument->outside)
                   : (given == values.end() ? Output() : given->second));
    in.push_back(argument->type);
  }
  for (const Output& result : results_)
    out.push_back(remove_ref(result.dtype()));
  TAGFLOW_RETURN_IF_ERROR(s.status());
  const graph::OpResult made =
      s.op(is_stateful_ ? "StatefulPartitionedCall" : "PartitionedCall", inputs,
           {{"Tin", in}, {"Tout", out}, {"f", FunctionRef{function_}}});
  TAGFLOW_RETURN_IF_ERROR(s.status());
  for (size_t i = 0; i < results_.size(); ++i)
    analysis().graph().set_output_shape(made.node(), int(i),
                                        results_[i].shape());
  return made;
}

}  // namespace tagflow::autodiff
