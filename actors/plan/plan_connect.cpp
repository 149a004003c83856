// The second half of PlanBuilder: connects nodes to their sources, and lays the
// result out flat.
#include <algorithm>

#include "actors/plan/plan_builder.h"

namespace tagflow::actors {

using graph::Node;

bool PlanBuilder::Seen::insert(const Sources& sources) {
  constexpr size_t kFew = 8;
  const auto hash = [](const Sources& of) {
    uint64_t mixed = 0;
    for (const Source& source : of)
      for (const uint32_t part : {source.frame, uint32_t(source.is_arrival),
                                  source.index, source.port})
        mixed = (mixed + part + 1) * 0x9e3779b97f4a7c15;
    return uint32_t(mixed >> 32);
  };
  const auto is_it = [&](uint32_t i) { return list_[i] == sources; };
  const bool known =
      list_.size() <= kFew
          ? std::ranges::find(list_, sources) != list_.end()
          : index_.find(hash(sources), is_it) != graph::HashIndex::kNone;
  if (known) return false;
  list_.push_back(sources);
  if (list_.size() > kFew)
    while (indexed_ < list_.size()) {
      index_.insert(hash(list_[indexed_]), indexed_);
      ++indexed_;
    }
  return true;
}

Status PlanBuilder::connect(const Work& work) {
  if (work.is_draft) return connect_draft(work.node, work.index);
  // An Enter, Exit or NextIteration that became an edge.
  TAGFLOW_ASSIGN(const Sources from, sources(work.node->inputs()[0]));
  return connect_cross(work.node, from);
}

Status PlanBuilder::connect_cross(Node* node, const Sources& from) {
  EdgeItem edge;
  edge.target = arrival(node);
  if (node->is_next_iteration()) {
    edge.kind = EdgeKind::kNext;
  } else if (node->is_enter()) {
    edge.kind = EdgeKind::kEnter;
    edge.slot = drafts_[output_frame_of(*node)].plan.ordinal;
  } else {
    edge.kind = EdgeKind::kExit;
    auto& exits = drafts_[frame_of(*node)].plan.exits;
    exits.push_back({edge.target, node});
    edge.target = uint32_t(exits.size() - 1);
  }
  for (const Source& source : from) edges_of(source).push_back(edge);
  return {};
}

Status PlanBuilder::connect_draft(Node* node, uint32_t index) {
  const uint32_t frame = frame_of(*node);
  std::vector<Node*> controls(node->control_inputs().begin(),
                              node->control_inputs().end());
  Seen seen;
  if (node->is_const()) {
    TAGFLOW_ASSIGN(Tensor value, node->attr<Tensor>("value"));
    DraftNode& made = drafts_[frame].nodes[index];
    FramePlan& plan = drafts_[frame].plan;
    plan.constants.push_back({made.item.first_slot, std::move(value)});
    plan.sticky[made.item.first_slot] = kPlanConstant;
    made.item.has_constant_inputs = true;
  }
  for (int i = 0; i < node->num_inputs(); ++i)
    TAGFLOW_RETURN_IF_ERROR(
        connect_input(node, frame, index, i, controls, seen));
  TAGFLOW_RETURN_IF_ERROR(connect_controls(node, frame, index, controls, seen));
  DraftNode& made = drafts_[frame].nodes[index];
  if (node->is_merge()) {
    ++made.waits;
    ++made.waits_steady;
  }
  if (role_of(*node) == Role::kCross)
    return connect_cross(node, Sources{{frame, false, index, 0}});
  return {};
}

Status PlanBuilder::connect_input(Node* node, uint32_t frame, uint32_t index,
                                  int input, std::vector<Node*>& controls,
                                  Seen& seen) {
  const graph::Endpoint from = node->inputs()[size_t(input)];
  const uint32_t slot =
      drafts_[frame].nodes[index].item.first_slot + uint32_t(input);
  if (!node->is_merge()) {
    if (auto folded = fold(from)) {
      FramePlan& plan = drafts_[frame].plan;
      plan.constants.push_back({slot, std::move(folded->value)});
      plan.sticky[slot] = kPlanConstant;
      drafts_[frame].nodes[index].item.has_constant_inputs = true;
      controls.insert(controls.end(), folded->waits.begin(),
                      folded->waits.end());
      return {};
    }
  }
  TAGFLOW_ASSIGN(const Sources sources, this->sources(from));
  EdgeItem edge{EdgeKind::kInput, index, slot};
  if (node->is_merge()) edge = {EdgeKind::kMergeInput, index, uint32_t(input)};
  for (const Source& source : sources) edges_of(source).push_back(edge);
  DraftNode& made = drafts_[frame].nodes[index];
  if (node->is_merge()) {
    bool in_first = false;
    bool in_later = false;
    for (const Source& source : sources) {
      const ArrivalItem* arrival =
          source.is_arrival ? &drafts_[source.frame].arrivals[source.index].item
                            : nullptr;
      const bool next = arrival && arrival->node->is_next_iteration();
      const bool enter =
          arrival && arrival->node->is_enter() && !arrival->is_constant;
      in_first = in_first || !next;
      in_later = in_later || !enter;
    }
    made.merge_first += in_first ? 1 : 0;
    made.merge_later += in_later ? 1 : 0;
    return {};
  }
  ++made.waits;
  if (is_loop_constant(sources)) {
    drafts_[frame].plan.sticky[slot] = kLoopConstant;
    made.item.has_constant_inputs = true;
  } else {
    ++made.waits_steady;
  }
  seen.insert(sources);
  return {};
}

Status PlanBuilder::connect_controls(Node* node, uint32_t frame, uint32_t index,
                                     const std::vector<Node*>& controls,
                                     Seen& seen) {
  // A Merge and a ControlTrigger only wait for their control inputs. For any
  // other node, a control edge from the source of a data edge is redundant.
  const bool only_waits = node->is_merge() || node->is_control_trigger();
  if (only_waits) seen = {};
  const auto wait_for = [&](Node* control) -> Status {
    TAGFLOW_ASSIGN(const Sources sources, control_sources(control));
    if (!seen.insert(sources)) return {};
    const EdgeKind kind =
        only_waits ? EdgeKind::kLiveControl : EdgeKind::kControl;
    for (const Source& source : sources)
      edges_of(source).push_back({kind, index, 0});
    DraftNode& made = drafts_[frame].nodes[index];
    ++made.waits;
    if (!is_loop_constant(sources)) ++made.waits_steady;
    return {};
  };
  for (Node* control : controls) {
    // A constant of this frame is available as soon as the nodes that it waits
    // for.
    const auto folded = control->num_outputs() > 0 ? fold({control, 0})
                                                   : std::optional<Folded>();
    if (!folded) {
      TAGFLOW_RETURN_IF_ERROR(wait_for(control));
    } else {
      for (Node* wait : folded->waits) TAGFLOW_RETURN_IF_ERROR(wait_for(wait));
    }
  }
  return {};
}

// Nodes that are not in the plan need not be waited for.
void PlanBuilder::connect_order_edge(const graph::OrderEdge& edge) {
  const uint32_t then = known_[edge.then->id()].index;
  if (then == kNone) return;
  const uint32_t frame = frame_of(*edge.then);
  Edges* from = nullptr;
  if (edge.first->is_enter()) {
    if (known_[edge.first->id()].arrival == kNone) return;
    const uint32_t child = drafts_[output_frame_of(*edge.first)].plan.ordinal;
    auto& ends = drafts_[frame].child_ends;
    ends.resize(drafts_[frame].plan.children.size());
    from = &ends[child];
  } else {
    const uint32_t first = known_[edge.first->id()].index;
    if (first == kNone) return;
    from = &edges_of({frame, false, first, kControlPort});
  }
  from->push_back({EdgeKind::kLiveControl, then, 0});
  DraftNode& waits = drafts_[frame].nodes[then];
  ++waits.waits;
  ++waits.waits_steady;
}

// --- Layout -----------------------------------------------------------------

size_t PlanBuilder::num_edges(const DraftFrame& draft) {
  size_t edges = 0;
  for (const DraftNode& node : draft.nodes)
    for (const Edges& of_port : node.outputs) edges += of_port.size();
  for (const DraftArrival& arrival : draft.arrivals)
    edges += arrival.edges.size();
  for (const Edges& ends : draft.child_ends) edges += ends.size();
  return edges;
}

void PlanBuilder::lay_out(DraftFrame& draft) {
  FramePlan& plan = draft.plan;
  // Ends the port at the last edge that was added.
  const auto end_port = [&](PortItem& port) {
    port.count = uint32_t(plan.edges.size()) - port.begin;
    if (port.count > 0) port.first = plan.edges[port.begin];
  };
  const auto place_of = [](const EdgeItem& edge) {
    return is_control(edge.kind) ? 0 : edge.kind == EdgeKind::kInput ? 1 : 2;
  };
  const auto add_port = [&](Edges& edges) {
    PortItem port;
    port.begin = uint32_t(plan.edges.size());
    if (edges.size() > 1) std::ranges::stable_sort(edges, {}, place_of);
    plan.edges.insert(plan.edges.end(), edges.begin(), edges.end());
    end_port(port);
    return port;
  };
  plan.nodes.reserve(draft.nodes.size());
  plan.ports.reserve(draft.next_port);
  plan.edges.reserve(num_edges(draft));
  plan.arrivals.reserve(draft.arrivals.size());
  plan.sticky.shrink_to_fit();
  plan.constants.shrink_to_fit();
  for (DraftNode& node : draft.nodes) {
    node.item.edges.begin = uint32_t(plan.edges.size());
    const PortItem control = add_port(node.outputs.back());
    node.outputs.pop_back();
    for (Edges& edges : node.outputs) plan.ports.push_back(add_port(edges));
    plan.ports.push_back(control);
    end_port(node.item.edges);
    node.item.may_hold_when_dead = node.waits > 1;
    plan.nodes.push_back(node.item);
  }
  for (DraftArrival& arrival : draft.arrivals) {
    arrival.item.edges = add_port(arrival.edges);
    if (arrival.item.is_constant)
      for (const EdgeItem& edge : arrival.edges)
        if (edge.kind != EdgeKind::kInput && !is_control(edge.kind))
          plan.constant_edges.push_back({uint32_t(plan.arrivals.size()), edge});
    plan.arrivals.push_back(arrival.item);
  }
  for (Edges& ends : draft.child_ends)
    plan.child_ends.push_back(add_port(ends));
  const auto start = [&](bool steady, bool first) {
    const auto waits_of = [steady](const DraftNode& node) {
      return steady ? node.waits_steady : node.waits;
    };
    StartState state;
    state.num_ready = uint32_t(std::ranges::count(draft.nodes, 0u, waits_of));
    state.merge_inputs.resize(plan.num_merges);
    constexpr size_t kBlock = StartState::kBlock;
    const size_t used = draft.nodes.size() + state.num_ready;
    state.words.resize((used + kBlock - 1) / kBlock * kBlock);
    size_t ready = draft.nodes.size();
    for (size_t i = 0; i < draft.nodes.size(); ++i) {
      const DraftNode& node = draft.nodes[i];
      state.words[i] = waits_of(node);
      if (waits_of(node) == 0) state.words[ready++] = uint32_t(i);
      if (node.item.kind == NodeKind::kMerge)
        state.merge_inputs[node.item.ordinal] =
            first ? node.merge_first : node.merge_later;
    }
    return state;
  };
  plan.first = start(false, true);
  plan.later = start(false, false);
  plan.steady_first = start(true, true);
  plan.steady_later = start(true, false);
}

}  // namespace tagflow::actors
