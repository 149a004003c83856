#include "actors/diagnosis/stall_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "actors/runtime/tag_text.h"

namespace tagflow::actors {
namespace {

const NodeItem& item_of(const Spot& spot) {
  return spot.iteration->frame().plan->nodes[spot.origin.index];
}

std::string quoted(const std::string& name, const IterationActor& iteration) {
  return fmt::format("\"{}\" of {}", name, device_label(iteration));
}

// A spot that waits, and the next spot that it waits for, which is in another
// partition if the spot is a Recv.
class Stall {
 public:
  Stall(QuietStep& step, const Spot& spot) : step_(step), spot_(spot) {}

  std::optional<Spot> next() {
    return spot_.origin.is_arrival ? into_loop() : back();
  }

  // The name of the spot; empty if it is the Send, or the node whose output is
  // sent.
  std::string name(const graph::Node* sent) const {
    const IterationActor& here = *spot_.iteration;
    if (spot_.origin.is_arrival) {
      const auto exit = place();
      const FrameActor* loop =
          exit.has_value() ? here.children()[exit->child] : nullptr;
      if (loop == nullptr) return {};
      return "frame " + quoted(frame_text(here.frame(), here.iteration(),
                                          *loop->instance().plan),
                               here);
    }
    const NodeItem& item = item_of(spot_);
    if (item.node == sent || item.kind == NodeKind::kSend) return {};
    return quoted(item.node->name(), here);
  }

 private:
  std::optional<ExitPlace> place() const {
    const FrameInstance& frame = spot_.iteration->frame();
    return find_exit(*frame.run->plan, *frame.plan,
                     *frame.plan->arrivals[spot_.origin.index].node);
  }

  // What the Exit waits for: a node that has not answered in its loop, or an
  // Enter whose token has not come.
  std::optional<Spot> into_loop() {
    const auto exit = place();
    if (!exit.has_value()) return std::nullopt;
    const IterationActor& here = *spot_.iteration;
    if (here.child_live(exit->child))
      return unanswered_in(*here.children()[exit->child]);
    return first_missing(step_.spots(
        here, step_.reverse_edges(*here.frame().plan).into_child(exit->child)));
  }

  // An unanswered kernel, or else an unanswered Recv.
  static std::optional<Spot> unanswered_in(const FrameActor& loop) {
    std::optional<Spot> recv;
    std::vector<const FrameActor*> open = {&loop};
    while (!open.empty()) {
      const FrameInstance& frame = open.back()->instance();
      open.pop_back();
      for (const caf::actor& actor : frame.iterations) {
        const auto& iteration = *actor_pointer<IterationActor>(actor);
        if (!iteration.busy() || !iteration.is_of_instance()) continue;
        for (uint32_t n = 0; n < frame.plan->nodes.size(); ++n) {
          if (!iteration.awaits(n)) continue;
          const Spot spot{&iteration, {false, n, 0, {}}};
          if (frame.plan->nodes[n].kind != NodeKind::kRecv) return spot;
          if (!recv.has_value()) recv = spot;
        }
        each_live_child(iteration, [&](uint32_t, const FrameActor& child) {
          open.push_back(&child);
        });
      }
    }
    return recv;
  }

  std::optional<Spot> back() {
    const IterationActor& here = *spot_.iteration;
    const uint32_t node = spot_.origin.index;
    if (here.awaits(node))
      return item_of(spot_).kind == NodeKind::kRecv
                 ? step_.sender_of(here, node)
                 : std::nullopt;
    if (here.has_fired(node)) return std::nullopt;
    return first_missing(step_.into_node(here, node));
  }

  static bool is_missing(const Spot& spot) {
    const IterationActor& here = *spot.iteration;
    const uint32_t index = spot.origin.index;
    if (!spot.origin.is_arrival)
      return !here.has_fired(index) || here.awaits(index);
    const FrameInstance& frame = here.frame();
    const graph::Node& node = *frame.plan->arrivals[index].node;
    const auto exit = find_exit(*frame.run->plan, *frame.plan, node);
    if (!exit.has_value()) return false;
    const FrameActor* child = child_of(here, exit->child);
    return child == nullptr ||
           (here.child_live(exit->child) && !child->exit_was_live(exit->exit));
  }

  static std::optional<Spot> first_missing(const std::vector<Spot>& spots) {
    const auto found = std::ranges::find_if(spots, is_missing);
    if (found == spots.end()) return std::nullopt;
    return *found;
  }

  QuietStep& step_;
  const Spot spot_;
};

}  // namespace

std::optional<Spot> MissingTransfers::end_of(Spot spot) {
  std::vector<std::optional<Spot>*> way;
  std::optional<Spot> end;
  for (;;) {
    const Key key{spot.iteration, spot.origin.is_arrival, spot.origin.index};
    const auto [known, is_new] = ends_.try_emplace(key);
    if (!is_new) {
      end = known->second;
      break;
    }
    way.push_back(&known->second);
    const std::optional<Spot> next = Stall(step_, spot).next();
    if (!next.has_value()) {
      end = spot;
      break;
    }
    spot = *next;
  }
  for (std::optional<Spot>* passed : way) *passed = end;
  return end;
}

MissingTransfer MissingTransfers::of(const IterationActor& iteration,
                                     uint32_t recv) {
  const FrameInstance& frame = iteration.frame();
  const TransferItem& transfer =
      frame.run->plan->transfers[frame.plan->nodes[recv].ordinal];
  MissingTransfer missing;
  missing.tensor = transfer.tensor;
  if (missing.tensor.ends_with(":0"))
    missing.tensor.resize(missing.tensor.size() - 2);
  const PartitionActor* sender = step_.sending_partition(iteration, recv);
  missing.is_sent = sender != nullptr;
  missing.device = missing.is_sent
                       ? device_label(*sender->root().instance().run->plan)
                       : transfer.sender;
  const std::optional<Spot> send = step_.sender_of(iteration, recv);
  if (!send.has_value()) return missing;
  missing.is_open = !send->iteration->has_fired(send->origin.index) ||
                    send->iteration->awaits(send->origin.index);
  if (!missing.is_open) return missing;
  if (const std::optional<Spot> end = end_of(*send))
    missing.cause =
        Stall(step_, *end).name(item_of(*send).node->inputs()[0].node);
  return missing;
}

}  // namespace tagflow::actors
