#include "actors/diagnosis/step_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "actors/diagnosis/diagnosis.h"
#include "actors/diagnosis/quiet_step.h"
#include "actors/runtime/hold.h"
#include "actors/runtime/tag_text.h"
#include "graph/utf8.h"

namespace tagflow::actors {
namespace {

constexpr int kMostElements = 12;  // of a value
constexpr size_t kItemBytes = 64;  // of the numbers of a node or a token

std::string shortened(std::string text) {
  if (text.size() <= StepView::kMostText) return text;
  text.resize(beginning_of(text, StepView::kMostText).size());
  return text + " ...";
}

class Viewer {
 public:
  explicit Viewer(Step& step) : step_(step), context_(step.hold->context()) {}

  StepView view() {
    view_.step = step_.info.step_id;
    for (const PartitionActor* partition : context_.partitions)
      add_partition(*partition);
    for (auto& [key, loop] : loops_) view_.loops.push_back(std::move(loop));
    view_.is_stopped = !step_.hold->stopped().empty();
    // One that has not begun has the state of the last step.
    const bool has_begun = std::ranges::all_of(
        context_.partitions, [](const PartitionActor* partition) {
          return partition->root().live() || partition->done();
        });
    if (has_begun)
      for (std::string& line : list_waits(context_, StepView::kMostLines))
        view_.waits.push_back(shortened(std::move(line)));
    for (std::string& line : step_.list_waits(StepView::kMostLines))
      view_.kernels.push_back(shortened(std::move(line)));
    return std::move(view_);
  }

 private:
  // A frame to visit: one that runs has a place in the view.
  struct Open {
    const FrameActor* frame = nullptr;
    int parent = -1;
    bool is_live = false;
  };

  void add_partition(const PartitionActor& partition) {
    const FrameActor& root = partition.root();
    StepView::Device device;
    device.name = root.instance().run->plan->device_name;
    Counters counters;
    partition.collect(counters);
    device.fired = counters.fired;
    device.dead = counters.dead;
    device.iterations = counters.iterations;
    device.hops = counters.hops;
    view_.devices.push_back(std::move(device));
    std::vector<Open> open = {{&root, -1, root.live()}};
    while (!open.empty()) {
      const Open next = open.back();
      open.pop_back();
      count(*next.frame);
      const int place = next.is_live ? add_frame(*next.frame, next.parent) : -1;
      // The newest is visited first, so the oldest is added last.
      std::vector<Open> inside;
      for (const caf::actor& actor : next.frame->instance().iterations) {
        const auto& iteration = *actor_pointer<IterationActor>(actor);
        for (uint32_t c = 0; c < iteration.children().size(); ++c) {
          const FrameActor* child = iteration.children()[c];
          if (child == nullptr) continue;
          const bool is_live =
              next.is_live && iteration.busy() && iteration.child_live(c);
          if (is_live || !iteration.is_call(c))
            inside.push_back({child, place, is_live});
        }
      }
      open.insert(open.end(), inside.rbegin(), inside.rend());
    }
  }

  void count(const FrameActor& frame) {
    const FramePlan& plan = *frame.instance().plan;
    if (plan.is_root()) return;
    StepView::Loop& loop = loops_[{view_.devices.size(), &plan}];
    loop.device = view_.devices.size() - 1;
    loop.name = plan.name;
    loop.instances += frame.num_begun();
    for (const caf::actor& actor : frame.instance().iterations)
      loop.trips += actor_pointer<IterationActor>(actor)->num_begun();
  }

  int add_frame(const FrameActor& actor, int parent) {
    if (view_.frames.size() == StepView::kMostFrames) {
      ++view_.more_frames;
      return parent;
    }
    const FrameInstance& instance = actor.instance();
    StepView::Frame frame;
    frame.parent = parent;
    frame.device = view_.devices.size() - 1;
    frame.name = instance.plan->name;
    frame.tag = shortened(frame_text(instance));
    frame.window = instance.window;
    frame.ring = instance.ring_size;
    std::vector<const IterationActor*> busy;
    for (const caf::actor& one : instance.iterations) {
      const auto* iteration = actor_pointer<IterationActor>(one);
      if (iteration->busy()) busy.push_back(iteration);
    }
    std::ranges::sort(busy, {}, &IterationActor::iteration);
    for (const IterationActor* iteration : busy) {
      if (frame.iterations.size() == StepView::kMostIterations) {
        ++frame.more_iterations;
        continue;
      }
      frame.iterations.push_back(view_of(*iteration));
    }
    std::set<int64_t> hidden;  // iterations that come
    for (const Hold::Parked& next : step_.hold->parked())
      if (next.begins == &instance)
        add_coming(*next.batch, instance, /*is_stopped=*/false, hidden, frame);
    for (const Hold::Parked& stopped : step_.hold->stopped())
      if (stopped.begins == &instance)
        add_coming(*stopped.batch, instance, /*is_stopped=*/true, hidden,
                   frame);
    frame.more_iterations += hidden.size();
    view_.frames.push_back(std::move(frame));
    return int(view_.frames.size()) - 1;
  }

  // An iteration that has not begun. Several batches may be for it. Those that
  // have no place are hidden.
  void add_coming(Batch& batch, const FrameInstance& instance, bool is_stopped,
                  std::set<int64_t>& hidden, StepView::Frame& frame) {
    const FramePlan& plan = *instance.plan;
    const bool is_on_host = !instance.run->accelerated;
    const auto same = std::ranges::find_if(
        frame.iterations, [&](const StepView::Iteration& iteration) {
          return iteration.number == batch.iteration;
        });
    const bool is_full = frame.iterations.size() >= StepView::kMostIterations;
    if (same == frame.iterations.end() && is_full && !is_stopped) {
      hidden.insert(batch.iteration);
      return;
    }
    hidden.erase(batch.iteration);  // another batch of it may be stopped
    StepView::Iteration& iteration = same == frame.iterations.end()
                                         ? frame.iterations.emplace_back()
                                         : *same;
    iteration.number = batch.iteration;
    iteration.is_stopped = is_stopped;
    for (const Token& token : batch.tokens) {
      const graph::Node& node = *plan.arrivals[token.slot].node;
      if (!has_room_for(iteration, node)) continue;
      iteration.tokens.push_back(
          {node.name(), -1,
           token.is_dead ? "dead" : value_text(token.value, is_on_host)});
    }
  }

  StepView::Iteration view_of(const IterationActor& actor) {
    const FramePlan& plan = *actor.frame().plan;
    StepView::Iteration iteration;
    iteration.number = actor.iteration();
    const StartState& start =
        actor.iteration() == 0
            ? (plan.steady_first.words.empty() ? plan.first : plan.steady_first)
            : (plan.steady_later.words.empty() ? plan.later
                                               : plan.steady_later);
    for (uint32_t n = 0; n < plan.nodes.size(); ++n) {
      const NodeItem& item = plan.nodes[n];
      if (actor.has_fired(n)) {
        const bool runs = actor.awaits(n);
        ++(runs ? iteration.running : iteration.fired);
        if (runs) add_node(item, true, 0, iteration);
        continue;
      }
      const uint32_t missing = actor.inputs_left(n);
      const uint32_t all =
          n < start.words.size() ? start.words[n] & IterationState::kCount : 0;
      if (missing >= all) {
        ++iteration.untouched;
        continue;
      }
      ++iteration.waiting;
      add_node(item, false, missing, iteration);
      add_tokens(actor, item, iteration);
    }
    return iteration;
  }

  void add_node(const NodeItem& item, bool runs, uint32_t missing,
                StepView::Iteration& iteration) {
    const size_t bytes = item.node->name().size() + kItemBytes;
    if (iteration.nodes.size() == StepView::kMostNodes || !charge(bytes)) {
      ++iteration.more_nodes;
      return;
    }
    iteration.nodes.push_back(
        {item.node->name(), std::string(item.node->op()), runs, missing});
  }

  void add_tokens(const IterationActor& actor, const NodeItem& item,
                  StepView::Iteration& iteration) {
    const FramePlan& plan = *actor.frame().plan;
    const bool is_on_host = !actor.frame().run->accelerated;
    for (uint32_t i = 0; i < item.num_inputs; ++i) {
      const uint32_t slot = item.first_slot + i;
      const Tensor& value = actor.state().slot(slot);
      if (plan.sticky[slot] == kPlanConstant || !value.valid()) continue;
      if (!has_room_for(iteration, *item.node)) continue;
      iteration.tokens.push_back(
          {item.node->name(), int(i), value_text(value, is_on_host)});
    }
  }

  // Counts a token that is left out.
  bool has_room_for(StepView::Iteration& iteration, const graph::Node& node) {
    const size_t bytes = node.name().size() + StepView::kMostText + kItemBytes;
    if (iteration.tokens.size() < StepView::kMostTokens && charge(bytes))
      return true;
    ++iteration.more_tokens;
    return false;
  }
  bool charge(size_t bytes) {
    if (bytes_ + bytes > StepView::kMostBytes) return false;
    bytes_ += bytes;
    return true;
  }

  Step& step_;
  RunContext& context_;
  size_t bytes_ = 0;  // of nodes and tokens
  StepView view_;
  std::map<std::pair<size_t, const FramePlan*>, StepView::Loop> loops_;
};

}  // namespace

std::string value_text(const Tensor& value, bool is_on_host) {
  if (!value.valid()) return "dead";
  return shortened(is_on_host ? value.to_string(kMostElements)
                              : value.describe());
}

StepView view_of(Step& step) { return Viewer(step).view(); }

}  // namespace tagflow::actors
