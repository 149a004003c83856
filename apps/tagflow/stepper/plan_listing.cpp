#include "apps/tagflow/stepper/plan_listing.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "actors/plan/tag.h"
#include "actors/runtime/iteration_state.h"
#include "apps/tagflow/stepper/recording.h"
#include "graph/counted.h"

namespace tagflow::apps::stepper {
namespace {

using actors::EdgeItem;
using actors::EdgeKind;
using actors::FramePlan;
using actors::NodeKind;
using actors::PortItem;

std::string_view word_for(NodeKind kind) {
  switch (kind) {
    case NodeKind::kKernel:
      return "kernel";
    case NodeKind::kState:
      return "state";
    case NodeKind::kAsync:
      return "async";
    case NodeKind::kLaunch:
      return "launch";
    case NodeKind::kSwitch:
      return "switch";
    case NodeKind::kSwitchN:
      return "switch_n";
    case NodeKind::kMerge:
      return "merge";
    case NodeKind::kForward:
      return "forward";
    case NodeKind::kTrigger:
      return "trigger";
    case NodeKind::kCall:
      return "call";
    case NodeKind::kSend:
      return "send";
    case NodeKind::kRecv:
      return "recv";
  }
  return "";
}

std::string_view word_for(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kInput:
      return "input";
    case EdgeKind::kControl:
      return "control";
    case EdgeKind::kLiveControl:
      return "live control";
    case EdgeKind::kMergeInput:
      return "merge input";
    case EdgeKind::kNext:
      return "next";
    case EdgeKind::kEnter:
      return "enter";
    case EdgeKind::kExit:
      return "exit";
    case EdgeKind::kFetch:
      return "fetch";
  }
  return "";
}

// The arguments and results of functions need not be nodes.
std::string name_of(const graph::Node* node) {
  return node == nullptr ? std::string() : node->name();
}

std::string name_of(const FramePlan& frame) {
  return actors::frame_label(frame.is_root() ? "" : frame.name);
}

// One frame of a plan.
class FrameLister {
 public:
  FrameLister(const actors::Plan& plan, const FramePlan& frame)
      : plan_(plan), frame_(frame) {
    for (const actors::ConstantSlot& constant : frame.constants)
      constants_.emplace(constant.slot, &constant.value);
  }

  ListedFrame list() const {
    ListedFrame listed;
    listed.name = name_of(frame_);
    if (frame_.parent >= 0)
      listed.parent = name_of(plan_.frames[size_t(frame_.parent)]);
    listed.is_body = frame_.is_body;
    listed.parallel_iterations = frame_.parallel_iterations;
    listed.num_enters = frame_.num_enters;
    for (const actors::ArrivalItem& item : frame_.arrivals) {
      ListedArrival& arrival = listed.arrivals.emplace_back();
      arrival.name = name_of(item.node);
      arrival.is_constant = item.is_constant;
      add_edges(item.edges, 0, arrival.edges);
    }
    for (uint32_t n = 0; n < frame_.nodes.size(); ++n)
      listed.nodes.push_back(node(n));
    return listed;
  }

 private:
  ListedNode node(uint32_t number) const {
    const actors::NodeItem& item = frame_.nodes[number];
    ListedNode listed;
    listed.name = item.node->name();
    listed.op = item.node->op();
    listed.kind = word_for(item.kind);
    const auto count = [&](const actors::StartState& start) {
      return start.words[number] & actors::IterationState::kCount;
    };
    listed.waits = {count(frame_.first), count(frame_.later),
                    count(frame_.steady_first), count(frame_.steady_later)};
    // The values may be in a device's memory.
    for (auto it = constants_.lower_bound(item.first_slot);
         it != constants_.end() &&
         it->first < item.first_slot + item.num_inputs;
         ++it)
      listed.constants.emplace_back(
          int(it->first - item.first_slot),
          dtype_name(it->second->dtype()) + it->second->shape().to_string());
    for (int port = 0; port <= item.num_outputs; ++port)
      add_edges(frame_.ports[item.first_port + uint32_t(port)],
                port == item.num_outputs ? ListedEdge::kControlPort : port,
                listed.edges);
    return listed;
  }

  void add_edges(const PortItem& port, int number,
                 std::vector<ListedEdge>& edges) const {
    for (uint32_t e = 0; e < port.count; ++e)
      edges.push_back(edge(frame_.edges[port.begin + e], number));
  }

  ListedEdge edge(const EdgeItem& item, int port) const {
    ListedEdge listed;
    listed.port = port;
    listed.kind = word_for(item.kind);
    switch (item.kind) {
      case EdgeKind::kInput:
        listed.index = int(item.slot - frame_.nodes[item.target].first_slot);
        listed.to = name_of(frame_.nodes[item.target].node);
        break;
      case EdgeKind::kMergeInput:
        listed.index = int(item.slot);
        listed.to = name_of(frame_.nodes[item.target].node);
        break;
      case EdgeKind::kControl:
      case EdgeKind::kLiveControl:
        listed.to = name_of(frame_.nodes[item.target].node);
        break;
      case EdgeKind::kNext:
        listed.to = name_of(frame_.arrivals[item.target].node);
        break;
      case EdgeKind::kEnter:
        listed.to = entered(item);
        break;
      case EdgeKind::kExit:
        listed.to = name_of(frame_.exits[item.target].node);
        break;
      case EdgeKind::kFetch:
        listed.index = int(item.target);
        break;
    }
    return listed;
  }

  std::string entered(const EdgeItem& item) const {
    const auto child = size_t(frame_.children[item.slot]);
    return name_of(plan_.frames[child].arrivals[item.target].node);
  }

  const actors::Plan& plan_;
  const FramePlan& frame_;
  std::map<uint32_t, const Tensor*> constants_;  // by slot
};

std::string describe(const ListedWaits& waits) {
  if (waits == ListedWaits{waits.first, waits.first, waits.first, waits.first})
    return fmt::format("waits for {}", waits.first);
  return fmt::format("waits for {}, later {}; with loop constants {}, later {}",
                     waits.first, waits.later, waits.steady_first,
                     waits.steady_later);
}

void add_edges(const std::vector<ListedEdge>& edges, std::string& text) {
  for (const ListedEdge& edge : edges) {
    const std::string port = edge.port == ListedEdge::kControlPort
                                 ? std::string("^")
                                 : fmt::format(":{}", edge.port);
    text += fmt::format("      {} {}", port, edge.kind);
    if (edge.kind == word_for(EdgeKind::kFetch)) {
      text += fmt::format(" {}\n", edge.index);
    } else if (edge.kind == word_for(EdgeKind::kInput) ||
               edge.kind == word_for(EdgeKind::kMergeInput)) {
      text += fmt::format(" {} of \"{}\"\n", edge.index, edge.to);
    } else {
      text += fmt::format(" \"{}\"\n", edge.to);
    }
  }
}

void add_frame(const ListedFrame& frame, std::string& text) {
  text +=
      fmt::format("  {} {}", frame.is_body ? "function" : "frame", frame.name);
  if (!frame.parent.empty())
    text += fmt::format(" in {}, parallel_iterations {}", frame.parent,
                        frame.parallel_iterations);
  text += fmt::format(": {}, {}\n", counted(frame.nodes.size(), "node"),
                      counted(frame.arrivals.size(), "arrival"));
  for (const ListedArrival& arrival : frame.arrivals) {
    text += fmt::format("    arrives {}{}\n", arrival.name,
                        arrival.is_constant ? ", a loop constant" : "");
    add_edges(arrival.edges, text);
  }
  for (const ListedNode& node : frame.nodes) {
    text += fmt::format("    {} {} \"{}\" {}", node.kind, node.op, node.name,
                        describe(node.waits));
    for (const auto& [input, constant] : node.constants)
      text += fmt::format("; input {} is a constant {}", input, constant);
    text += '\n';
    add_edges(node.edges, text);
  }
}

}  // namespace

PlanListing list_plans(std::span<const std::unique_ptr<actors::Plan>> plans) {
  PlanListing listing;
  for (const auto& plan : plans) {
    ListedPlan& listed = listing.emplace_back();
    listed.device = plan->device_name;
    for (const FramePlan& frame : plan->frames)
      listed.frames.push_back(FrameLister(*plan, frame).list());
  }
  return listing;
}

std::string to_text(const PlanListing& listing) {
  std::string text;
  for (const ListedPlan& plan : listing) {
    text += fmt::format("plan of {}\n", plan.device);
    for (const ListedFrame& frame : plan.frames) add_frame(frame, text);
  }
  return text;
}

}  // namespace tagflow::apps::stepper
