#include "actors/diagnosis.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "actors/backwards.h"

namespace tagflow::actors {
namespace {

const IterationActor& root_iteration(const PartitionActor& partition) {
  return *actor_pointer<IterationActor>(
      partition.root().instance().ring.front());
}

// Walks from a dead token of the root frame back to what killed it.
class DeathWalk {
 public:
  explicit DeathWalk(const PartitionActor& partition)
      : whole_(*partition.root().instance().run->plan),
        plan_(whole_.frames[0]),
        backwards_(plan_),
        state_(root_iteration(partition).state()),
        view_(plan_, state_),
        children_(root_iteration(partition).children()) {}

  // A sentence about the cause, from one of the dead origins. A loop, since a
  // chain of dead nodes may be longer than a stack is deep.
  std::string explain(std::vector<Origin> origins) {
    bool all_dead = false;  // the origins are
    while (const Origin* origin = choose(origins, all_dead)) {
      if (!seen_.insert({origin->is_arrival, origin->index}).second) break;
      if (std::string cause = cause_at(*origin); !cause.empty()) return cause;
      all_dead = !origin->is_arrival &&
                 plan_.nodes[origin->index].kind == NodeKind::kMerge;
      origins = next(*origin);
    }
    return "nothing that it depends on was live";
  }

 private:
  uint32_t word(uint32_t node) const { return state_.pending(node); }

  bool is_dead(const Origin& origin) const {
    if (origin.is_arrival)
      return is_dead_exit(*plan_.arrivals[origin.index].node);
    const uint32_t facts = word(origin.index);
    if ((facts & IterationState::kFired) == 0) return false;
    if (facts & IterationState::kDead) return true;
    const NodeItem& item = plan_.nodes[origin.index];
    return is_switch(item) && origin.port < item.num_outputs &&
           origin.port != view_.taken(origin.index);
  }

  static bool is_switch(const NodeItem& item) {
    return item.kind == NodeKind::kSwitch || item.kind == NodeKind::kSwitchN;
  }

  // What is fed is alive; what comes out of a loop, where its Exit was.
  bool is_dead_exit(const graph::Node& node) const {
    const auto place = find_exit(whole_, plan_, node);
    if (!place.has_value()) return false;
    const FrameActor* child = children_[place->child];
    return child == nullptr || !child->exit_was_live(place->exit);
  }

  // What a call gave back is not kept. Where nothing else can be to blame, or
  // everything is, a call that ran is, rather than a branch that was not taken.
  const Origin* choose(const std::vector<Origin>& origins,
                       bool all_dead) const {
    const Origin* dead = nullptr;
    const Origin* call = nullptr;
    for (const Origin& origin : origins) {
      if (is_dead(origin)) {
        if (dead == nullptr) dead = &origin;
      } else if (!origin.is_arrival &&
                 plan_.nodes[origin.index].kind == NodeKind::kCall) {
        call = &origin;
      }
    }
    return dead == nullptr || (all_dead && call != nullptr) ? call : dead;
  }

  // Why the origin is dead, if no other token is to blame; else empty.
  std::string cause_at(const Origin& origin) const {
    if (origin.is_arrival) {
      const graph::Node& node = *plan_.arrivals[origin.index].node;
      if (!dead_enters(origin).empty()) return {};
      const std::string stuck = stuck_in_last(node);
      return fmt::format(
          "Exit \"{}\" was live in no iteration of its loop; {}", node.name(),
          stuck.empty() ? "the loop ended because nothing live reached its "
                          "NextIterations"
                        : stuck);
    }
    const NodeItem& item = plan_.nodes[origin.index];
    const bool is_dead = (word(origin.index) & IterationState::kDead) != 0;
    if (is_switch(item) && !is_dead) {
      const uint32_t taken = view_.taken(origin.index);
      const bool is_plain = item.kind == NodeKind::kSwitch;
      return fmt::format(
          "{} \"{}\" sent its value to output {}, {} \"{}\"{} (root frame, "
          "iteration 0). Fetch the Merge after the conditional, which has the "
          "value of the branch that was taken",
          is_plain ? "Switch" : item.node->op(), item.node->name(), taken,
          is_plain ? "since its predicate" : "by its index",
          item.node->inputs()[1].to_string(),
          !is_plain ? ""
          : taken   ? " was true"
                    : " was false");
    }
    if (item.kind == NodeKind::kCall && !is_dead)
      return fmt::format("the call \"{}\" gave back a dead value",
                         item.node->name());
    if (item.kind == NodeKind::kRecv)
      return fmt::format("Recv \"{}\" received a dead token",
                         item.node->name());
    return {};
  }

  // Who got some of its inputs, but not all, in the last iteration of the loop
  // that the Exit leaves; empty where nobody did.
  std::string stuck_in_last(const graph::Node& exit) const {
    const auto place = find_exit(whole_, plan_, exit);
    if (!place.has_value() || children_[place->child] == nullptr) return {};
    const FrameActor& loop = *children_[place->child];
    const FramePlan& plan = *loop.instance().plan;
    const int64_t last = loop.last_iteration();
    const StartState& start = last == 0 ? plan.steady_first : plan.steady_later;
    std::vector<std::string> waiting;
    for (const caf::actor& actor : loop.instance().ring) {
      const auto& iteration = *actor_pointer<IterationActor>(actor);
      if (iteration.iteration() != last) continue;
      for (uint32_t i = 0; i < plan.nodes.size(); ++i) {
        const uint32_t left = iteration.inputs_left(i);
        const uint32_t awaited = start.words[i] & IterationState::kCount;
        if (iteration.has_fired(i) || left == 0 || left >= awaited) continue;
        const graph::Node& node = *plan.nodes[i].node;
        waiting.push_back(fmt::format("{} \"{}\"", node.op(), node.name()));
      }
    }
    if (waiting.empty()) return {};
    constexpr size_t kShown = 3;
    const size_t more = waiting.size() - std::min(waiting.size(), kShown);
    waiting.resize(waiting.size() - more);
    return fmt::format(
        "in its last iteration, {}, an input never came to {}{}; what enters "
        "a loop is there in iteration 0 only, unless its Enter is constant",
        last, fmt::join(waiting, ", "),
        more == 0 ? "" : fmt::format(" and {} more", more));
  }

  std::vector<Origin> next(const Origin& origin) const {
    if (origin.is_arrival) return dead_enters(origin);
    return backwards_.into_node(origin.index);
  }

  // What entered, dead, the loop that the arrival of an Exit comes from. None
  // where the loop was entered alive: then its own Switch sent the Exit
  // nothing.
  std::vector<Origin> dead_enters(const Origin& exit) const {
    const auto place =
        find_exit(whole_, plan_, *plan_.arrivals[exit.index].node);
    std::vector<Origin> dead;
    if (!place.has_value()) return dead;
    for (const Origin& enter : backwards_.into_child(place->child))
      if (is_dead(enter)) dead.push_back(enter);
    return dead;
  }

  const Plan& whole_;
  const FramePlan& plan_;
  Backwards backwards_;
  const IterationState& state_;
  const IterationView view_;
  const std::vector<FrameActor*>& children_;
  std::set<std::pair<bool, uint32_t>> seen_;
};

}  // namespace

Status explain_dead(const RunContext& context, size_t fetch,
                    const std::string& name) {
  for (const PartitionActor* partition : context.partitions) {
    const FramePlan& root = *partition->root().instance().plan;
    const auto origins = Backwards(root).into_fetch(uint32_t(fetch));
    if (origins.empty()) continue;
    return invalid_argument(
        "[session] the fetched tensor \"{}\" is dead, it has no value in this "
        "run: {}",
        name, DeathWalk(*partition).explain(origins));
  }
  return error(Code::kInternal, "[session] the fetch \"{}\" is dead", name);
}

}  // namespace tagflow::actors
