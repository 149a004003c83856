#include "graph/partition/recv_schedule.h"

#include <algorithm>
#include <unordered_map>

#include "graph/analysis/whole_loops.h"
#include "graph/partition/joint_program.h"
#include "graph/passes/rewriting.h"
#include "graph/precedence.h"

namespace tagflow::graph {
namespace {

// Avoids overflow of sums of costs.
constexpr int64_t kMaxCost = int64_t(1) << 40;

struct Times {
  int64_t cost = 1;
  int64_t asap = 0;  // earliest start
  int64_t alap = 0;  // latest start
  int64_t earliest_end() const { return asap + cost; }
  int64_t latest_end() const { return alap + cost; }
};

bool is_transfer(const Node& node) {
  return node.op() == "_Send" || node.op() == "_Recv";
}

// Whether its only output is known to have fewer bytes.
bool is_below(const Node& recv, int64_t bytes) {
  const int64_t elements = recv.output_shape(0).num_elements();
  const DataType type = recv.output_dtypes()[0];
  if (elements == PartialShape::kUnknown || type == DataType::kString ||
      type == DataType::kVariant)
    return false;
  return double(elements) * double(dtype_size(type)) < double(bytes);
}

class RecvScheduler {
 public:
  RecvScheduler(const JointProgram& program, const RecvScheduleOptions& options)
      : program_(program), options_(options), times_(program.size()) {
    for (uint32_t thing = 0; thing < program.size(); ++thing)
      times_[thing].cost = cost_of(program.node(thing));
  }

  Result<size_t> run() {
    const Precedence before = program_.precedence();
    const auto order = topological_order(
        before, [](size_t) { return std::string_view("a node"); });
    if (!order.ok()) return size_t(0);
    compute_asap(before, *order);
    compute_alap(before, *order, latest_ends(before, *order));
    size_t held_back = 0;
    for (const Part& part : program_.parts()) {
      TAGFLOW_ASSIGN(const size_t count, schedule(part));
      held_back += count;
    }
    return held_back;
  }

 private:
  using Part = JointProgram::Part;
  // A node that a Recv could wait for.
  struct Candidate {
    Node* node = nullptr;
    int64_t latest_end = 0;
    int64_t earliest_end = 0;
  };

  int64_t cost_of(const Node* node) const {
    if (node == nullptr || !options_.cost) return 1;
    return std::clamp(options_.cost(*node), int64_t(1), kMaxCost);
  }

  void compute_asap(const Precedence& before,
                    const std::vector<uint32_t>& order) {
    may_block_.resize(program_.size());
    for (const uint32_t thing : order) {
      Times& times = times_[thing];
      const Node* node = program_.node(thing);
      may_block_[thing] =
          node != nullptr && node->op_def().is_stateful && !is_transfer(*node);
      for (const uint32_t input : before.of(thing)) {
        times.asap = std::max(times.asap, times_[input].earliest_end());
        if (may_block_[input]) may_block_[thing] = true;
      }
    }
  }

  // In a loop, a dependence on an earlier iteration includes all of it.
  bool may_block(const Part& part, const Node& node) const {
    if (may_block_[part.things[node.id()]]) return true;
    for (FrameId at = part.frames.output_of(node); at != FrameId::kRoot;
         at = part.frames.frame(at).parent)
      if (may_block_[program_.end_of(part, at)]) return true;
    return false;
  }

  // The latest end times: of the program for all nodes; of the frame for
  // NextIterations, so that the next iteration is not delayed; immediate for
  // nodes that provide the predicate to others.
  std::vector<int64_t> latest_ends(const Precedence& before,
                                   const std::vector<uint32_t>& order) const {
    int64_t last = 0;
    for (const Times& times : times_)
      last = std::max(last, times.earliest_end());
    std::vector<int64_t> pace(times_.size());  // by end of a frame
    for_each_next([&](size_t thing, size_t end) {
      pace[end] = std::max(pace[end], times_[thing].earliest_end());
    });
    std::vector<int64_t> ends(times_.size(), last);
    for_each_next([&](size_t thing, size_t end) { ends[thing] = pace[end]; });
    std::vector<bool> is_urgent(times_.size());
    for (const uint32_t thing : order) {
      const Node* node = program_.node(thing);
      if (node == nullptr) continue;
      is_urgent[thing] =
          node->is_loop_cond() ||
          (is_transfer(*node) &&
           std::ranges::any_of(before.of(thing), [&](uint32_t input) {
             return is_urgent[input];
           }));
      if (is_urgent[thing]) ends[thing] = times_[thing].earliest_end();
    }
    return ends;
  }

  template <class Function>
  void for_each_next(const Function& function) const {
    for (const Part& part : program_.parts())
      for (const StaticFrame& frame : part.frames.frames())
        for (const Node* next : frame.next_iterations)
          function(part.things[next->id()], program_.end_of(part, frame.id));
  }

  void compute_alap(const Precedence& before,
                    const std::vector<uint32_t>& order,
                    std::vector<int64_t> ends) {
    for (size_t i = order.size(); i-- > 0;) {
      Times& times = times_[order[i]];
      times.alap = ends[order[i]] - times.cost;
      for (const uint32_t input : before.of(order[i]))
        ends[input] = std::min(ends[input], times.alap);
    }
  }

  // By frame, the nodes that run in every iteration, sorted by their latest
  // end; each entry is the one of these that can end last. In a loop that is
  // cut, these are all nodes except those that enter it or its variables;
  // outside of loops, all nodes.
  std::vector<std::vector<Candidate>> candidates(const Part& part) const {
    std::vector<std::vector<Candidate>> all(part.frames.frames().size());
    for (Node* node : part.program->graph.nodes()) {
      const FrameId frame = part.frames.output_of(*node);
      if (leads_to_variable(*node) || node->op() == "_Send" ||
          may_block(part, *node))
        continue;
      const Times& times = times_[part.things[node->id()]];
      all[size_t(frame)].push_back(
          {node, times.latest_end(), times.earliest_end()});
    }
    for (std::vector<Candidate>& frame : all) {
      std::ranges::stable_sort(frame, {}, &Candidate::latest_end);
      for (size_t i = 1; i < frame.size(); ++i) {
        if (frame[i].earliest_end >= frame[i - 1].earliest_end) continue;
        frame[i].node = frame[i - 1].node;
        frame[i].earliest_end = frame[i - 1].earliest_end;
      }
    }
    return all;
  }

  Result<size_t> schedule(const Part& part) {
    const auto all = candidates(part);
    std::vector<Node*> recvs;
    for (Node* node : part.program->graph.nodes())
      if (node->op() == "_Recv") recvs.push_back(node);
    std::unordered_map<const Node*, Node*> triggers;
    size_t held_back = 0;
    for (Node* recv : recvs) {
      if (is_below(*recv, options_.min_bytes)) continue;
      const Times& times = times_[part.things[recv->id()]];
      const auto& frame = all[size_t(part.frames.of(*recv))];
      // The ControlTrigger has cost 1.
      const auto above = std::ranges::upper_bound(frame, times.alap - 1, {},
                                                  &Candidate::latest_end);
      if (above == frame.begin()) continue;
      const Candidate& best = *std::prev(above);
      if (best.earliest_end < times.asap + options_.min_delay) continue;
      Node*& trigger = triggers[best.node];
      if (trigger == nullptr) {
        Graph& graph = part.program->graph;
        Node* const controls[] = {best.node};
        TAGFLOW_ASSIGN(
            trigger,
            graph.add(name_after(graph, *best.node, "/done"), "ControlTrigger",
                      {}, {}, controls, best.node->device()));
      }
      part.program->graph.add_control_input(recv, trigger);
      ++held_back;
    }
    return held_back;
  }

  const JointProgram& program_;
  const RecvScheduleOptions& options_;
  // By thing.
  std::vector<Times> times_;
  std::vector<bool> may_block_;  // it, or one of its dependences
};

}  // namespace

Result<size_t> schedule_recvs(std::vector<Partition>& partitions,
                              const RecvScheduleOptions& options) {
  std::vector<Program*> programs;
  for (Partition& partition : partitions)
    programs.push_back(&partition.program);
  TAGFLOW_ASSIGN(const JointProgram joint, JointProgram::make(programs));
  return RecvScheduler(joint, options).run();
}

}  // namespace tagflow::graph
