#include "actors/diagnosis.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace tagflow::actors {
namespace {

// Text lists longer than this are cut.
constexpr size_t kMaxListed = 10;

// Where an edge starts: a port of a node, or an arrival.
struct Origin {
  bool is_arrival = false;
  uint32_t index = 0;  // of the node or the arrival
  uint32_t port = 0;   // num_outputs for the control port
  EdgeItem edge;
};

// The edges of a frame, backwards.
class Backwards {
 public:
  explicit Backwards(const FramePlan& plan)
      : plan_(plan), into_node_(plan.nodes.size()) {
    for (uint32_t n = 0; n < plan.nodes.size(); ++n)
      for (uint32_t p = 0; p <= plan.nodes[n].num_outputs; ++p)
        add(plan.ports[plan.nodes[n].first_port + p], {false, n, p, {}});
    for (uint32_t a = 0; a < plan.arrivals.size(); ++a)
      add(plan.arrivals[a].edges, {true, a, 0, {}});
  }

  const std::vector<Origin>& into_node(uint32_t node) const {
    return into_node_[node];
  }
  std::vector<Origin> into_fetch(uint32_t fetch) const {
    return select([&](const EdgeItem& edge) {
      return edge.kind == EdgeKind::kFetch && edge.target == fetch;
    });
  }
  std::vector<Origin> into_child(uint32_t child) const {
    return select([&](const EdgeItem& edge) {
      return edge.kind == EdgeKind::kEnter && edge.slot == child;
    });
  }

 private:
  void add(const PortItem& port, Origin origin) {
    for (uint32_t e = port.begin; e < port.end; ++e) {
      origin.edge = plan_.edges[e];
      switch (origin.edge.kind) {
        case EdgeKind::kInput:
        case EdgeKind::kControl:
        case EdgeKind::kLiveControl:
        case EdgeKind::kMergeInput:
          into_node_[origin.edge.target].push_back(origin);
          break;
        default:
          elsewhere_.push_back(origin);
      }
    }
  }
  template <class F>
  std::vector<Origin> select(F wanted) const {
    std::vector<Origin> found;
    for (const Origin& origin : elsewhere_)
      if (wanted(origin.edge)) found.push_back(origin);
    return found;
  }

  const FramePlan& plan_;
  std::vector<std::vector<Origin>> into_node_;
  std::vector<Origin> elsewhere_;  // of edges that lead out of the iteration
};

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
        state_(root_iteration(partition).state()) {}

  // A sentence about the cause, from one of the dead origins. A loop, since a
  // chain of dead nodes may be longer than a stack is deep.
  std::string explain(std::vector<Origin> origins) {
    while (const Origin* origin = choose(origins)) {
      if (!seen_.insert({origin->is_arrival, origin->index}).second) break;
      if (std::string cause = cause_at(*origin); !cause.empty()) return cause;
      origins = next(*origin);
    }
    return "nothing that it depends on was live";
  }

 private:
  uint32_t word(uint32_t node) const { return state_.pending(node); }

  bool is_dead(const Origin& origin) const {
    if (origin.is_arrival) return false;  // known only by elimination
    const uint32_t facts = word(origin.index);
    if ((facts & IterationState::kFired) == 0) return false;
    if (facts & IterationState::kDead) return true;
    const uint32_t taken = facts & IterationState::kTaken ? 1 : 0;
    return plan_.nodes[origin.index].kind == NodeKind::kSwitch &&
           origin.port < 2 && origin.port != taken;
  }

  // A dead origin; else an arrival, which may be.
  const Origin* choose(const std::vector<Origin>& origins) const {
    for (const Origin& origin : origins)
      if (is_dead(origin)) return &origin;
    for (const Origin& origin : origins)
      if (origin.is_arrival) return &origin;
    return nullptr;
  }

  // Why the origin is dead, if no other token is to blame; else empty.
  std::string cause_at(const Origin& origin) const {
    if (origin.is_arrival) {
      const graph::Node& node = *plan_.arrivals[origin.index].node;
      if (!node.is_exit()) return fmt::format("\"{}\" was dead", node.name());
      if (!dead_enters(origin).empty()) return {};
      return fmt::format(
          "Exit \"{}\" was live in no iteration of its loop; the loop ended "
          "because nothing live reached its NextIterations",
          node.name());
    }
    const NodeItem& item = plan_.nodes[origin.index];
    if (item.kind == NodeKind::kSwitch &&
        (word(origin.index) & IterationState::kDead) == 0) {
      const bool taken = word(origin.index) & IterationState::kTaken;
      const graph::Endpoint predicate = item.node->inputs()[1];
      return fmt::format(
          "Switch \"{}\" sent its value to output {}, since its predicate "
          "\"{}\" was {} (root frame, iteration 0). Fetch the Merge after "
          "the conditional, or feed a predicate that takes this branch",
          item.node->name(), taken ? 1 : 0, predicate.to_string(), taken);
    }
    if (item.kind == NodeKind::kRecv)
      return fmt::format("Recv \"{}\" received a dead token",
                         item.node->name());
    return {};
  }

  std::vector<Origin> next(const Origin& origin) const {
    if (origin.is_arrival) return dead_enters(origin);
    return backwards_.into_node(origin.index);
  }

  // What entered, dead, the loop that the arrival of an Exit comes from. None
  // where the loop was entered alive: then its own Switch sent the Exit
  // nothing.
  std::vector<Origin> dead_enters(const Origin& exit) const {
    const graph::Node* node = plan_.arrivals[exit.index].node;
    std::vector<Origin> dead;
    for (uint32_t child = 0; child < plan_.children.size(); ++child) {
      const FramePlan& frame = whole_.frames[size_t(plan_.children[child])];
      const bool leaves = std::ranges::any_of(
          frame.exits, [&](const ExitItem& e) { return e.node == node; });
      if (!leaves) continue;
      for (const Origin& enter : backwards_.into_child(child))
        if (is_dead(enter)) dead.push_back(enter);
    }
    return dead;
  }

  const Plan& whole_;
  const FramePlan& plan_;
  Backwards backwards_;
  const IterationState& state_;
  std::set<std::pair<bool, uint32_t>> seen_;
};

// Lists who waits, or runs, from the root frame inwards.
class WaitReport {
 public:
  void add_progress(const FrameActor& frame) {
    const FramePlan& plan = *frame.instance().plan;
    if (!frame.live()) return;
    std::vector<const IterationActor*> busy;
    for (const caf::actor& actor : frame.instance().ring) {
      const auto* iteration = actor_pointer<IterationActor>(actor);
      if (iteration->busy()) busy.push_back(iteration);
    }
    if (busy.empty()) return;
    const auto [oldest, newest] =
        std::ranges::minmax(busy, {}, &IterationActor::iteration);
    if (plan.parent >= 0)
      line("frame \"{}\" had come to iteration {}{}", plan.name,
           newest->iteration(),
           oldest == newest ? std::string()
                            : fmt::format(", with those from {} on unfinished",
                                          oldest->iteration()));
    for (const IterationActor* iteration : busy)
      for (size_t c = 0; c < iteration->children().size(); ++c)
        if (iteration->child_live(c)) add_progress(*iteration->children()[c]);
  }
  void add_receives(const RunContext& context) {
    for (const std::string& receive : context.rendezvous->waiting())
      line("a Recv waits for {}", receive);
  }
  void add_frame(const FrameActor& frame) {
    const FramePlan& plan = *frame.instance().plan;
    if (frame.live() && frame.enters_left() > 0)
      line("frame \"{}\" waits for {} of its {} Enters", plan.name,
           frame.enters_left(), plan.num_enters);
    for (const caf::actor& actor : frame.instance().ring) {
      const auto& iteration = *actor_pointer<IterationActor>(actor);
      if (iteration.busy() || (plan.parent < 0 && !frame.live()))
        add_iteration(iteration);
    }
  }

  std::string text() const {
    return fmt::format(
        "{}{}", fmt::join(lines_, "; "),
        omitted_ > 0 ? fmt::format("; and {} more", omitted_) : std::string());
  }

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    if (!full()) {
      lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
    } else {
      ++omitted_;
    }
  }

 private:
  bool full() const { return lines_.size() >= kMaxListed; }

  void add_iteration(const IterationActor& iteration) {
    const FramePlan& plan = *iteration.frame().plan;
    const IterationState& state = iteration.state();
    const Backwards backwards(plan);
    const std::string place =
        plan.name.empty() ? std::string("the root frame")
                          : fmt::format("frame \"{}\", iteration {}", plan.name,
                                        iteration.iteration());
    for (uint32_t n = 0; n < plan.nodes.size(); ++n) {
      if (state.pending(n) & IterationState::kFired) continue;
      if (full()) {
        ++omitted_;
        continue;
      }
      std::vector<std::string> sources;
      for (const Origin& origin : backwards.into_node(n)) {
        if (origin.is_arrival) {
          sources.push_back(plan.arrivals[origin.index].node->name());
        } else if (!(state.pending(origin.index) & IterationState::kFired)) {
          sources.push_back(plan.nodes[origin.index].node->name());
        }
      }
      line("{} \"{}\" in {} waits for {} more input(s), of \"{}\"",
           plan.nodes[n].node->op(), plan.nodes[n].node->name(), place,
           state.pending(n) & IterationState::kCount,
           fmt::join(sources, "\", \""));
    }
    if (iteration.busy() && iteration.waits_for_predecessor())
      line("{} waits for its predecessor", place);
    for (size_t c = 0; c < iteration.children().size(); ++c)
      if (iteration.child_live(c)) add_frame(*iteration.children()[c]);
  }

  std::vector<std::string> lines_;
  size_t omitted_ = 0;
};

}  // namespace

Status explain_dead(const RunContext& context, size_t fetch) {
  for (const PartitionActor* partition : context.partitions) {
    const FramePlan& root = *partition->root().instance().plan;
    const auto origins = Backwards(root).into_fetch(uint32_t(fetch));
    if (origins.empty()) continue;
    const Origin& origin = origins.front();
    const graph::Node& node = origin.is_arrival
                                  ? *root.arrivals[origin.index].node
                                  : *root.nodes[origin.index].node;
    return invalid_argument(
        "[session] the fetched tensor of \"{}:{}\" is dead, it has no value "
        "in this run: {}",
        node.name(), origin.is_arrival ? 0 : origin.port,
        DeathWalk(*partition).explain(origins));
  }
  return error(Code::kInternal, "[session] fetch {} is dead", fetch);
}

Status explain_deadlock(const Step& step, const RunContext& context) {
  WaitReport report;
  for (const PartitionActor* partition : context.partitions)
    report.add_frame(partition->root());
  report.add_receives(context);
  for (size_t i = 0; i < step.fetches.size(); ++i)
    if (step.fetches[i].state == FetchSlot::kMissing)
      report.line("fetch {} has not arrived", i);
  return error(Code::kDeadlock, "[session] the step can make no progress: {}",
               report.text());
}

Status explain_late(const Status& late, const RunContext& context) {
  WaitReport report;
  for (const PartitionActor* partition : context.partitions)
    report.add_progress(partition->root());
  report.add_receives(context);
  const std::string text = report.text();
  return Status(late.code(), fmt::format("{}{}{}", late.message(),
                                         text.empty() ? "" : "; ", text));
}

}  // namespace tagflow::actors
