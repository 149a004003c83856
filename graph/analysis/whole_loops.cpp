#include "graph/analysis/whole_loops.h"

#include <algorithm>

#include "graph/analysis/liveness.h"
#include "graph/analysis/topology.h"
#include "graph/precedence.h"

namespace tagflow::graph {
namespace {

constexpr std::string_view kInside = "it is in the loop of frame ";

bool is_loop_variable(const Node& node) {
  bool has_enter = false, has_next = false;
  for (const Endpoint& input : node.inputs()) {
    // A back edge that is still open.
    const bool is_open = input.node == nullptr;
    if (!is_open && !leads_to_variable(*input.node)) return false;
    (!is_open && input.node->is_enter() ? has_enter : has_next) = true;
  }
  return node.is_merge() && has_enter && has_next;
}

// Finds the facts about one graph.
class Finder {
 public:
  Finder(const Graph& graph, const FrameMap& frames,
         const std::vector<bool>& may_be_dead)
      : graph_(graph),
        frames_(frames),
        liveness_(std::make_unique<Liveness>(graph, frames, may_be_dead)),
        reasons_(frames.frames().size()) {}

  void run() {
    for (const StaticFrame& frame : frames_.frames())
      if (!frame.next_iterations.empty() && frame.loop_conds.empty())
        reasons_[size_t(frame.id)] = "it has no LoopCond";
    for (const Node* node : graph_.nodes()) check_readings(*node);
    follow();
    // Parents come before their children.
    for (const StaticFrame& frame : frames_.frames()) {
      const std::string& around = reasons_[size_t(frame.parent)];
      std::string& reason = reasons_[size_t(frame.id)];
      if (!reason.empty() || around.empty()) continue;
      reason = around.starts_with(kInside)
                   ? around
                   : fmt::format("{}\"{}\": {}", kInside,
                                 frames_.frame(frame.parent).name, around);
    }
  }

  bool is_live(const Endpoint& output) {
    return liveness_->of(output) == Conditions::kNone;
  }
  std::vector<std::string> take_reasons() && { return std::move(reasons_); }
  GraphFacts take_facts() && {
    return {std::move(liveness_), std::move(reasons_)};
  }

 private:
  template <class... Args>
  void keep(FrameId frame, fmt::format_string<Args...> format, Args&&... args) {
    std::string& reason = reasons_[size_t(frame)];
    if (reason.empty())
      reason = fmt::format(format, std::forward<Args>(args)...);
  }

  void check_readings(const Node& node) {
    const FrameId frame = frames_.of(node);
    if (frames_.frame(frame).next_iterations.empty()) return;
    const auto check = [&](const Node& source) {
      if (leads_to_variable(source))
        keep(frame,
             "node \"{}\" reads \"{}\", which has no token in {} iteration",
             node.name(), source.name(),
             source.is_enter() ? "any but the first" : "the first");
    };
    if (!is_loop_variable(node))
      for (const Endpoint& input : node.inputs()) check(*input.node);
    for (const Node* control : node.control_inputs()) check(*control);
  }

  // Visits nodes, and ends frames, in the order of their dependences.
  void follow() {
    const auto& frames = frames_.frames();
    const auto nodes = graph_.nodes();
    std::vector<size_t> thing_of(graph_.end_id());
    for (size_t i = 0; i < nodes.size(); ++i)
      thing_of[nodes[i]->id()] = frames.size() + i;
    Precedence before(frames.size() + nodes.size(), 3 * nodes.size());
    for (const StaticFrame& frame : frames) {
      for (const auto* needed :
           {&frame.merges, &frame.loop_conds, &frame.next_iterations})
        for (const Node* node : *needed) before.add(thing_of[node->id()]);
      before.end_list();
    }
    for (const Node* node : nodes) {
      for (size_t i = 0; i < node->inputs().size(); ++i)
        if (const Node* source = node->inputs()[i].node;
            source != nullptr && !is_back_edge(*node, i))
          before.add(thing_of[source->id()]);
      for (const Node* control : node->control_inputs())
        before.add(thing_of[control->id()]);
      if (node->is_exit()) before.add(size_t(frames_.of(*node)));
      before.end_list();
    }
    const auto order = topological_order(
        before, [](size_t) { return std::string_view("a node"); });
    if (!order.ok()) {
      for (const StaticFrame& frame : frames)
        if (frame.id != FrameId::kRoot)
          keep(frame.id, "a loop of the program depends on its own end");
      return;
    }
    for (const uint32_t thing : *order) {
      if (thing < frames.size())
        end(frames[thing]);
      else
        liveness_->visit(*nodes[thing - frames.size()]);
    }
  }

  void end(const StaticFrame& frame) {
    if (frame.next_iterations.empty() || frame.loop_conds.empty()) return;
    Node& loop_cond = *frame.loop_conds.front();
    Conditions& conditions = liveness_->conditions();
    const Conditions::Set live = liveness_->of(loop_cond);
    const Conditions::Set goes_on = liveness_->where({&loop_cond, 0}, 1, 2);
    for (const Node* merge : frame.merges) {
      if (!is_loop_variable(*merge)) continue;
      const Conditions::Set more =
          conditions.without(liveness_->of(*merge), live);
      if (more != Conditions::kNone)
        keep(frame.id,
             "loop variable \"{}\" may be dead if LoopCond \"{}\" is not; "
             "that depends on \"{}\"",
             merge->name(), loop_cond.name(), first_of(more));
    }
    for (const Node* next : frame.next_iterations) {
      const Conditions::Set set = liveness_->of(*next);
      const Conditions::Set more = conditions.without(set, goes_on);
      if (!conditions.includes(set, goes_on))
        keep(frame.id,
             "NextIteration \"{}\" may be live if LoopCond \"{}\" is false",
             next->name(), loop_cond.name());
      else if (more != Conditions::kNone)
        keep(frame.id,
             "NextIteration \"{}\" may be dead if LoopCond \"{}\" is true; "
             "that depends on \"{}\"",
             next->name(), loop_cond.name(), first_of(more));
    }
    if (reasons_[size_t(frame.id)].empty()) liveness_->end(loop_cond);
  }

  std::string first_of(Conditions::Set set) {
    const Conditions& conditions = liveness_->conditions();
    return conditions.condition(conditions.of(set).front()).source.to_string();
  }

  const Graph& graph_;
  const FrameMap& frames_;
  std::unique_ptr<Liveness> liveness_;
  std::vector<std::string> reasons_;  // by frame
};

// By body, whether results may be dead. Bodies call one another: all are
// assumed to have live results, until a body is found that may not, under the
// assumptions for its callees.
std::vector<bool> find_dead_bodies(const Program& program) {
  std::vector<bool> may_be_dead(program.bodies.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = 0; b < program.bodies.size(); ++b) {
      if (may_be_dead[b]) continue;
      const Program& body = *program.bodies[b];
      const Result<FrameMap> frames = FrameMap::build(body.graph);
      bool is_live = frames.ok();
      if (is_live) {
        Finder finder(body.graph, *frames, may_be_dead);
        finder.run();
        is_live = std::ranges::all_of(body.fetches, [&](const Endpoint& fetch) {
          return finder.is_live(fetch);
        });
      }
      if (!is_live) changed = may_be_dead[b] = true;
    }
  }
  return may_be_dead;
}

}  // namespace

bool leads_to_variable(const Node& node) {
  return node.is_next_iteration() ||
         (node.is_enter() && !node.is_constant_enter());
}

bool is_variable_edge(const Node& node, size_t index) {
  return node.is_merge() && leads_to_variable(*node.inputs()[index].node);
}

std::vector<std::string> find_whole_loops(const Program& program,
                                          const FrameMap& frames) {
  const std::vector<bool> may_be_dead = find_dead_bodies(program);
  Finder finder(program.graph, frames, may_be_dead);
  finder.run();
  return std::move(finder).take_reasons();
}

GraphFacts find_facts(const Graph& graph, const FrameMap& frames) {
  static const std::vector<bool> no_calls;
  Finder finder(graph, frames, no_calls);
  finder.run();
  return std::move(finder).take_facts();
}

}  // namespace tagflow::graph
