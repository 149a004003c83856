#include "graph/partition/readers_first.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>

#include "graph/analysis/node_queries.h"
#include "graph/analysis/whole_loops.h"
#include "graph/partition/joint_program.h"
#include "graph/placement/union_find.h"
#include "graph/precedence.h"

namespace tagflow::graph {
namespace {

// How many ancestors of a writer are searched for readers.
constexpr size_t kMostAncestors = 64;

bool is_writer(const Node& node) { return node.op_def().changed_input >= 0; }

bool has_writer(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const Node* node) { return is_writer(*node); });
}

// The outputs that may be data input `input`: those from `first` on.
struct Handed {
  int first = 0;
  int count = 0;
};
Handed handed_on(const Node& node, size_t input) {
  if (node.is_switch()) return {0, input == 0 ? node.num_outputs() : 0};
  if (node.is_merge()) return {0, is_variable_edge(node, input) ? 0 : 1};
  if (node.op() == "IdentityN") return {int(input), 1};
  if (node.is_identity() || is_plain_identity(node)) return {0, 1};
  return {};
}

// A writer, and the node that has to precede it; an Enter stands for the loop
// that it enters.
struct Pair {
  uint32_t before = 0;
  uint32_t writer = 0;
  Node* first = nullptr;
};

class OrderFinder {
 public:
  using Part = JointProgram::Part;

  OrderFinder(const JointProgram& program, const ReadersFirstOptions& options,
              bool bodies_wait)
      : program_(program), options_(options), bodies_wait_(bodies_wait) {}

  void run() {
    find_groups();
    if (by_group_.empty()) return;
    for (const Part& part : program_.parts()) add_pairs(part);
    if (pairs_.empty()) return;
    drop_late();
    drop_ancestors();
    if (!pairs_.empty()) set_order_edges();
  }

  // Whether any node may answer at any time, or never.
  bool may_wait() {
    for (uint32_t thing = 0; thing < program_.size(); ++thing)
      if (is_late_source(thing)) return true;
    return std::ranges::any_of(program_.parts(), [&](const Part& part) {
      return std::ranges::any_of(
          part.frames.frames(),
          [&](const StaticFrame& frame) { return is_odd(frame); });
    });
  }

 private:
  // Outputs that may all be the same value.
  struct Group {
    std::vector<uint32_t> writers;
    int origins = 0;  // how many of them are not forwarded
  };

  bool is_odd(const StaticFrame& frame) const {
    return options_.odd_frames.contains(frame.name);
  }
  bool has_odd_within(const Part& part, FrameId outer) const {
    return std::ranges::any_of(
        part.frames.frames(), [&](const StaticFrame& frame) {
          return part.frames.is_within(frame.id, outer) && is_odd(frame);
        });
  }
  Node* node(uint32_t thing) const {
    return const_cast<Node*>(program_.node(thing));
  }
  uint32_t output(const Part& part, const Endpoint& endpoint) const {
    return first_output_[JointProgram::thing(part, *endpoint.node)] +
           uint32_t(endpoint.port);
  }
  Group* group(const Part& part, const Endpoint& endpoint) {
    const auto it = by_group_.find(same_->find(output(part, endpoint)));
    return it == by_group_.end() ? nullptr : &it->second;
  }

  void find_groups() {
    uint32_t outputs = 0;
    for (uint32_t i = 0; i < program_.num_nodes(); ++i) {
      first_output_.push_back(outputs);
      outputs += uint32_t(node(i)->num_outputs());
    }
    same_.emplace(outputs);
    std::vector<bool> is_handed_on(outputs);
    for (const Part& part : program_.parts())
      for (Node* reader : part.program->graph.nodes())
        for (size_t i = 0; i < reader->inputs().size(); ++i) {
          const Handed handed = handed_on(*reader, i);
          for (int port = handed.first; port < handed.first + handed.count;
               ++port) {
            const uint32_t to = output(part, {reader, port});
            same_->unite(output(part, reader->inputs()[i]), to);
            is_handed_on[to] = true;
          }
        }
    for (const Part& part : program_.parts())
      for (const Node* writer : part.program->graph.nodes()) {
        if (!is_writer(*writer) ||
            is_odd(part.frames.frame(part.frames.of(*writer))))
          continue;
        const auto input = size_t(writer->op_def().changed_input);
        by_group_[same_->find(output(part, writer->inputs()[input]))]
            .writers.push_back(JointProgram::thing(part, *writer));
      }
    for (uint32_t i = 0; i < outputs; ++i) {
      if (is_handed_on[i]) continue;
      const auto it = by_group_.find(same_->find(i));
      if (it != by_group_.end()) ++it->second.origins;
    }
  }

  void add_pairs(const Part& part) {
    // More order_edges are not worth their cost.
    const size_t most = 8 * program_.size();
    for (Node* reader : part.program->graph.nodes())
      for (size_t i = 0; i < reader->inputs().size(); ++i) {
        if (pairs_.size() > most) return;
        const Group* group = this->group(part, reader->inputs()[i]);
        if (group == nullptr || handed_on(*reader, i).count > 0 ||
            reader->is_next_iteration() || reader->is_exit() ||
            int(i) == reader->op_def().changed_input)
          continue;
        uint32_t before = JointProgram::thing(part, *reader);
        if (reader->is_enter()) {
          const FrameId loop = part.frames.output_of(*reader);
          if (has_odd_within(part, loop)) continue;
          before = program_.end_of(part, loop);
        }
        for (const uint32_t writer : group->writers)
          if (writer != before) pairs_.push_back({before, writer, reader});
      }
  }

  // --- Nodes that may answer late, or never ---------------------------------

  bool is_late_source(uint32_t thing) const {
    const Node* node = program_.node(thing);
    if (node == nullptr) return false;
    if (node->op() == "_Call") return bodies_wait_;
    if (node->op() == "_HostRecv") return true;
    if (node->op() == "_Recv")
      return program_.send_of(*node) == program_.num_nodes();
    return options_.may_wait && options_.may_wait(*node);
  }

  // Whether input `i` is a list that a writer has from the same source, so that
  // the writer waits for the same nodes.
  bool is_shared(const Part& part, const Node& reader, size_t i) {
    const Endpoint& from = reader.inputs()[i];
    const Group* group = this->group(part, from);
    if (group == nullptr || group->origins > 1) return false;
    // A forwarding node may have other inputs than the list, such as a
    // predicate.
    for (size_t k = 0; k < from.node->inputs().size(); ++k)
      if (handed_on(*from.node, k).count > 0) return false;
    return true;
  }

  void drop_late() {
    std::vector<bool> is_late(program_.size());
    std::vector<uint32_t> open;
    const auto add = [&](uint32_t thing) {
      if (is_late[thing]) return;
      is_late[thing] = true;
      open.push_back(thing);
    };
    for (uint32_t thing = 0; thing < program_.size(); ++thing)
      if (is_late_source(thing)) add(thing);
    for (const Part& part : program_.parts())
      for (const StaticFrame& frame : part.frames.frames())
        if (is_odd(frame)) add(program_.end_of(part, frame.id));
    if (open.empty()) return;
    std::vector<std::vector<uint32_t>> after(program_.size());
    for (const Part& part : program_.parts()) {
      for (const Node* node : part.program->graph.nodes()) {
        const uint32_t own = JointProgram::thing(part, *node);
        const auto wait_for = [&](uint32_t thing) {
          after[thing].push_back(own);
        };
        for (size_t i = 0; i < node->inputs().size(); ++i)
          if (!is_shared(part, *node, i))
            wait_for(JointProgram::thing(part, *node->inputs()[i].node));
        for (const Node* control : node->control_inputs())
          wait_for(JointProgram::thing(part, *control));
        if (node->op() == "_Recv")
          if (const uint32_t send = program_.send_of(*node);
              send != program_.num_nodes())
            wait_for(send);
        const uint32_t end = program_.end_of(part, part.frames.of(*node));
        if (node->is_exit())
          wait_for(end);
        else
          after[own].push_back(end);
        if (node->is_enter())
          after[own].push_back(
              program_.end_of(part, part.frames.output_of(*node)));
      }
      for (const StaticFrame& frame : part.frames.frames())
        if (frame.id != FrameId::kRoot)
          after[program_.end_of(part, frame.id)].push_back(
              program_.end_of(part, frame.parent));
    }
    while (!open.empty()) {
      const uint32_t thing = open.back();
      open.pop_back();
      for (const uint32_t next : after[thing]) add(next);
    }
    std::erase_if(pairs_,
                  [&](const Pair& pair) { return is_late[pair.before]; });
  }

  // --- Existing dependences -------------------------------------------------

  // Some nodes of the iteration that always fire before the writer.
  std::vector<const Node*> ancestors_of(const Node& writer) const {
    std::vector<const Node*> found = {&writer};
    const auto add = [&](const Node* node) {
      if (found.size() < kMostAncestors &&
          std::ranges::find(found, node) == found.end())
        found.push_back(node);
    };
    for (size_t i = 0; i < found.size(); ++i) {
      const Node& node = *found[i];
      // A Merge waits for one input only; other frames do not count.
      if (node.is_merge() || node.is_exit() || node.is_enter()) continue;
      for (const Endpoint& input : node.inputs()) add(input.node);
      for (const Node* control : node.control_inputs()) add(control);
    }
    return found;
  }

  void drop_ancestors() {
    std::ranges::stable_sort(pairs_, {}, [](const Pair& pair) {
      return std::pair(pair.writer, pair.before);
    });
    const auto same = [](const Pair& a, const Pair& b) {
      return a.writer == b.writer && a.before == b.before;
    };
    pairs_.erase(std::unique(pairs_.begin(), pairs_.end(), same), pairs_.end());
    std::vector<const Node*> ancestors;
    uint32_t of = uint32_t(program_.size());
    std::erase_if(pairs_, [&](const Pair& pair) {
      if (pair.first->is_enter()) return false;
      if (pair.writer != of) ancestors = ancestors_of(*node(pair.writer));
      of = pair.writer;
      return std::ranges::find(ancestors, pair.first) != ancestors.end();
    });
  }

  // --- An order -------------------------------------------------------------

  // Positions in an order in which each thing comes after its dependences and,
  // if possible, writers come after their readers. Empty if frames depend on
  // their own ends.
  std::vector<uint32_t> find_places() const {
    const Precedence before = program_.precedence();
    const Precedence after = before.reversed();
    const size_t count = program_.size();
    std::vector<size_t> pending(count);  // without order_edges
    std::vector<size_t> order_edges(count);
    std::unordered_map<uint32_t, std::vector<uint32_t>> writers_of;
    for (const Pair& pair : pairs_) {
      ++order_edges[pair.writer];
      writers_of[pair.before].push_back(pair.writer);
    }
    std::deque<uint32_t> ready;
    std::deque<uint32_t> held;  // wait only for their order_edges
    const auto release = [&](uint32_t thing) {
      (order_edges[thing] == 0 ? ready : held).push_back(thing);
    };
    for (uint32_t i = 0; i < count; ++i) {
      pending[i] = before.of(i).size();
      if (pending[i] == 0) release(i);
    }
    std::vector<uint32_t> place(count, uint32_t(count));
    uint32_t placed = 0;
    while (!ready.empty() || !held.empty()) {
      std::deque<uint32_t>& from = ready.empty() ? held : ready;
      const uint32_t thing = from.front();
      from.pop_front();
      if (place[thing] != count) continue;
      place[thing] = placed++;
      for (const uint32_t next : after.of(thing))
        if (--pending[next] == 0) release(next);
      if (const auto it = writers_of.find(thing); it != writers_of.end())
        for (const uint32_t writer : it->second)
          if (--order_edges[writer] == 0 && pending[writer] == 0)
            ready.push_back(writer);
    }
    if (placed < count) place.clear();
    return place;
  }

  void set_order_edges() {
    const std::vector<uint32_t> place = find_places();
    if (place.empty()) return;
    for (const Part& part : program_.parts())
      for (const Pair& pair : pairs_)
        if (part.program->graph.owns(pair.first) &&
            place[pair.before] < place[pair.writer])
          part.program->order_edges.push_back({pair.first, node(pair.writer)});
  }

  const JointProgram& program_;
  const ReadersFirstOptions& options_;
  const bool bodies_wait_;
  std::vector<uint32_t> first_output_;  // by node
  std::optional<UnionFind> same_;       // of outputs
  std::unordered_map<uint32_t, Group> by_group_;
  std::vector<Pair> pairs_;
};

// The frames of one graph whose loops could not be cut.
Result<std::set<std::string>> odd_frames_of(const Program& program) {
  std::set<std::string> odd;
  TAGFLOW_ASSIGN(const FrameMap frames, FrameMap::build(program.graph));
  if (frames.frames().size() == 1) return odd;
  const std::vector<std::string> reasons = find_whole_loops(program, frames);
  for (const StaticFrame& frame : frames.frames())
    if (!reasons[size_t(frame.id)].empty()) odd.insert(frame.name);
  return odd;
}

// Whether a result of any body may come at any time, or never.
Result<bool> may_bodies_wait(const Program& program,
                             const ReadersFirstOptions& options) {
  for (const auto& body : program.bodies) {
    ReadersFirstOptions own = options;
    TAGFLOW_ASSIGN(own.odd_frames, odd_frames_of(*body));
    Program* const programs[] = {body.get()};
    TAGFLOW_ASSIGN(const JointProgram joint, JointProgram::make(programs));
    if (OrderFinder(joint, own, false).may_wait()) return true;
  }
  return false;
}

}  // namespace

Result<std::set<std::string>> find_odd_frames(const Program& program) {
  if (!has_writer(program.graph)) return std::set<std::string>();
  return odd_frames_of(program);
}

Status put_readers_first(std::span<Partition> partitions,
                         const ReadersFirstOptions& options) {
  std::vector<Program*> programs;
  bool any = false;
  bool bodies_wait = false;
  for (Partition& partition : partitions) {
    Program& program = partition.program;
    programs.push_back(&program);
    const auto writes = [](const auto& body) {
      return has_writer(body->graph);
    };
    const bool bodies_write = std::ranges::any_of(program.bodies, writes);
    if (!has_writer(program.graph) && !bodies_write) continue;
    any = true;
    TAGFLOW_ASSIGN(const bool wait, may_bodies_wait(program, options));
    bodies_wait = bodies_wait || wait;
  }
  if (!any) return {};
  TAGFLOW_ASSIGN(const JointProgram joint, JointProgram::make(programs));
  OrderFinder(joint, options, bodies_wait).run();
  for (Partition& partition : partitions)
    for (const auto& body : partition.program.bodies) {
      if (!has_writer(body->graph)) continue;
      ReadersFirstOptions own = options;
      TAGFLOW_ASSIGN(own.odd_frames, odd_frames_of(*body));
      Program* const alone[] = {body.get()};
      TAGFLOW_ASSIGN(const JointProgram inside, JointProgram::make(alone));
      OrderFinder(inside, own, bodies_wait).run();
    }
  return {};
}

}  // namespace tagflow::graph
