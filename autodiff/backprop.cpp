#include "autodiff/backprop.h"

#include <algorithm>
#include <unordered_set>

#include "autodiff/rule.h"
#include "autodiff/stand_in.h"
#include "autodiff/sum.h"
#include "graph/analysis/topology.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/node_name.h"
#include "graph/node_types.h"
#include "graph/op_registry.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Scope;

ForwardLoop& Differentiation::forward_loop(FrameId frame) {
  auto& loop = loops[frame];
  if (loop == nullptr)
    loop = std::make_unique<ForwardLoop>(
        analysis, analysis.loop(frame),
        fmt::format("{}/{}", prefix,
                    graph::to_node_name(analysis.frame(frame).name)));
  return *loop;
}

// --- The order --------------------------------------------------------------

// Whether a walk ends here: the tensor enters the frame, or comes from an
// earlier iteration.
bool Backprop::is_source(const Endpoint& tensor) {
  const Node& node = *tensor.node;
  if (node.is_enter()) return true;
  if (!node.is_merge() || region_.frame() == FrameId::kRoot) return false;
  for (size_t i = 0; i < node.inputs().size(); ++i)
    if (graph::is_back_edge(node, i)) return true;
  return false;
}

Backprop::Unit Backprop::unit_of(const Endpoint& tensor) {
  if (const Block* block = all_.blocks.of(*tensor.node))
    return {.block = block};
  if (tensor.node->is_exit())
    return {.loop = analysis().frame_of(*tensor.node)};
  return {tensor.node};
}

std::vector<Endpoint> Backprop::inputs_of(const Unit& unit) {
  std::vector<Endpoint> inputs;
  const auto take = [&](const Endpoint& input) {
    if (all_.paths.has(input)) inputs.push_back(input);
  };
  if (unit.block != nullptr) {
    for (const Endpoint& input : unit.block->inputs) take(input);
  } else if (unit.node == nullptr) {
    for (const Node* enter : analysis().frame(unit.loop).enters)
      take(enter->inputs()[0]);
  } else if (unit.node->is_switch()) {
    take(unit.node->inputs()[0]);
  } else {
    for (const Endpoint& input : unit.node->inputs()) take(input);
  }
  return inputs;
}

// Each unit comes after those that it reads. Depth first, without recursion,
// since a chain of nodes may be long.
std::vector<Backprop::Unit> Backprop::order() {
  struct Open {
    Unit unit;
    std::vector<Endpoint> inputs;
    size_t next = 0;
  };
  std::vector<Unit> order;
  std::unordered_set<Unit, UnitHash> known;
  std::vector<Open> open;
  const auto begin = [&](const Endpoint& tensor) {
    if (is_source(tensor)) return;
    const Unit unit = unit_of(tensor);
    if (known.insert(unit).second) open.push_back({unit, inputs_of(unit)});
  };
  for (const Endpoint& seed : seeds_) {
    begin(seed);
    while (!open.empty()) {
      Open& top = open.back();
      if (top.next < top.inputs.size()) {
        begin(top.inputs[top.next++]);
        continue;
      }
      order.push_back(top.unit);
      open.pop_back();
    }
  }
  return order;
}

void Backprop::run() {
  const std::vector<Unit> units = order();
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
    if (!scope().ok()) return;
    if (unit->block != nullptr)
      visit_block(*unit->block);
    else if (unit->node != nullptr)
      visit(*unit->node);
    else
      visit_loop(unit->loop);
  }
}

// --- Nodes ------------------------------------------------------------------

void Backprop::visit(Node& node) {
  std::vector<Gradient> grads;
  for (int port = 0; port < node.num_outputs(); ++port)
    grads.push_back(total({&node, port}));
  if (std::ranges::none_of(grads, &Gradient::valid)) return;
  if (node.is_switch())
    visit_switch(node, std::move(grads));
  else if (node.is_merge())
    visit_merge(node, grads[0]);
  else
    visit_by_rule(node, std::move(grads));
}

void Backprop::visit_by_rule(Node& node, std::vector<Gradient> grads) {
  const Result<size_t> outputs = stand_in_outputs(node);
  if (!outputs.ok()) return scope().fail(outputs.status());
  // The first inputs of a stand-in are the outputs of the other node.
  const size_t first = *outputs;
  if (first > 0) grads.resize(first);
  std::vector<bool> wanted;
  for (size_t i = first; i < node.inputs().size(); ++i)
    wanted.push_back(all_.paths.has(node.inputs()[i]));
  if (std::ranges::find(wanted, true) == wanted.end() ||
      std::ranges::none_of(grads, &Gradient::valid))
    return;
  const auto found = rule_of(node);
  if (!found.ok()) return scope().fail(found.status());
  const RuleEntry* entry = *found;
  if (entry == nullptr) {
    scope().fail(error(Code::kUnimplemented,
                       "[gradients] there is no gradient rule for op \"{}\" of "
                       "node \"{}\", on the path {}",
                       node.op(), node.name(), all_.paths.describe(node)));
    return;
  }
  if (entry->rule == nullptr) return;
  analysis().set_user(&node);
  RuleContext context(region_, node, node.name() + "_grad", std::move(grads),
                      std::move(wanted), first);
  entry->rule(context);
  std::vector<Gradient> results = std::move(context).take_results();
  const Conditions::Set live = analysis().live(node);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].valid()) add(node.inputs()[first + i], live, results[i]);
}

void Backprop::add(const Endpoint& tensor, Conditions::Set live,
                   const Gradient& gradient) {
  Conditions& conditions = analysis().conditions();
  const Conditions::Set known =
      conditions.both(analysis().live(tensor), region_.given());
  if (live == analysis().live(tensor) || conditions.includes(known, live)) {
    partials_[tensor].push_back(gradient);
    return;
  }
  auto guards = guards_of(analysis(), region_.frame(), live, known, tensor);
  if (!guards.ok()) {
    scope().fail(std::move(guards).status());
    return;
  }
  partials_[tensor].push_back(lifted(tensor, gradient, *guards));
}

// --- Sums -------------------------------------------------------------------

Gradient Backprop::total(const Endpoint& tensor) {
  if (const auto known = totals_.find(tensor); known != totals_.end())
    return known->second;
  const auto partials = partials_.find(tensor);
  if (partials == partials_.end() || !scope().ok()) return {};
  const Gradient total = sum(tensor, std::move(partials->second));
  // It has its tensor's shape, also if shape inference cannot derive it.
  if (const Output& value = total.values;
      !total.is_sparse() && value.has_tensor() &&
      value.dtype() == tensor.node->output_dtypes()[size_t(tensor.port)])
    narrow_shape(analysis().graph(), value.endpoint(),
                 tensor.node->output_shape(tensor.port));
  return totals_[tensor] = total;
}

Gradient Backprop::sum(const Endpoint& tensor, std::vector<Gradient> partials) {
  if (partials.size() == 1) return partials[0];
  const Scope device = scope().with_device(tensor.node->device());
  if (std::ranges::all_of(partials, &Gradient::is_sparse)) {
    std::vector<Output> values, indices;
    for (const Gradient& partial : partials) {
      values.push_back(partial.values);
      indices.push_back(
          partial.indices.dtype() == DataType::kInt64
              ? partial.indices
              : ops::cast(device, partial.indices, DataType::kInt64));
    }
    const Output rows = joined(device, std::move(values));
    return {rows, joined(device, std::move(indices))};
  }
  std::vector<Output> all;
  for (const Gradient& partial : partials)
    all.push_back(dense(tensor, partial));
  return {sum_of(device, std::move(all))};
}

Output Backprop::dense(const Endpoint& like, const Gradient& gradient) {
  return region_.dense(scope().with_device(like.node->device()), like,
                       gradient);
}

}  // namespace tagflow::autodiff
