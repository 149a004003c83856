#include "graph/placement/placer.h"

#include <algorithm>
#include <limits>

#include "graph/placement/colocation.h"
#include "graph/placement/program_costs.h"
#include "graph/placement/simulation.h"

namespace tagflow::graph {
namespace {

constexpr uint32_t kNowhere = ~uint32_t(0);

// Chooses devices during the simulation.
class Placer {
 public:
  Placer(const Program& program, std::span<const DeviceInfo> devices,
         const Colocation& colocation, const ProgramCosts& costs)
      : graph_(program.graph),
        devices_(devices),
        colocation_(colocation),
        costs_(costs),
        simulation_(program, devices, costs),
        groups_(colocation.size()),
        is_open_(graph_.end_id()),
        order_(graph_.end_id()),
        reasons_(graph_.end_id()),
        times_(devices.size()) {
    list_groups();
  }

  Status run() {
    TAGFLOW_RETURN_IF_ERROR(
        simulation_.walk([this](const Node& node) { visit(node); }));
    for (const NodeId id : simulation_.visited())
      if (is_open_[id]) settle(*graph_.node(id), nullptr);
    return {};
  }

  PlacementResult take() && {
    PlacementResult result = std::move(simulation_).take();
    result.reasons = std::move(reasons_);
    if (crowded_ > 0)
      result.warnings.push_back(fmt::format(
          "by estimate, no device has room for the inputs and outputs of {} "
          "nodes; the first is \"{}\"",
          crowded_, first_crowded_->name()));
    return result;
  }

 private:
  struct Group {
    uint32_t device = kNowhere;
    NodeId decider = 0;  // the node for which the device was chosen
    bool is_light = true;
    uint32_t first = 0;  // in members_
    uint32_t count = 0;
  };

  // --- Groups ---------------------------------------------------------------

  void list_groups() {
    for (const Node* node : graph_.nodes()) {
      Group& group = group_of(*node);
      ++group.count;
      group.is_light &= costs_.is_light(*node);
    }
    uint32_t members = 0;
    for (Group& group : groups_) {
      group.first = members;
      members += std::exchange(group.count, 0);
    }
    members_.resize(members);
    for (const Node* node : graph_.nodes()) {
      Group& group = group_of(*node);
      members_[group.first + group.count++] = node->id();
    }
  }

  Group& group_of(const Node& node) {
    return groups_[colocation_.group_of(node)];
  }
  std::span<const NodeId> members_of(const Group& group) const {
    return std::span(members_).subspan(group.first, group.count);
  }
  std::span<const uint32_t> choice_of(const Node& node) const {
    return colocation_.devices_of(colocation_.group_of(node));
  }
  bool can_be_on(const Node& node, uint32_t device) {
    const uint32_t placed = group_of(node).device;
    return placed == kNowhere
               ? std::ranges::binary_search(choice_of(node), device)
               : placed == device;
  }
  void decide(const Node& node, uint32_t device, const NodeReason& reason) {
    Group& group = group_of(node);
    group.device = device;
    group.decider = node.id();
    reasons_[node.id()] = reason;
  }

  // --- The walk -------------------------------------------------------------

  void visit(const Node& node) {
    order_[node.id()] = uint32_t(simulation_.visited().size());
    const Group& group = group_of(node);
    if (group.device == kNowhere) {
      if (const auto choice = choice_of(node); choice.size() == 1) {
        decide(node, choice[0], only_choice(node));
      } else if (!group.is_light) {
        choose(node);
      } else if (const Node* data = data_of(node)) {
        decide(node, simulation_.device_of(*data),
               {PlacementReason::kData, data->id()});
      } else {
        is_open_[node.id()] = true;
        return;
      }
    }
    put(node);
  }

  void put(const Node& node) {
    visit_sources(node, [&](const Source& source) {
      if (is_open_[source.node->id()]) settle(*source.node, &node);
    });
    const Group& group = group_of(node);
    if (group.decider != node.id()) {
      reasons_[node.id()] =
          colocation_.is_constrained(node) && choice_of(node).size() == 1
              ? NodeReason{PlacementReason::kConstraint}
              : NodeReason{PlacementReason::kColocated, group.decider};
    }
    simulation_.put(node, group.device);
  }

  NodeReason only_choice(const Node& node) {
    if (devices_.size() == 1) return {PlacementReason::kOnlyDevice};
    if (colocation_.is_constrained(node)) return {PlacementReason::kConstraint};
    for (const NodeId id : members_of(group_of(node)))
      if (colocation_.is_constrained(*graph_.node(id)))
        return {PlacementReason::kColocated, id};
    return {PlacementReason::kOnlyKernel};
  }

  // A source that has run on a device that the node can use; null: none.
  const Node* source_of(const Node& node, bool control) {
    const Node* found = nullptr;
    visit_sources(node, [&](const Source& source) {
      if (found == nullptr && (source.port == Source::kControl) == control &&
          simulation_.has_run(*source.node) &&
          can_be_on(node, simulation_.device_of(*source.node)))
        found = source.node;
    });
    return found;
  }

  // The source of its data; the predicate of a Switch does not count.
  const Node* data_of(const Node& node) {
    if (!node.is_switch()) return source_of(node, /*control=*/false);
    const Node* data = node.inputs()[0].node;
    return simulation_.has_run(*data) &&
                   can_be_on(node, simulation_.device_of(*data))
               ? data
               : nullptr;
  }

  // Chooses the device where the node, with its group, would finish first.
  void choose(const Node& node) {
    std::ranges::fill(times_, 0.0);
    for (const NodeId id : members_of(group_of(node)))
      costs_.add_times(*graph_.node(id), times_);
    struct Option {
      uint32_t device = kNowhere;
      double finish_ns = std::numeric_limits<double>::infinity();
    };
    const Timeline& timeline = simulation_.timeline();
    Option best, second;
    uint32_t roomiest = choice_of(node)[0];
    for (const uint32_t device : choice_of(node)) {
      // Unplaced sources follow the node if they can.
      const auto arrival =
          simulation_.arrival(node, device, [&](const Node& open) {
            return can_be_on(open, device) ? device : home_of(open);
          });
      const double room = timeline.room(device);
      if (room > timeline.room(roomiest)) roomiest = device;
      if (arrival.bytes + costs_.work(node).output_bytes > room) continue;
      const Option option = {
          device,
          std::max(arrival.time_ns, timeline.free_at(device)) + times_[device]};
      if (best.device == kNowhere || option.finish_ns < best.finish_ns) {
        second = std::exchange(best, option);
      } else if (option.finish_ns < second.finish_ns) {
        second = option;
      }
    }
    if (best.device == kNowhere) {
      if (crowded_++ == 0) first_crowded_ = &node;
      return decide(node, roomiest, {PlacementReason::kMostRoom});
    }
    if (second.device == kNowhere)
      return decide(node, best.device, {PlacementReason::kOnlyRoom});
    decide(node, best.device,
           {PlacementReason::kFinishesFirst, 0, second.device, best.finish_ns,
            second.finish_ns});
  }

  // The device of an unplaced node that cannot follow its reader.
  uint32_t home_of(const Node& node) {
    const uint32_t placed = group_of(node).device;
    return placed == kNowhere ? choice_of(node)[0] : placed;
  }

  // --- Unplaced nodes -------------------------------------------------------

  // Places an unplaced node after the unplaced nodes that it depends on: each
  // with its data if that is placed, otherwise with the reader.
  void settle(const Node& node, const Node* reader) {
    std::vector<NodeId> open = {node.id()};
    is_open_[node.id()] = false;
    for (size_t i = 0; i < open.size(); ++i)
      visit_sources(*graph_.node(open[i]), [&](const Source& source) {
        const NodeId id = source.node->id();
        if (!is_open_[id]) return;
        is_open_[id] = false;
        open.push_back(id);
      });
    std::ranges::sort(open, {}, [&](NodeId id) { return order_[id]; });
    for (const NodeId id : open) {
      const Node& next = *graph_.node(id);
      if (group_of(next).device == kNowhere) settle_group(next, reader);
      put(next);
    }
  }

  void settle_group(const Node& node, const Node* reader) {
    const Node* source = data_of(node);
    if (source == nullptr && reader == nullptr)
      source = source_of(node, /*control=*/true);
    if (source != nullptr) {
      decide(node, simulation_.device_of(*source),
             {PlacementReason::kData, source->id()});
    } else if (reader != nullptr && can_be_on(node, group_of(*reader).device)) {
      decide(node, group_of(*reader).device,
             {PlacementReason::kReader, reader->id()});
    } else {
      decide(node, choice_of(node)[0], {PlacementReason::kAnywhere});
    }
  }

  const Graph& graph_;
  const std::span<const DeviceInfo> devices_;
  const Colocation& colocation_;
  const ProgramCosts& costs_;
  Simulation simulation_;
  std::vector<Group> groups_;
  std::vector<NodeId> members_;  // of all groups, one after another
  std::vector<bool> is_open_;    // by node id: visited, but unplaced
  std::vector<uint32_t> order_;  // by node id: when it was visited
  std::vector<NodeReason> reasons_;
  std::vector<double> times_;  // by device; a reused buffer
  size_t crowded_ = 0;         // nodes for which no device had room
  const Node* first_crowded_ = nullptr;
};

bool has_constraint(const Graph& graph) {
  return std::ranges::any_of(
      graph.nodes(), [](const Node* node) { return !node->device().empty(); });
}

bool has_constraint(const Program& program) {
  return has_constraint(program.graph) ||
         std::ranges::any_of(program.bodies, [](const auto& body) {
           return has_constraint(body->graph);
         });
}

}  // namespace

std::string PlacementResult::explain(const Graph& graph,
                                     std::span<const DeviceInfo> devices,
                                     const Node& node) const {
  if (reasons.empty())
    return devices.size() == 1 ? "the only device" : "as it was given";
  const NodeReason& reason = reasons[node.id()];
  const auto other = [&] {
    return fmt::format("\"{}\"", graph.node(reason.other)->name());
  };
  switch (reason.reason) {
    case PlacementReason::kOnlyDevice:
      return "the only device";
    case PlacementReason::kConstraint:
      return fmt::format("constraint \"{}\"", node.device());
    case PlacementReason::kOnlyKernel:
      return "no other device can run it";
    case PlacementReason::kColocated:
      return "colocated with " + other();
    case PlacementReason::kData:
      return "where its data is, from " + other();
    case PlacementReason::kReader:
      return "where its reader is, " + other();
    case PlacementReason::kAnywhere:
      return "anywhere, it costs nothing";
    case PlacementReason::kOnlyRoom:
      return "no other device has room";
    case PlacementReason::kMostRoom:
      return "no device has room, this one has the most";
    case PlacementReason::kFinishesFirst:
      break;
  }
  return fmt::format(
      "finishes first: {:.1f} us, on {} {:.1f} us", reason.finish_ns / 1e3,
      devices[reason.rival].name.short_name(), reason.rival_finish_ns / 1e3);
}

Result<PlacementResult> place(const Program& program,
                              std::span<const DeviceInfo> devices,
                              const KernelCatalog& catalog,
                              const CostModel& costs,
                              const PlacementOptions& options) {
  if (devices.size() == 1 && devices[0].host_memory &&
      !options.always_simulate && !has_constraint(program)) {
    PlacementResult result;
    result.placement.device_of.resize(program.graph.end_id());
    return result;
  }
  TAGFLOW_ASSIGN(const Colocation colocation,
                 Colocation::build(program, devices, catalog, {options.soft}));
  TAGFLOW_ASSIGN(const ProgramCosts of_nodes,
                 ProgramCosts::build(program, devices, costs));
  Placer placer(program, devices, colocation, of_nodes);
  TAGFLOW_RETURN_IF_ERROR(placer.run());
  PlacementResult result = std::move(placer).take();
  result.warnings.insert(result.warnings.begin(), colocation.warnings().begin(),
                         colocation.warnings().end());
  return result;
}

Result<PlacementResult> simulate(const Program& program,
                                 std::span<const DeviceInfo> devices,
                                 const CostModel& costs,
                                 const Placement& placement) {
  TAGFLOW_ASSIGN(const ProgramCosts of_nodes,
                 ProgramCosts::build(program, devices, costs));
  Simulation simulation(program, devices, of_nodes);
  TAGFLOW_RETURN_IF_ERROR(simulation.walk([&](const Node& node) {
    simulation.put(node, placement.device_of[node.id()]);
  }));
  return std::move(simulation).take();
}

}  // namespace tagflow::graph
