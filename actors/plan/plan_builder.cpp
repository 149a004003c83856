// The first part of PlanBuilder: which nodes are in the plan, and where tensors
// come from. plan_connect.cpp connects them, and plan_constants.cpp finds the
// constants.
#include "actors/plan/plan_builder.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "actors/plan/tag.h"
#include "devices/state/actor_kernel.h"
#include "devices/state/state_kernel.h"
#include "graph/analysis/polls.h"
#include "graph/partition/transfer_name.h"

namespace tagflow::actors {

using graph::Endpoint;
using graph::FrameId;
using graph::Node;

PlanBuilder::PlanBuilder(const graph::Graph& graph,
                         const graph::FrameMap& frames,
                         const PlanOptions& options,
                         const KernelLookup& kernels, Plan& plan)
    : graph_(graph),
      frames_(frames),
      options_(options),
      kernels_(kernels),
      plan_(plan),
      first_frame_(plan.frames.size()),
      frame_index_(frames.frames().size(), kNone),
      known_(graph.end_id()) {
  drafts_.reserve(frames.frames().size());
  for (const graph::StaticFrame& frame : frames.frames())
    has_start_.push_back(std::ranges::any_of(
        frame.enters,
        [](const Node* enter) { return !enter->is_constant_enter(); }));
  frame_index(FrameId::kRoot);
  drafts_[0].nodes.reserve(graph.size());
  for (const Node* node : graph.nodes()) {
    known_[node->id()].role = find_role(*node);
    // A Merge whose index is read must record which input came first.
    for (const Endpoint& input : node->inputs())
      if (input.port == 1 && input.node != nullptr && input.node->is_merge())
        index_read_.insert(*input.node);
  }
}

// --- Roles of nodes ---------------------------------------------------------

PlanBuilder::Role PlanBuilder::find_role(const Node& node) {
  if (node.is_switch()) return Role::kSwitch;
  if (node.is_merge()) return Role::kMerge;
  if (node.is_const()) return Role::kConst;
  if (node.is_enter() || node.is_exit() || node.is_next_iteration())
    return Role::kCross;
  if (node.is_control_trigger() || node.op() == "NoOp") return Role::kTrigger;
  if (node.op() == "_Send" || node.op() == "_HostSend") return Role::kSend;
  if (node.op() == "_Recv" || node.op() == "_HostRecv") return Role::kRecv;
  if (node.op() == "_Call") return Role::kCall;
  if (node.op() == "GuaranteeConst" &&
      node.input_dtypes()[0] == DataType::kResource)
    return Role::kNode;  // which is rejected
  return node.op_def().forwards ? Role::kForward : Role::kNode;
}

bool PlanBuilder::is_alias(const Node& node) const {
  return options_.compile_edges && role_of(node) == Role::kForward &&
         node.control_inputs().empty();
}

bool PlanBuilder::is_compiled_cross(const Node& node) const {
  return options_.compile_edges && role_of(node) == Role::kCross &&
         node.control_inputs().empty();
}

// A loop's Merge of one Enter and one NextIteration, of which exactly one can
// arrive in an iteration.
bool PlanBuilder::is_compiled_merge(const Node& node) const {
  if (!options_.compile_edges || !node.is_merge() ||
      !node.control_inputs().empty() || index_read_.contains(node) ||
      node.num_inputs() != 2)
    return false;
  int enters = 0;
  int nexts = 0;
  for (const Endpoint& input : node.inputs()) {
    if (is_fed(input)) return false;
    if (input.node->is_enter() &&
        !input.node->attr<bool>("is_constant").value())
      ++enters;
    if (input.node->is_next_iteration()) ++nexts;
  }
  return enters == 1 && nexts == 1;
}

uint32_t PlanBuilder::frame_index(FrameId id) {
  if (const uint32_t known = frame_index_[size_t(id)]; known != kNone)
    return known;
  const graph::StaticFrame& frame = frames_.frame(id);
  int parent = -1;
  if (id != FrameId::kRoot) parent = int(frame_index(frame.parent));
  const auto index = uint32_t(drafts_.size());
  FramePlan& plan = drafts_.emplace_back().plan;
  plan.name = frame.name;
  plan.name_hash = frame_name_hash(frame.name);
  plan.parent = parent < 0 ? -1 : parent + int(first_frame_);
  plan.parallel_iterations =
      options_.window > 0
          ? options_.window
          : int(std::clamp<int64_t>(frame.parallel_iterations, 1, 1 << 20));
  if (parent >= 0) {
    FramePlan& outer = drafts_[size_t(parent)].plan;
    plan.ordinal = uint32_t(outer.children.size());
    outer.children.push_back(int(index + first_frame_));
    if (!outer.calls.empty()) outer.calls.emplace_back();
  }
  frame_index_[size_t(id)] = index;
  return index;
}

uint32_t PlanBuilder::frame_of(const Node& node) {
  return frame_index(frames_.of(node));
}

uint32_t PlanBuilder::output_frame_of(const Node& node) {
  return frame_index(frames_.output_of(node));
}

bool PlanBuilder::is_fed(const Endpoint& endpoint) const {
  return fed_.contains(*endpoint.node) && feeds_.contains(endpoint);
}

Endpoint PlanBuilder::through_aliases(Endpoint endpoint) const {
  const Endpoint first = endpoint;
  while (is_alias(*endpoint.node) && !is_fed(endpoint)) {
    const Endpoint& known = known_[endpoint.node->id()].origin;
    endpoint = known.node != nullptr ? known : endpoint.node->inputs()[0];
  }
  // Follows the chain again, to store the origin in all its nodes.
  for (const Node* node = first.node; node != endpoint.node;) {
    Endpoint& known = known_[node->id()].origin;
    const Node* next =
        known.node != nullptr ? known.node : node->inputs()[0].node;
    known = endpoint;
    node = next;
  }
  return endpoint;
}

// --- Creating requested nodes -----------------------------------------------

Result<uint32_t> PlanBuilder::draft(Node* node) {
  if (const uint32_t known = known_[node->id()].index; known != kNone)
    return known;
  constexpr int kMost = graph::kMaxNodePorts;
  static_assert(kMost == std::numeric_limits<uint16_t>::max());
  if (node->num_inputs() > kMost || node->num_outputs() > kMost)
    return tagflow::error(
        Code::kResourceExhausted,
        "[{}] node \"{}\" has {} inputs and {} outputs, but the engine runs "
        "only nodes with up to {} of each",
        node->op(), node->name(), node->num_inputs(), node->num_outputs(),
        kMost);
  DraftFrame& frame = drafts_[frame_of(*node)];
  const auto index = uint32_t(frame.nodes.size());
  DraftNode& made = frame.nodes.emplace_back();
  NodeItem& item = made.item;
  item.node = node;
  item.num_inputs = uint16_t(node->num_inputs());
  item.num_outputs = uint16_t(node->num_outputs());
  switch (role_of(*node)) {
    case Role::kNode: {
      TAGFLOW_ASSIGN(item.kernel, kernels_(*node));
      if (dynamic_cast<const devices::AsyncKernel*>(item.kernel) != nullptr)
        item.kind = NodeKind::kAsync;
      else if (options_.launches && !item.kernel->is_bookkeeping())
        item.kind = NodeKind::kLaunch;
      else if (dynamic_cast<const devices::StateKernel*>(item.kernel) !=
               nullptr)
        item.kind = NodeKind::kState;
      plan_.updates_state =
          plan_.updates_state || dynamic_cast<const devices::UpdateKernel*>(
                                     &item.kernel->inner()) != nullptr;
      if (const auto* actor =
              dynamic_cast<const devices::ActorKernel*>(&item.kernel->inner()))
        plan_.moves_elements =
            plan_.moves_elements || actor->changes_contents();
      plan_.may_wait = plan_.may_wait || item.kind == NodeKind::kAsync;
      plan_.reads_variables =
          plan_.reads_variables || graph::reads_variables(*node);
      item.may_be_expensive = item.kernel->may_be_expensive();
      item.only_if_large = !item.kernel->may_be_expensive_on_small_inputs();
      item.scalar = item.kernel->scalar_function();
      item.log_output_bytes = log_output_bytes(*node);
      break;
    }
    case Role::kConst:
      item.kind = NodeKind::kForward;
      item.num_inputs = 1;
      break;
    case Role::kForward:
    case Role::kCross:
      item.kind = NodeKind::kForward;
      break;
    case Role::kTrigger:
      item.kind = NodeKind::kTrigger;
      break;
    case Role::kSwitch:
      item.kind =
          node->op() == "_SwitchN" ? NodeKind::kSwitchN : NodeKind::kSwitch;
      break;
    case Role::kMerge:
      item.kind = NodeKind::kMerge;
      item.ordinal = frame.plan.num_merges++;
      break;
    case Role::kCall:
      TAGFLOW_RETURN_IF_ERROR(add_call(*node, item, frame));
      break;
    case Role::kSend:
    case Role::kRecv: {
      item.kind =
          role_of(*node) == Role::kSend ? NodeKind::kSend : NodeKind::kRecv;
      item.ordinal = uint32_t(plan_.transfers.size());
      TAGFLOW_ASSIGN(graph::TransferName name, graph::transfer_name_of(*node));
      plan_.transfers.push_back({.name = std::move(name.key),
                                 .sender = std::move(name.sender),
                                 .tensor = std::move(name.tensor),
                                 .is_sent = name.is_sent});
      break;
    }
  }
  item.first_slot = frame.plan.num_slots;
  frame.plan.num_slots += item.num_inputs;
  frame.plan.sticky.resize(frame.plan.num_slots, kConsumed);
  item.first_port = frame.next_port;
  frame.next_port += uint32_t(item.num_outputs) + 1;
  frame.plan.max_outputs =
      std::max(frame.plan.max_outputs, uint32_t(item.num_outputs));
  made.outputs.resize(size_t(item.num_outputs) + 1);
  known_[node->id()].index = index;
  work_.push_back({node, index, true});
  return index;
}

uint8_t PlanBuilder::log_output_bytes(const Node& node) {
  uint64_t bytes = 1;
  for (int port = 0; port < node.num_outputs(); ++port) {
    const DataType dtype = node.output_dtypes()[size_t(port)];
    const int64_t elements = node.output_shape(port).num_elements();
    if (elements > 0 && is_plain(dtype) &&
        elements < int64_t(1) << 56)  // more fails in any case
      bytes += uint64_t(elements) * dtype_size(dtype);
  }
  return uint8_t(std::bit_width(bytes) - 1);
}

// Adds a child for the call. Its plan is that of the body: here it is the
// number of the body, which is replaced later.
Status PlanBuilder::add_call(const Node& node, NodeItem& item,
                             DraftFrame& frame) {
  TAGFLOW_ASSIGN(const auto body, node.attr<int64_t>("body"));
  FramePlan& plan = frame.plan;
  item.kind = NodeKind::kCall;
  item.ordinal = uint32_t(plan.children.size());
  plan.calls.resize(plan.children.size());
  plan.children.push_back(int(body));
  plan.calls.push_back(
      CallItem{uint32_t(frame.nodes.size() - 1), frame_name_hash(node.name())});
  return {};
}

uint32_t PlanBuilder::arrival(Node* node) {
  if (const uint32_t known = known_[node->id()].arrival; known != kNone)
    return known;
  DraftFrame& frame = drafts_[output_frame_of(*node)];
  const auto index = uint32_t(frame.arrivals.size());
  DraftArrival& made = frame.arrivals.emplace_back();
  made.item.node = node;
  if (node->is_enter()) {
    made.item.is_constant = node->attr<bool>("is_constant").value();
    frame.plan.has_loop_constants |= made.item.is_constant;
    ++frame.plan.num_enters;
  }
  known_[node->id()].arrival = index;
  if (is_compiled_cross(*node)) work_.push_back({node, 0, false});
  return index;
}

Result<PlanBuilder::Sources> PlanBuilder::sources(Endpoint endpoint) {
  endpoint = through_aliases(endpoint);
  Node* node = endpoint.node;
  if (is_fed(endpoint)) return Sources{{0, true, feeds_.at(endpoint), 0}};
  if (is_compiled_merge(*node)) {
    Sources both;
    for (const Endpoint& input : node->inputs())
      both.push_back({frame_of(*node), true, arrival(input.node), 0});
    for (const Endpoint& input : node->inputs())
      if (!is_compiled_cross(*input.node))
        TAGFLOW_RETURN_IF_ERROR(draft(input.node).status());
    return both;
  }
  if (role_of(*node) == Role::kCross) {
    const uint32_t index = arrival(node);
    if (!is_compiled_cross(*node))
      TAGFLOW_RETURN_IF_ERROR(draft(node).status());
    return Sources{{output_frame_of(*node), true, index, 0}};
  }
  TAGFLOW_ASSIGN(const uint32_t index, draft(node));
  return Sources{{frame_of(*node), false, index, uint32_t(endpoint.port)}};
}

// A control edge is dead if the value that its node forwards is dead.
Result<PlanBuilder::Sources> PlanBuilder::control_sources(Node* node) {
  // A Placeholder that is fed has run when its feed has arrived.
  const bool is_feed = node->op() == "Placeholder" && is_fed({node, 0});
  if (is_feed || is_alias(*node) || is_compiled_merge(*node) ||
      role_of(*node) == Role::kCross)
    return sources({node, 0});
  TAGFLOW_ASSIGN(const uint32_t index, draft(node));
  return Sources{{frame_of(*node), false, index, kControlPort}};
}

PlanBuilder::Edges& PlanBuilder::edges_of(const Source& source) {
  DraftFrame& frame = drafts_[source.frame];
  if (source.is_arrival) return frame.arrivals[source.index].edges;
  auto& outputs = frame.nodes[source.index].outputs;
  return source.port == kControlPort ? outputs.back() : outputs[source.port];
}

bool PlanBuilder::is_loop_constant(const Sources& sources) {
  return sources.size() == 1 && sources[0].is_arrival &&
         drafts_[sources[0].frame].arrivals[sources[0].index].item.is_constant;
}

// --- Feeds, fetches, targets ------------------------------------------------

Status PlanBuilder::add_feeds(const std::vector<Endpoint>& feeds) {
  DraftFrame& root = drafts_[0];
  for (const Endpoint& feed : feeds) {
    if (feed.node == nullptr) continue;
    fed_.insert(*feed.node);
    feeds_[feed] = uint32_t(root.arrivals.size());
    root.arrivals.emplace_back().item.node = feed.node;
    ++root.plan.num_enters;
  }
  return {};
}

Status PlanBuilder::add_fetches(const std::vector<Endpoint>& fetches) {
  for (size_t i = 0; i < fetches.size(); ++i) {
    if (fetches[i].node == nullptr) continue;
    const auto index = uint32_t(i);
    plan_.fetches.push_back(index);
    if (auto folded = fold(fetches[i]); folded && folded->waits.empty()) {
      plan_.constant_fetches.push_back({index, std::move(folded->value)});
      continue;
    }
    TAGFLOW_ASSIGN(const Sources from, sources(fetches[i]));
    for (const Source& source : from)
      edges_of(source).push_back({EdgeKind::kFetch, index, 0});
  }
  return {};
}

Status PlanBuilder::add_results(const std::string& name,
                                const std::vector<Endpoint>& results) {
  FramePlan& plan = drafts_[0].plan;
  plan.name = name;
  plan.is_body = true;
  for (size_t i = 0; i < results.size(); ++i) {
    TAGFLOW_ASSIGN(const Sources from, sources(results[i]));
    const auto index = uint32_t(i);
    drafts_[0].plan.exits.push_back({index, results[i].node});
    for (const Source& source : from)
      edges_of(source).push_back({EdgeKind::kExit, index, 0});
  }
  return {};
}

Status PlanBuilder::add_target(Node* node) {
  return control_sources(node).status();
}

void PlanBuilder::add_order_edges(
    std::span<const graph::OrderEdge> order_edges) {
  order_edges_ = order_edges;
}

Status PlanBuilder::finish() {
  while (next_work_ < work_.size()) {
    const Work work = work_[next_work_++];
    TAGFLOW_RETURN_IF_ERROR(connect(work));
  }
  plan_.frames.reserve(plan_.frames.size() + drafts_.size());
  for (const graph::OrderEdge& edge : order_edges_) connect_order_edge(edge);
  for (DraftFrame& draft : drafts_) {
    lay_out(draft);
    plan_.frames.push_back(std::move(draft.plan));
  }
  return {};
}

}  // namespace tagflow::actors
