#include "actors/diagnosis/quiet_step.h"

#include <algorithm>

#include "actors/plan/tag.h"
#include "graph/device_name.h"

namespace tagflow::actors {
namespace {

bool is_same_frame(const devices::Tag& a, const devices::Tag& b) {
  return a.frame_hi == b.frame_hi && a.frame_lo == b.frame_lo;
}

// The instance with that tag, in the last step of the partition.
const FrameActor* find_instance(const FrameActor& root,
                                const devices::Tag& tag) {
  std::vector<const FrameActor*> open = {&root};
  while (!open.empty()) {
    const FrameActor& frame = *open.back();
    open.pop_back();
    const FrameInstance& instance = frame.instance();
    if (is_same_frame(instance.tag, tag)) return &frame;
    for (const caf::actor& actor : instance.iterations) {
      const auto& iteration = *actor_pointer<IterationActor>(actor);
      if (!iteration.is_of_instance()) continue;
      for (uint32_t c = 0; c < iteration.children().size(); ++c)
        if (const FrameActor* child = child_of(iteration, c))
          open.push_back(child);
    }
  }
  return nullptr;
}

}  // namespace

std::string device_label(const IterationActor& iteration) {
  return device_label(*iteration.frame().run->plan);
}

std::string device_label(const Plan& plan) {
  return std::string(graph::short_device_name(plan.device_name));
}

const FrameActor* child_of(const IterationActor& iteration, uint32_t child) {
  const FrameActor* frame = iteration.children()[child];
  if (frame == nullptr || iteration.is_call(child)) return nullptr;
  const FrameInstance& instance = frame->instance();
  const devices::Tag tag = frame_tag(
      iteration.frame().tag, iteration.iteration(), instance.plan->name_hash);
  const bool is_its = instance.step_id == iteration.frame().step_id &&
                      is_same_frame(instance.tag, tag);
  return is_its ? frame : nullptr;
}

const IterationActor* find_iteration(const FrameInstance& instance,
                                     int64_t number) {
  for (const caf::actor& actor : instance.iterations) {
    const auto* iteration = actor_pointer<IterationActor>(actor);
    if (iteration->is_of_instance() && iteration->iteration() == number)
      return iteration;
  }
  return nullptr;
}

QuietStep::QuietStep(std::span<PartitionActor* const> partitions)
    : partitions_(partitions) {}

const ReverseEdges& QuietStep::reverse_edges(const FramePlan& plan) {
  return reverse_edges_.try_emplace(&plan, plan).first->second;
}

const QuietStep::Location* QuietStep::send_location(
    const IterationActor& iteration, uint32_t recv) {
  if (!senders_.has_value()) {
    senders_.emplace();
    for (const PartitionActor* partition : partitions_) {
      const Plan& plan = *partition->root().instance().run->plan;
      for (const FramePlan& frame : plan.frames)
        for (uint32_t n = 0; n < frame.nodes.size(); ++n)
          if (frame.nodes[n].kind == NodeKind::kSend)
            senders_->emplace(plan.transfers[frame.nodes[n].ordinal].number,
                              Location{partition, &frame, n});
    }
  }
  const FrameInstance& here = iteration.frame();
  const NodeItem& item = here.plan->nodes[recv];
  const auto location =
      senders_->find(here.run->plan->transfers[item.ordinal].number);
  return location == senders_->end() ? nullptr : &location->second;
}

const PartitionActor* QuietStep::sending_partition(
    const IterationActor& iteration, uint32_t recv) {
  const Location* location = send_location(iteration, recv);
  return location == nullptr ? nullptr : location->partition;
}

std::optional<Spot> QuietStep::sender_of(const IterationActor& iteration,
                                         uint32_t recv) {
  const Location* location = send_location(iteration, recv);
  if (location == nullptr) return std::nullopt;
  const auto& [partition, frame, node] = *location;
  const FrameActor* there =
      find_instance(partition->root(), iteration.frame().tag);
  if (there == nullptr || there->instance().plan != frame) return std::nullopt;
  const IterationActor* sending =
      find_iteration(there->instance(), iteration.iteration());
  if (sending == nullptr) return std::nullopt;
  return Spot{sending, {false, node, 0, {}}};
}

// The origin of a loop constant, or of the first iteration, is in the enclosing
// frame.
std::optional<std::vector<Spot>> QuietStep::before(const Spot& arrival) {
  const IterationActor& here = *arrival.iteration;
  const FrameInstance& frame = here.frame();
  const ArrivalItem& item = frame.plan->arrivals[arrival.origin.index];
  const IterationActor* from = nullptr;
  std::vector<Origin> origins;
  if (item.node->is_enter()) {
    if (!item.is_constant && here.iteration() > 0) return std::nullopt;
    from = static_cast<const IterationActor*>(frame.parent);
    if (from->iteration() != frame.parent_iteration || !from->is_of_instance())
      return std::nullopt;
    origins = reverse_edges(*from->frame().plan).into_child(frame.ordinal);
  } else if (item.node->is_next_iteration() && here.iteration() > 0) {
    from = find_iteration(frame, here.iteration() - 1);
    if (from == nullptr) return std::nullopt;
    origins = reverse_edges(*frame.plan).into_next();
  } else {
    return std::nullopt;
  }
  std::erase_if(origins, [&](const Origin& origin) {
    return origin.edge.target != arrival.origin.index;
  });
  std::vector<Spot> spots;
  for (const Origin& origin : origins) spots.push_back({from, origin});
  return spots;
}

std::vector<Spot> QuietStep::spots(const IterationActor& iteration,
                                   std::vector<Origin> origins) {
  std::vector<Spot> found;
  std::vector<Spot> open;
  for (const Origin& origin : origins) open.push_back({&iteration, origin});
  while (!open.empty()) {
    const Spot spot = open.back();
    open.pop_back();
    std::optional<std::vector<Spot>> earlier;
    if (spot.origin.is_arrival) earlier = before(spot);
    if (earlier.has_value()) {
      open.insert(open.end(), earlier->begin(), earlier->end());
    } else {
      found.push_back(spot);
    }
  }
  std::ranges::reverse(found);
  return found;
}

std::vector<Spot> QuietStep::into_node(const IterationActor& iteration,
                                       uint32_t node) {
  const FramePlan& plan = *iteration.frame().plan;
  if (plan.nodes[node].kind == NodeKind::kRecv && iteration.has_fired(node)) {
    if (const std::optional<Spot> sender = sender_of(iteration, node))
      return {*sender};
  }
  return spots(iteration, reverse_edges(plan).into_node(node));
}

}  // namespace tagflow::actors
