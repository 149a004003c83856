#include "autodiff/analysis.h"

#include <algorithm>

#include "graph/analysis/node_queries.h"
#include "graph/analysis/topology.h"

namespace tagflow::autodiff {
namespace {

// The variable of a Merge(Enter, NextIteration), in either order, or nothing.
LoopVariable loop_variable(Node& merge) {
  LoopVariable variable{&merge};
  if (merge.inputs().size() != 2) return {};
  for (const Endpoint& input : merge.inputs()) {
    if (input.node == nullptr) return {};
    if (input.node->is_enter() && !input.node->is_constant_enter())
      variable.enter = input.node;
    else if (input.node->is_next_iteration())
      variable.next = input.node;
  }
  if (variable.enter == nullptr || variable.next == nullptr) return {};
  return variable;
}

}  // namespace

Endpoint value_source(Endpoint tensor) {
  for (;;) {
    const Node& node = *tensor.node;
    if (graph::reads_reference(node)) return tensor;
    if (node.is_switch())
      tensor = node.inputs()[0];
    else if (node.is_identity() || node.op() == "IdentityN")
      tensor = node.inputs()[size_t(tensor.port)];
    else
      return tensor;
  }
}

void narrow_shape(Graph& graph, const Endpoint& tensor,
                  const PartialShape& known) {
  auto both = tensor.node->output_shape(tensor.port).merge(known);
  if (both.ok())
    graph.set_output_shape(tensor.node, tensor.port, *std::move(both));
}

namespace {

// The value of a constant scalar of int32 or int64.
std::optional<int64_t> integer_of(const Endpoint& tensor) {
  if (!tensor.node->is_const()) return {};
  const auto value = tensor.node->attr<Tensor>("value");
  if (!value.ok() || value->num_elements() != 1) return {};
  if (value->dtype() == DataType::kInt64) return value->scalar_value<int64_t>();
  if (value->dtype() == DataType::kInt32) return value->scalar_value<int32_t>();
  return {};
}

}  // namespace

bool LoopVariable::is_invariant() const {
  return value_source(next->inputs()[0]) == Endpoint{merge, 0};
}

std::optional<Counter> counter_of(const LoopVariable& variable) {
  const DataType type = variable.merge->output_dtypes()[0];
  if (type != DataType::kInt32 && type != DataType::kInt64) return {};
  const Endpoint first = variable.enter->inputs()[0];
  if (first.node->output_shape(first.port) != PartialShape::scalar()) return {};
  const Endpoint now{variable.merge, 0};
  const Node& next = *value_source(variable.next->inputs()[0]).node;
  const bool is_sum = next.op() == "AddV2" || next.op() == "Add";
  if (!is_sum && next.op() != "Sub") return {};
  const Endpoint a = value_source(next.inputs()[0]);
  const Endpoint b = value_source(next.inputs()[1]);
  if (a == now)
    if (const auto step = integer_of(b))
      return Counter{first, is_sum ? *step : -*step};
  if (is_sum && b == now)
    if (const auto step = integer_of(a)) return Counter{first, *step};
  return {};
}

Result<std::unique_ptr<Analysis>> Analysis::make(Graph& graph,
                                                 const CallTable* calls,
                                                 std::string function) {
  std::unique_ptr<Analysis> made(
      new Analysis(graph, calls, std::move(function)));
  TAGFLOW_ASSIGN(made->frames_, graph::FrameMap::build(graph));
  made->facts_ = graph::find_facts(graph, made->frames_);
  made->find_uses();
  made->find_loops();
  made->find_predicates();
  made->find_flows();
  return made;
}

void Analysis::find_uses() {
  uses_.resize(end_id_);
  for (Node* node : graph_.nodes())
    for (size_t i = 0; i < node->inputs().size(); ++i)
      if (const Node* source = node->inputs()[i].node)  // no open back edge
        uses_[source->id()].push_back({node, i});
}

void Analysis::find_loops() {
  loops_.resize(frames_.frames().size());
  for (const graph::StaticFrame& frame : frames_.frames()) {
    Loop& loop = loops_[size_t(frame.id)];
    loop.frame = frame.id;
    loop.exits = frame.exits;
    if (!frame.loop_conds.empty()) loop.loop_cond = frame.loop_conds.front();
    for (Node* enter : frame.enters)
      if (enter->is_constant_enter()) loop.constants.push_back(enter);
    for (Node* merge : frame.merges)
      if (const LoopVariable variable = loop_variable(*merge); variable.merge)
        loop.variables.push_back(variable);
    loop.trouble = facts_.whole_loops[size_t(frame.id)];
    if (loop.trouble.empty() && loop.loop_cond == nullptr)
      loop.trouble = "it has no LoopCond";
    if (loop.trouble.empty() &&
        loop.variables.size() != frame.next_iterations.size())
      loop.trouble = "a variable has more than one Enter or NextIteration";
  }
}

void Analysis::find_predicates() {
  predicates_.resize(frames_.frames().size());
  for (const Node* node : graph_.nodes()) {
    if (!node->is_switch()) continue;
    const Endpoint predicate = node->inputs()[1];
    predicates_[size_t(frames_.of(*node))].emplace(origin(predicate),
                                                   predicate);
  }
}

namespace {

// The input or output of an op on TensorArrays that is a flow; -1: none.
template <class Ports>
int flow_of(const Ports& ports) {
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i].name.starts_with("flow")) return int(i);
  return -1;
}

bool is_array_op(const Node& node) {
  return node.op().starts_with("TensorArray");
}

bool makes_gradient_array(const Node& node) {
  return node.op().starts_with("TensorArrayGrad");
}

}  // namespace

void Analysis::find_flows() {
  for (Node* node : graph_.nodes())
    if (node->attrs().contains(kFlowAttr))
      flows_.insert({node, 0});
    else if (is_array_op(*node))
      if (const int flow = flow_of(node->op_def().outputs); flow >= 0)
        flows_.insert({node, flow});
  if (flows_.empty()) return;
  follow_flows(flows_, false);
  find_gradient_flows();
}

void Analysis::find_gradient_flows() {
  for (const Endpoint& flow : flows_)
    if (is_array_op(*flow.node) && !flow.node->inputs().empty() &&
        !makes_gradient_array(*flow.node) &&
        is_gradient_array(flow.node->inputs()[0]))
      gradient_flows_.insert(flow);
  follow_flows(gradient_flows_, true);
  flows_.insert(gradient_flows_.begin(), gradient_flows_.end());
}

void Analysis::follow_flows(Tensors& flows, bool sums) const {
  std::vector<Endpoint> open(flows.begin(), flows.end());
  const auto find = [&](const Endpoint& tensor) {
    if (flows.insert(tensor).second) open.push_back(tensor);
  };
  while (!open.empty()) {
    const Endpoint flow = open.back();
    open.pop_back();
    for (const Use& use : uses(*flow.node)) {
      Node& node = *use.node;
      if (node.inputs()[use.index] != flow) continue;
      const bool is_sum =
          node.op() == "AddN" || node.op() == "AddV2" || node.op() == "Add";
      if (node.is_switch() && use.index == 0)
        for (int port = 0; port < node.num_outputs(); ++port)
          find({&node, port});
      else if (node.op() == "IdentityN")
        find({&node, int(use.index)});
      else if (sums && makes_gradient_array(node))
        find({&node, flow_of(node.op_def().outputs)});
      else if (node.is_identity() || node.is_merge() || node.is_enter() ||
               node.is_exit() || node.is_next_iteration() || (sums && is_sum))
        find({&node, 0});
    }
  }
}

bool Analysis::is_gradient_array(const Endpoint& handle) const {
  return makes_gradient_array(*maker_of(handle));
}

bool Analysis::only_orders(const Node& node, size_t index) const {
  if (node.is_switch()) return index == 1;
  return is_array_op(node) && int(index) == flow_of(node.op_def().inputs) &&
         (makes_gradient_array(node) || is_gradient_array(node.inputs()[0])) &&
         !is_gradient_flow(node.inputs()[index]);
}

bool Analysis::is_container(const Endpoint& tensor) const {
  return tensor.node->output_dtypes()[size_t(tensor.port)] ==
             DataType::kVariant ||
         flows_.contains(tensor);
}

PartialShape Analysis::derivative_shape(const Endpoint& tensor) const {
  const PartialShape& shape = tensor.node->output_shape(tensor.port);
  if (!is_container(tensor)) return shape;
  // It may be one empty variant for several containers.
  const bool is_one =
      flows_.contains(tensor) || (shape.has_rank() && shape.rank() == 0);
  return is_one ? PartialShape::scalar() : PartialShape();
}

Node* Analysis::maker_of(Endpoint handle) const {
  for (;;) {
    Node& node = *handle.node;
    if (node.inputs().empty()) return &node;
    if (node.is_identity() || node.is_switch() || node.is_enter()) {
      handle = node.inputs()[0];
    } else if (node.op() == "IdentityN") {
      handle = node.inputs()[size_t(handle.port)];
    } else if (node.is_merge()) {
      const LoopVariable variable = loop_variable(node);
      if (variable.merge == nullptr || !variable.is_invariant()) return &node;
      handle = variable.enter->inputs()[0];
    } else {
      return &node;
    }
  }
}

const Node* Analysis::variable_of(Endpoint handle) const {
  const Node* maker = maker_of(handle);
  // An invariant handle leaves its loop unchanged.
  while (maker->is_exit()) maker = maker_of(maker->inputs()[0]);
  // The variable behind a function's argument is unknown.
  const auto dtype = maker->attr<DataType>("dtype");
  return maker->inputs().empty() && maker->op() != "Placeholder" &&
                 dtype.ok() && *dtype != DataType::kResource
             ? maker
             : nullptr;
}

std::span<const Use> Analysis::uses(const Node& node) const {
  if (!knows(node)) return {};
  return uses_[node.id()];
}

FrameId Analysis::frame_of(const Node& node) const {
  if (knows(node)) return frames_.of(node);
  const auto added = added_.find(node.id());
  return added == added_.end() ? FrameId::kRoot : added->second.frame;
}

FrameId Analysis::output_frame(const Node& node) const {
  return knows(node) ? frames_.output_of(node) : frame_of(node);
}

FrameId Analysis::child_towards(FrameId frame, FrameId inner) const {
  while (inner != FrameId::kRoot && parent(inner) != frame)
    inner = parent(inner);
  return inner;
}

Conditions::Set Analysis::live(const Endpoint& tensor) {
  return knows(*tensor.node) ? facts_.liveness->of(tensor) : live(*tensor.node);
}

Conditions::Set Analysis::live(const Node& node) {
  if (knows(node)) return facts_.liveness->of(node);
  const auto added = added_.find(node.id());
  return added == added_.end() ? Conditions::kNone : added->second.live;
}

Conditions::Set Analysis::goes_on(const Loop& loop) {
  return facts_.liveness->where({loop.loop_cond, 0}, 1, 2);
}

Conditions::Set Analysis::ends(const Loop& loop) {
  return facts_.liveness->where({loop.loop_cond, 0}, 0, 2);
}

bool Analysis::is_loop_switch(const Node& node) const {
  if (!node.is_switch()) return false;
  const Loop& loop = loops_[size_t(frame_of(node))];
  if (loop.loop_cond == nullptr) return false;
  return origin(node.inputs()[1]) == origin({loop.loop_cond, 0});
}

Endpoint Analysis::predicate_in(FrameId frame,
                                const graph::Condition& condition) {
  const auto& known = predicates_[size_t(frame)];
  const auto found = known.find(condition.source);
  return found == known.end() ? Endpoint() : found->second;
}

void Analysis::note(FrameId frame, const Endpoint& tensor, Kept kept) {
  const Node& node = *tensor.node;
  notes_.push_back({frames_.frame(frame).name, tensor.to_string(),
                    node.output_dtypes()[size_t(tensor.port)],
                    node.output_shape(tensor.port), kept,
                    user_ == nullptr ? "" : user_->name(), function_});
}

void Analysis::take_notes_of(Analysis& other) {
  for (KeptValue& note : other.notes_) notes_.push_back(std::move(note));
  other.notes_.clear();
}

void Analysis::add(const Node& node, FrameId frame, Conditions::Set live) {
  added_.insert_or_assign(node.id(), Added{frame, live});
}

}  // namespace tagflow::autodiff
