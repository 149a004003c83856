// The functions of actors/diagnosis/diagnosis.h about steps that stopped short.
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "actors/diagnosis/diagnosis.h"
#include "actors/diagnosis/stall_walk.h"
#include "actors/runtime/tag_text.h"
#include "graph/counted.h"

namespace tagflow::actors {
namespace {

// Text lists longer than this are cut.
constexpr size_t kMaxListed = 10;

// "the root frame", or "iteration "while/3"".
std::string place(const IterationActor& iteration) {
  const FrameInstance& frame = iteration.frame();
  if (frame.plan->is_root()) return "the root frame";
  return fmt::format("iteration \"{}\"",
                     tag_text(frame, iteration.iteration()));
}

// The busy iterations, the oldest first; for a root frame that has ended, its
// only iteration.
std::vector<const IterationActor*> busy_iterations(const FrameActor& frame) {
  const bool ended = frame.instance().plan->is_root() && !frame.live();
  std::vector<const IterationActor*> busy;
  for (const caf::actor& actor : frame.instance().iterations) {
    const auto* iteration = actor_pointer<IterationActor>(actor);
    if (iteration->busy() || ended) busy.push_back(iteration);
  }
  std::ranges::sort(busy, {}, &IterationActor::iteration);
  return busy;
}

// What an iteration of a step at rest waits for. `enters` are the Enters whose
// tokens its frame waits for.
class Missing {
 public:
  Missing(const IterationActor& iteration,
          const std::vector<std::string>& enters)
      : iteration_(iteration),
        enters_(enters),
        plan_(*iteration.frame().plan),
        reverse_edges_(plan_),
        entered_(plan_.children.size()) {}

  // The nodes from which `node` waits for a token.
  struct Sources {
    std::vector<std::string> names;  // without Recvs
    bool has_recvs = false;          // whether Recvs are among them
  };
  Sources sources_of(uint32_t node) {
    Sources sources;
    for (const Origin& origin : reverse_edges_.into_node(node)) {
      if (!is_missing(origin)) continue;
      if (!origin.is_arrival &&
          plan_.nodes[origin.index].kind == NodeKind::kRecv &&
          iteration_.awaits(origin.index)) {
        sources.has_recvs = true;
        continue;
      }
      sources.names.push_back(origin.is_arrival
                                  ? plan_.arrivals[origin.index].node->name()
                                  : plan_.nodes[origin.index].node->name());
    }
    return sources;
  }

  // The Enters of child frame `ordinal` whose token has not come.
  std::vector<std::string> enters_of(uint32_t ordinal) {
    const FramePlan& child =
        iteration_.frame().run->plan->frames[size_t(plan_.children[ordinal])];
    std::vector<std::string> names;
    for (const Origin& origin : reverse_edges_.into_child(ordinal))
      if (is_missing(origin))
        names.push_back(child.arrivals[origin.edge.target].node->name());
    return names;
  }

 private:
  bool is_missing(const Origin& origin) {
    if (!origin.is_arrival)
      return !iteration_.has_fired(origin.index) ||
             iteration_.awaits(origin.index);
    const ArrivalItem& arrival = plan_.arrivals[origin.index];
    if (arrival.node->is_exit()) return is_missing_exit(*arrival.node);
    if (arrival.node->is_enter())
      return (arrival.is_constant || iteration_.iteration() == 0) &&
             std::ranges::find(enters_, arrival.node->name()) != enters_.end();
    return arrival.node->is_next_iteration() && iteration_.iteration() > 0 &&
           iteration_.waits_for_predecessor();
  }

  bool is_missing_exit(const graph::Node& node) {
    const auto place = find_exit(*iteration_.frame().run->plan, plan_, node);
    if (!place.has_value()) return false;
    if (!was_entered(place->child)) return true;
    return iteration_.child_live(place->child) &&
           !iteration_.children()[place->child]->exit_was_live(place->exit);
  }

  // Whether any token, dead or alive, entered the child frame. The results are
  // kept, since loops may enter one another in a long chain.
  bool was_entered(uint32_t ordinal) {
    std::optional<bool>& entered = entered_[ordinal];
    if (!entered.has_value()) {
      const std::vector<Origin> into = reverse_edges_.into_child(ordinal);
      entered = std::ranges::any_of(
          into, [this](const Origin& origin) { return !is_missing(origin); });
    }
    return *entered;
  }

  const IterationActor& iteration_;
  const std::vector<std::string>& enters_;
  const FramePlan& plan_;
  const ReverseEdges reverse_edges_;
  std::vector<std::optional<bool>> entered_;  // by child
};

// A list of nodes that wait or run. Waits that no node of the step can end come
// first.
class Report {
 public:
  explicit Report(const RunContext& context, size_t most = kMaxListed)
      : most_(most),
        step_(context.partitions),
        has_peers_(context.peers.has_value()),
        missing_transfers_(step_) {}

  // Adds the kernels that have not answered, of all partitions, from the root
  // frame inwards.
  void add_unanswered() {
    each_busy([this](const IterationActor& iteration) {
      const FramePlan& plan = *iteration.frame().plan;
      for (uint32_t n = 0; n < plan.nodes.size(); ++n) {
        const NodeItem& item = plan.nodes[n];
        if (item.kind == NodeKind::kRecv || !iteration.awaits(n)) continue;
        const std::string_view reason = iteration.reason_at_stop(n);
        line([&] {
          return fmt::format("{}{} \"{}\" in {} has not answered{}{}",
                             on(iteration), item.node->op(), item.node->name(),
                             place(iteration), reason.empty() ? "" : ": ",
                             reason);
        });
      }
    });
  }

  // Adds the nodes that wait for a token of another partition; first those to
  // which no partition sends. If `cut_short`, tokens may have been in flight:
  // then only waits for tokens that certainly were not sent are added.
  void add_recvs(bool cut_short) {
    for (const bool is_sent : {false, true})
      each_busy([&](const IterationActor& iteration) {
        const FramePlan& plan = *iteration.frame().plan;
        for (uint32_t n = 0; n < plan.nodes.size(); ++n)
          if (plan.nodes[n].kind == NodeKind::kRecv && iteration.awaits(n) &&
              (step_.sending_partition(iteration, n) != nullptr) == is_sent)
            add_recv(iteration, n, cut_short);
      });
  }

  // Adds the nodes that wait for others of their partition, from the root frame
  // inwards.
  void add_waiting() {
    for (const PartitionActor* partition : step_.partitions())
      add_waiting(partition->root());
  }

  // Adds the frames that run, with their iterations.
  void add_progress() {
    for (const PartitionActor* partition : step_.partitions())
      add_progress(partition->root());
  }

  // `text` is called only for lines that are shown: a recursion has very many
  // others.
  template <class F>
  void line(const F& text) {
    if (lines_.size() < most_) {
      lines_.push_back(text());
    } else {
      ++omitted_;
    }
  }

  const std::vector<std::string>& lines() const { return lines_; }
  std::string text() const {
    return fmt::format(
        "{}{}", fmt::join(lines_, "; "),
        omitted_ > 0 ? fmt::format("; and {} more", omitted_) : std::string());
  }

 private:
  struct Waiting {
    const FrameActor* frame = nullptr;
    std::vector<std::string> enters;  // whose tokens have not come
  };

  // "on CPU:1 ", if there are several partitions.
  std::string on(const IterationActor& iteration) const {
    return step_.is_cut() ? fmt::format("on {} ", device_label(iteration))
                          : std::string();
  }

  void add_waiting(const FrameActor& root) {
    std::vector<Waiting> open = {{&root, {}}};
    while (!open.empty()) {
      const Waiting next = std::move(open.back());
      open.pop_back();
      add_frame(next, open);
    }
  }

  void add_progress(const FrameActor& root) {
    if (!root.live()) return;
    inwards(root, [this](const FrameActor& frame) {
      const std::vector<const IterationActor*> busy = busy_iterations(frame);
      if (busy.empty() || frame.instance().plan->is_root()) return;
      const int64_t oldest = busy.front()->iteration();
      const int64_t newest = busy.back()->iteration();
      line([&] {
        return fmt::format(
            "{}frame \"{}\" had come to iteration {}{}", on(*busy.front()),
            frame_text(frame.instance()), newest,
            oldest == newest
                ? std::string()
                : fmt::format(", with those from {} on unfinished", oldest));
      });
    });
  }

  // Calls f(frame) for the root frame and all nested ones. Not recursive, since
  // calls may nest deeper than a thread's stack.
  template <class F>
  static void inwards(const FrameActor& root, F f) {
    std::vector<const FrameActor*> open = {&root};
    while (!open.empty()) {
      const FrameActor& frame = *open.back();
      open.pop_back();
      f(frame);
      for (const IterationActor* iteration : busy_iterations(frame))
        each_live_child(*iteration, [&](uint32_t, const FrameActor& child) {
          open.push_back(&child);
        });
    }
  }

  // Calls f(iteration) for each busy iteration of all partitions.
  template <class F>
  void each_busy(F f) const {
    for (const PartitionActor* partition : step_.partitions())
      inwards(partition->root(), [&](const FrameActor& frame) {
        for (const IterationActor* iteration : busy_iterations(frame))
          f(*iteration);
      });
  }

  void add_recv(const IterationActor& iteration, uint32_t recv,
                bool cut_short) {
    const MissingTransfer missing = missing_transfers_.of(iteration, recv);
    if (cut_short && !missing.is_open) return;
    line([&] {
      return fmt::format(
          "{}{} in {} waits for \"{}\" of {}{}", on(iteration),
          missing.is_sent ? readers(iteration, recv)
                          : quoted_recv(iteration, recv),
          place(iteration), missing.tensor, missing.device,
          !missing.is_sent        ? (has_peers_ ? "" : ", which nobody sends")
          : missing.cause.empty() ? std::string()
                                  : ", which waits for " + missing.cause);
    });
  }

  static std::string quoted_recv(const IterationActor& iteration,
                                 uint32_t recv) {
    return fmt::format("_Recv \"{}\"",
                       iteration.frame().plan->nodes[recv].node->name());
  }

  // The readers of the Recv in its iteration; if there are none, the Recv.
  static std::string readers(const IterationActor& iteration, uint32_t recv) {
    const FramePlan& plan = *iteration.frame().plan;
    const NodeItem& item = plan.nodes[recv];
    std::vector<std::string> names;
    for (uint32_t e = 0; e < item.edges.count; ++e) {
      const EdgeItem& edge = plan.edges[item.edges.begin + e];
      if (edge.kind <= EdgeKind::kMergeInput)
        names.push_back(
            fmt::format("\"{}\"", plan.nodes[edge.target].node->name()));
    }
    if (names.empty()) return quoted_recv(iteration, recv);
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    constexpr size_t kShown = 3;
    return first_of(names, kShown);
  }

  // Adds child frames that wait to `open`.
  void add_frame(const Waiting& waiting, std::vector<Waiting>& open) {
    const std::vector<const IterationActor*> busy =
        busy_iterations(*waiting.frame);
    for (const IterationActor* iteration : busy) {
      // The cause is in the first iteration; the others wait for it.
      if (iteration->iteration() > 0 && iteration->waits_for_predecessor()) {
        line([&] {
          return fmt::format(
              "{}frame \"{}\": iterations {} to {} wait for iteration {}",
              on(*iteration), frame_text(iteration->frame()),
              iteration->iteration(), busy.back()->iteration(),
              iteration->iteration() - 1);
        });
        break;
      }
      add_nodes(*iteration, waiting.enters, open);
    }
  }

  void add_nodes(const IterationActor& iteration,
                 const std::vector<std::string>& enters,
                 std::vector<Waiting>& open) {
    const FramePlan& plan = *iteration.frame().plan;
    Missing missing(iteration, enters);
    for (uint32_t n = 0; n < plan.nodes.size(); ++n) {
      // The entry of the Recv says what its Send waits for.
      if (iteration.has_fired(n) || plan.nodes[n].kind == NodeKind::kSend)
        continue;
      const graph::Node& node = *plan.nodes[n].node;
      const auto [sources, has_recvs] = missing.sources_of(n);
      // Nodes that wait only for Recvs have been reported.
      if (has_recvs && sources.empty()) continue;
      line([&, &names = sources] {
        return fmt::format(
            "{}{} \"{}\" in {} waits for {}{}", on(iteration), node.op(),
            node.name(), place(iteration),
            counted(iteration.inputs_left(n), "more input"),
            names.empty()
                ? std::string()
                : fmt::format(", of \"{}\"", fmt::join(names, "\", \"")));
      });
    }
    each_live_child(iteration, [&](uint32_t ordinal, const FrameActor& child) {
      std::vector<std::string> late = missing.enters_of(ordinal);
      if (!late.empty())
        line([&] {
          return fmt::format(
              "{}frame \"{}\" waits for {} of its Enters: \"{}\"",
              on(iteration),
              frame_text(iteration.frame(), iteration.iteration(),
                         *child.instance().plan),
              late.size(), fmt::join(late, "\", \""));
        });
      open.push_back({&child, std::move(late)});
    });
  }

  const size_t most_;  // lines
  QuietStep step_;
  const bool has_peers_;  // which send what no partition here does
  MissingTransfers missing_transfers_;
  std::vector<std::string> lines_;
  size_t omitted_ = 0;
};

}  // namespace

namespace {

std::string deadlock_text(const RunContext& context,
                          const std::vector<std::string>& missing_fetches) {
  Report report(context);
  report.add_unanswered();
  report.add_recvs(false);
  report.add_waiting();
  for (const std::string& fetch : missing_fetches)
    report.line(
        [&] { return fmt::format("the fetch \"{}\" has not arrived", fetch); });
  return report.text();
}

std::string late_text(const RunContext& context) {
  Report report(context);
  report.add_unanswered();
  report.add_recvs(true);
  report.add_progress();
  return report.text();
}

}  // namespace

std::vector<std::string> list_waits(const RunContext& context, size_t most) {
  Report report(context, most);
  report.add_unanswered();
  report.add_recvs(false);
  report.add_waiting();
  return report.lines();
}

Status explain_deadlock(const RunContext& context,
                        const std::vector<std::string>& missing_fetches) {
  return error(Code::kDeadlock, "[session] the step can make no progress: {}",
               deadlock_text(context, missing_fetches));
}

Status explain_stop(const Status& stop, const RunContext& context,
                    const std::vector<std::string>& missing_fetches) {
  const std::string text = stop.code() == Code::kDeadlock
                               ? deadlock_text(context, missing_fetches)
                               : late_text(context);
  const bool joins = !text.empty() && !stop.message().empty();
  return Status(stop.code(),
                fmt::format("{}{}{}", stop.message(), joins ? "; " : "", text));
}

}  // namespace tagflow::actors
