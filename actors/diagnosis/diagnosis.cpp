#include "actors/diagnosis/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "actors/diagnosis/quiet_step.h"
#include "actors/runtime/iteration_view.h"
#include "actors/runtime/tag_text.h"
#include "graph/counted.h"
#include "graph/partition/transfer_name.h"

namespace tagflow::actors {
namespace {

// Walks from a dead token back to the node that killed it: into the last
// iteration of a loop, and to the partition from which a Recv received it.
class DeathWalk {
 public:
  explicit DeathWalk(QuietStep& step) : step_(step) {}

  // A sentence about the cause, from one of the dead origins. Not recursive,
  // since a long chain of dead nodes would overflow the stack.
  std::string explain(std::vector<Spot> spots) {
    std::string exit;       // the first on the path
    std::string fallback;   // about the last Exit, if nothing else is found
    bool all_dead = false;  // the origins are
    while (const Spot* found = choose(spots, all_dead)) {
      const Spot spot = *found;
      const Origin& origin = spot.origin;
      if (!seen_.insert({spot.iteration, origin.is_arrival, origin.index})
               .second)
        break;
      if (origin.is_arrival) {
        spots = dead_enters(spot);
        if (spots.empty()) {
          fallback = about_exit(spot);
          if (exit.empty()) exit = exit_sentence(spot);
          spots = into_last(spot);
        }
        all_dead = false;
        continue;
      }
      if (const std::string cause = cause_at(spot); !cause.empty())
        return exit + cause;
      all_dead = item_of(spot).kind == NodeKind::kMerge;
      spots = step_.into_node(*spot.iteration, origin.index);
      std::erase_if(spots, [](const Spot& only_waited_for) {
        return only_waited_for.origin.edge.kind == EdgeKind::kLiveControl;
      });
    }
    return fallback.empty() ? "nothing that it depends on was live" : fallback;
  }

 private:
  static const FramePlan& plan_of(const Spot& spot) {
    return *spot.iteration->frame().plan;
  }
  static const NodeItem& item_of(const Spot& spot) {
    return plan_of(spot).nodes[spot.origin.index];
  }
  static const graph::Node& arrival_of(const Spot& spot) {
    return *plan_of(spot).arrivals[spot.origin.index].node;
  }
  static uint32_t word(const Spot& spot) {
    return spot.iteration->state().pending(spot.origin.index);
  }
  static uint32_t taken(const Spot& spot) {
    return IterationView(plan_of(spot), spot.iteration->state())
        .taken(spot.origin.index);
  }

  // Whether the spot has no live token. In a loop, a node may not even have a
  // dead one.
  static bool is_dead(const Spot& spot) {
    const Origin& origin = spot.origin;
    if (origin.is_arrival) return is_dead_exit(spot);
    const uint32_t facts = word(spot);
    if ((facts & IterationState::kFired) == 0) return !plan_of(spot).is_root();
    if (facts & IterationState::kDead) return true;
    const NodeItem& item = item_of(spot);
    return is_switch(item) && origin.port < item.num_outputs &&
           origin.port != taken(spot);
  }

  static bool is_switch(const NodeItem& item) {
    return item.kind == NodeKind::kSwitch || item.kind == NodeKind::kSwitchN;
  }

  static std::optional<ExitPlace> place_of(const Spot& exit) {
    return find_exit(*exit.iteration->frame().run->plan, plan_of(exit),
                     arrival_of(exit));
  }

  // A feed is alive; the result of a loop is alive if its Exit was.
  static bool is_dead_exit(const Spot& arrival) {
    const auto place = place_of(arrival);
    if (!place.has_value()) return false;
    const FrameActor* child = child_of(*arrival.iteration, place->child);
    return child == nullptr || !child->exit_was_live(place->exit);
  }

  // The results of a call are not kept. If there is no other cause, or every
  // origin is one, a call that ran is the cause rather than a branch that was
  // not taken.
  static const Spot* choose(const std::vector<Spot>& spots, bool all_dead) {
    const Spot* dead = nullptr;
    const Spot* call = nullptr;
    for (const Spot& spot : spots) {
      if (is_dead(spot)) {
        if (dead == nullptr) dead = &spot;
      } else if (!spot.origin.is_arrival &&
                 item_of(spot).kind == NodeKind::kCall) {
        call = &spot;
      }
    }
    return dead == nullptr || (all_dead && call != nullptr) ? call : dead;
  }

  // Its name in the whole graph.
  static std::string name_of(const graph::Endpoint& value) {
    if (value.node->op() == "_Recv")
      if (auto sent = value.node->attr<std::string>("tensor_name"); sent.ok())
        return std::move(sent).value();
    return value.to_string();
  }

  // Why the node is dead, if it is the cause itself; otherwise empty.
  std::string cause_at(const Spot& spot) {
    const NodeItem& item = item_of(spot);
    if ((word(spot) & IterationState::kFired) == 0) return {};
    if (is_live_switch(spot)) {
      const bool is_plain = item.kind == NodeKind::kSwitch;
      return fmt::format(
          "{} \"{}\" sent its value to output {}, {} \"{}\"{} ({}). Fetch the "
          "Merge after the conditional, which has the value of the branch that "
          "was taken",
          is_plain ? "Switch" : item.node->op(), item.node->name(), taken(spot),
          is_plain ? "since its predicate" : "by its index",
          name_of(item.node->inputs()[1]),
          !is_plain     ? ""
          : taken(spot) ? " was true"
                        : " was false",
          where(*spot.iteration));
    }
    if (item.kind == NodeKind::kCall &&
        (word(spot) & IterationState::kDead) == 0)
      return fmt::format("the call \"{}\" returned a dead value",
                         item.node->name());
    if (item.kind == NodeKind::kRecv &&
        !step_.sender_of(*spot.iteration, spot.origin.index).has_value()) {
      const auto name = graph::transfer_name_of(*item.node);
      return fmt::format(
          "Recv \"{}\" received a dead token{}", item.node->name(),
          name.ok()
              ? fmt::format(" of \"{}\" from {}", name->tensor, name->sender)
              : "");
    }
    return {};
  }

  // "root frame, iteration 0", or "iteration "while/3"", and the device, if
  // there are several.
  std::string where(const IterationActor& iteration) const {
    const FrameInstance& frame = iteration.frame();
    return fmt::format(
        "{}{}",
        frame.plan->is_root()
            ? "root frame, iteration 0"
            : fmt::format("iteration \"{}\"",
                          tag_text(frame, iteration.iteration())),
        step_.is_cut() ? ", on " + device_label(iteration) : std::string());
  }

  static std::string exit_sentence(const Spot& exit) {
    return fmt::format("Exit \"{}\" was live in no iteration of its loop; ",
                       arrival_of(exit).name());
  }

  static std::string about_exit(const Spot& exit) {
    const std::string stuck = stuck_in_last(exit);
    return exit_sentence(exit) +
           (stuck.empty() ? "the loop ended because nothing live reached its "
                            "NextIterations"
                          : stuck);
  }

  // The last iteration of the loop that the Exit leaves.
  static const IterationActor* last_of(const FrameActor& loop) {
    return find_iteration(loop.instance(), loop.last_iteration());
  }

  // The nodes that got some of their inputs, but not all, in the last iteration
  // of the loop that the Exit leaves; empty if there are none.
  static std::string stuck_in_last(const Spot& exit) {
    const auto place = place_of(exit);
    const FrameActor* loop = child_of(*exit.iteration, place->child);
    const IterationActor* iteration = loop ? last_of(*loop) : nullptr;
    if (iteration == nullptr) return {};
    const FramePlan& plan = *loop->instance().plan;
    std::vector<std::string> waiting;
    for (uint32_t i = 0; i < plan.nodes.size(); ++i) {
      const uint32_t left = iteration->inputs_left(i);
      // The number of all inputs that it waits for, which is the same in every
      // iteration.
      const uint32_t awaited =
          plan.steady_later.words[i] & IterationState::kCount;
      if (iteration->has_fired(i) || left == 0 || left >= awaited) continue;
      const graph::Node& node = *plan.nodes[i].node;
      waiting.push_back(fmt::format("{} \"{}\"", node.op(), node.name()));
    }
    if (waiting.empty()) return {};
    constexpr size_t kShown = 3;
    return fmt::format(
        "in its last iteration, \"{}\", an input never came to {}; tokens "
        "enter a loop in iteration 0 only, unless their Enter is constant",
        tag_text(loop->instance(), loop->last_iteration()),
        first_of(waiting, kShown));
  }

  // The origins of the Exit in the last iteration of its loop. If that is the
  // loop's own Switch, which would continue the loop, the origins of the
  // NextIterations.
  std::vector<Spot> into_last(const Spot& exit) {
    const auto place = place_of(exit);
    const FrameActor* loop = child_of(*exit.iteration, place->child);
    const IterationActor* last = loop ? last_of(*loop) : nullptr;
    if (last == nullptr) return {};
    const ReverseEdges& edges = step_.reverse_edges(*loop->instance().plan);
    std::vector<Spot> spots = step_.spots(*last, edges.into_exit(place->exit));
    const bool goes_on = std::ranges::all_of(
        spots, [this](const Spot& spot) { return goes_by_loop(spot); });
    return goes_on ? step_.spots(*last, edges.into_next()) : spots;
  }
  // Whether the spot is a live Switch with the predicate of the loop, which
  // another partition may have sent.
  bool goes_by_loop(const Spot& spot) {
    if (!is_live_switch(spot)) return false;
    const graph::Node* predicate = item_of(spot).node->inputs()[1].node;
    const std::vector<NodeItem>& nodes = plan_of(spot).nodes;
    const auto recv = std::ranges::find(nodes, predicate, &NodeItem::node);
    if (recv != nodes.end() && recv->kind == NodeKind::kRecv)
      if (const std::optional<Spot> sender =
              step_.sender_of(*spot.iteration, uint32_t(recv - nodes.begin())))
        predicate = item_of(*sender).node->inputs()[0].node;
    return predicate->is_loop_cond();
  }
  static bool is_live_switch(const Spot& spot) {
    if (spot.origin.is_arrival || !is_switch(item_of(spot))) return false;
    constexpr uint32_t kFacts = IterationState::kFired | IterationState::kDead;
    return (word(spot) & kFacts) == IterationState::kFired;
  }

  // The dead Enters of the loop that the Exit's arrival comes from. None if the
  // loop was entered alive: then its own Switch has sent nothing to the Exit.
  std::vector<Spot> dead_enters(const Spot& exit) {
    const auto place = place_of(exit);
    if (!place.has_value()) return {};
    std::vector<Spot> dead = step_.spots(
        *exit.iteration,
        step_.reverse_edges(plan_of(exit)).into_child(place->child));
    std::erase_if(dead, [](const Spot& enter) { return !is_dead(enter); });
    return dead;
  }

  QuietStep& step_;
  std::set<std::tuple<const IterationActor*, bool, uint32_t>> seen_;
};

}  // namespace

Status explain_dead(const RunContext& context, size_t fetch,
                    const std::string& name) {
  QuietStep step(context.partitions);
  for (const PartitionActor* partition : context.partitions) {
    const FrameInstance& root = partition->root().instance();
    const auto origins =
        step.reverse_edges(*root.plan).into_fetch(uint32_t(fetch));
    if (origins.empty()) continue;
    const IterationActor& iteration =
        *actor_pointer<IterationActor>(root.iterations.front());
    return invalid_argument(
        "[session] the fetched tensor \"{}\" is dead and has no value in this "
        "run: {}",
        name, DeathWalk(step).explain(step.spots(iteration, origins)));
  }
  return error(Code::kInternal, "[session] the fetch \"{}\" is dead", name);
}

}  // namespace tagflow::actors
