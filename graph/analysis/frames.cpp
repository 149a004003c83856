#include "graph/analysis/frames.h"

#include <algorithm>
#include <map>

#include "graph/analysis/topology.h"
#include "graph/budget.h"

namespace tagflow::graph {

bool FrameMap::is_within(FrameId inner, FrameId outer) const {
  while (frame(inner).depth > frame(outer).depth) inner = frame(inner).parent;
  return inner == outer;
}

// Propagates frames along the edges into new nodes, in topological order.
class FrameMap::Extension {
 public:
  Extension(FrameMap& map, const Graph& graph, const Limits& limits)
      : map_(map),
        graph_(graph),
        limits_(limits),
        old_frames_(map.frames_.size()),
        old_warnings_(map.warnings_.size()),
        old_ids_(map.of_.size()) {}

  // If an error or an exception occurs, the map is restored.
  ~Extension() {
    if (!is_done_) take_back();
  }

  Status run() {
    const auto added = graph_.nodes().subspan(map_.num_nodes_);
    if (!added.empty()) {
      Status status = place(added);
      if (!status.ok()) {
        forget_names();
        return status;
      }
      for (Node* node : added) list(node);
      map_.num_nodes_ = graph_.size();
    }
    is_done_ = true;
    return {};
  }

 private:
  // An edge into a node, as a message shows it.
  struct Edge {
    std::string text;
    const Node* source = nullptr;
    FrameId frame = FrameId::kRoot;
  };

  // The part that may fail; nodes are not in the lists of frames yet.
  Status place(std::span<Node* const> added) {
    map_.of_.resize(added.back()->id() + 1);
    map_.output_of_.resize(map_.of_.size());
    TAGFLOW_ASSIGN(const auto order,
                   topological_order(graph_, map_.num_nodes_));
    for (const Node* node : order) {
      TAGFLOW_RETURN_IF_ERROR(check_budget(limits_.budget));
      TAGFLOW_RETURN_IF_ERROR(place(*node));
    }
    for (const Node* node : added)
      TAGFLOW_RETURN_IF_ERROR(check_back_edges(*node));
    return check_predicates(added);
  }

  void take_back() {
    map_.of_.resize(old_ids_);
    map_.output_of_.resize(old_ids_);
    map_.warnings_.resize(old_warnings_);
    while (map_.frames_.size() > old_frames_) map_.frames_.pop_back();
    for (StaticFrame& frame : map_.frames_)
      for (auto* nodes : {&frame.enters, &frame.exits, &frame.next_iterations,
                          &frame.loop_conds, &frame.merges})
        while (!nodes->empty() && nodes->back()->id() >= old_ids_)
          nodes->pop_back();
  }

  // Names of removed frames are harmless in the index, but would accumulate.
  void forget_names() {
    if (map_.frames_.size() == old_frames_) return;
    NameIndex old(old_frames_);
    for (size_t i = 1; i < old_frames_; ++i)
      old.insert(map_.frames_[i].name, uint32_t(i));
    map_.by_name_ = std::move(old);
  }

  static std::string prefix(const Node& node) {
    return fmt::format("[{}] node \"{}\": ", node.op(), node.name());
  }

  std::string frame_text(FrameId id) const {
    if (id == FrameId::kRoot) return "the root frame";
    return fmt::format("frame \"{}\"", map_.frame(id).name);
  }

  // The edges that determine a node's frame: all but back edges.
  std::vector<Edge> edges_into(const Node& node) const {
    std::vector<Edge> edges;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Endpoint& input = node.inputs()[i];
      if (input.node == nullptr || is_back_edge(node, i)) continue;
      edges.push_back({fmt::format("input {} (\"{}\")", i, input.to_string()),
                       input.node, map_.output_of(*input.node)});
    }
    for (const Node* input : node.control_inputs())
      edges.push_back({fmt::format("control input \"^{}\"", input->name()),
                       input, map_.output_of(*input)});
    return edges;
  }

  Status place(const Node& node) {
    FrameId frame = FrameId::kRoot;
    bool placed = false;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Node* source = node.inputs()[i].node;
      if (source == nullptr || is_back_edge(node, i)) continue;
      const FrameId from = map_.output_of(*source);
      if (placed && from != frame) return conflict(node);
      frame = from;
      placed = true;
    }
    for (const Node* source : node.control_inputs()) {
      const FrameId from = map_.output_of(*source);
      if (placed && from != frame) return conflict(node);
      frame = from;
      placed = true;
    }
    if (!placed && node.is_merge())
      return invalid_argument(
          "{}all inputs are back edges, so nothing can ever arrive; one must "
          "come from an Enter of the loop",
          prefix(node));
    map_.of_[node.id()] = frame;
    map_.output_of_[node.id()] = frame;
    if (node.is_enter()) return enter(node, frame);
    if (node.is_exit() || node.is_next_iteration()) {
      if (frame == FrameId::kRoot)
        return invalid_argument(
            "{}it is in no loop; its input must lead back to an Enter",
            prefix(node));
      if (node.is_exit()) map_.output_of_[node.id()] = map_.frame(frame).parent;
    }
    return {};
  }

  // The error for two inputs of different frames, with a remedy.
  Status conflict(const Node& node) const {
    const std::vector<Edge> edges = edges_into(node);
    const Edge& first = edges.front();
    const Edge& other = *std::ranges::find_if(
        edges, [&](const Edge& edge) { return edge.frame != first.frame; });
    return invalid_argument("{}{} is in {}, but {} is in {}; {}", prefix(node),
                            first.text, frame_text(first.frame), other.text,
                            frame_text(other.frame), advice(first, other));
  }

  std::string advice(const Edge& a, const Edge& b) const {
    const bool a_is_inner = map_.is_within(a.frame, b.frame);
    if (!a_is_inner && !map_.is_within(b.frame, a.frame))
      return fmt::format(
          "neither is inside the other: take \"{}\" out of {} by an Exit",
          b.source->name(), frame_text(b.frame));
    const Edge& inner = a_is_inner ? a : b;
    const Edge& outer = a_is_inner ? b : a;
    return fmt::format(
        "bring \"{}\" into {} by an Enter with is_constant = true, or take "
        "\"{}\" out by an Exit",
        outer.source->name(), frame_text(inner.frame), inner.source->name());
  }

  Status enter(const Node& node, FrameId parent) {
    TAGFLOW_ASSIGN(const std::string name,
                   node.attr<std::string>("frame_name"));
    const Result<int64_t> parallel = node.attr<int64_t>("parallel_iterations");
    if (name.empty())
      return invalid_argument("{}the attribute \"frame_name\" is empty",
                              prefix(node));
    if (name.size() > limits_.max_name_length)
      return error(Code::kResourceExhausted,
                   "{}the name of its frame has {} bytes, the limit is {}",
                   prefix(node), name.size(), limits_.max_name_length);
    if (parallel.ok() && *parallel < 1)
      return invalid_argument(
          "{}the attribute \"parallel_iterations\" is {}, at least 1 is "
          "wanted",
          prefix(node), *parallel);
    const uint32_t known =
        map_.by_name_.find(name, [&](uint32_t i) -> std::string_view {
          return i < map_.frames_.size() ? map_.frames_[i].name
                                         : std::string_view();
        });
    const int64_t window = parallel.ok() ? *parallel : 1;
    if (known == NameIndex::kNone) return add_frame(node, name, parent, window);
    map_.output_of_[node.id()] = FrameId(known);
    const StaticFrame& frame = map_.frames_[known];
    if (window != frame.parallel_iterations)
      map_.warnings_.push_back(fmt::format(
          "{}it asks for parallel_iterations = {} of frame \"{}\", whose first "
          "Enter asks for {}, which is used",
          prefix(node), window, name, frame.parallel_iterations));
    if (frame.parent != parent)
      return invalid_argument(
          "{}it enters frame \"{}\" from {}, another Enter of that frame from "
          "{}; a loop has one parent: give each loop a frame_name of its own, "
          "or enter loop by loop",
          prefix(node), name, frame_text(parent), frame_text(frame.parent));
    return {};
  }

  Status add_frame(const Node& node, const std::string& name, FrameId parent,
                   int64_t window) {
    StaticFrame frame;
    frame.id = FrameId(map_.frames_.size());
    frame.name = name;
    frame.parent = parent;
    frame.depth = map_.frame(parent).depth + 1;
    frame.parallel_iterations = window;
    if (frame.depth > limits_.max_frame_depth)
      return error(Code::kResourceExhausted,
                   "{}frame \"{}\" is {} loops deep, the limit is {}",
                   prefix(node), name, frame.depth, limits_.max_frame_depth);
    map_.output_of_[node.id()] = frame.id;
    map_.by_name_.insert(name, uint32_t(frame.id));
    map_.frames_.push_back(std::move(frame));
    return {};
  }

  Status check_back_edges(const Node& node) const {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (!is_back_edge(node, i)) continue;
      const Endpoint& source = node.inputs()[i];
      const FrameId from = map_.of(*source.node);
      if (from == map_.of(node)) continue;
      return invalid_argument(
          "{}the back edge from \"{}\" comes from {}, the Merge is in {}; a "
          "NextIteration leads to a Merge of its own loop",
          prefix(node), source.to_string(), frame_text(from),
          frame_text(map_.of(node)));
    }
    return {};
  }

  // A loop has one predicate. The first loop with more is reported.
  Status check_predicates(std::span<Node* const> added) const {
    std::map<FrameId, boost::container::small_vector<const Node*, 2>> found;
    for (const Node* node : added)
      if (node->is_loop_cond() && map_.of(*node) != FrameId::kRoot)
        found[map_.of(*node)].push_back(node);
    for (auto& [id, nodes] : found) {
      const StaticFrame& frame = map_.frame(id);
      nodes.insert(nodes.begin(), frame.loop_conds.begin(),
                   frame.loop_conds.end());
      if (nodes.size() > 1)
        return invalid_argument(
            "[LoopCond] frame \"{}\" has \"{}\" and \"{}\"; a loop has one "
            "predicate: give each loop a frame_name of its own",
            frame.name, nodes[0]->name(), nodes[1]->name());
    }
    return {};
  }

  void list(Node* node) {
    StaticFrame& frame = map_.frames_[size_t(map_.of(*node))];
    if (node->is_enter())
      map_.frames_[size_t(map_.output_of(*node))].enters.push_back(node);
    if (node->is_exit()) frame.exits.push_back(node);
    if (node->is_next_iteration()) frame.next_iterations.push_back(node);
    if (node->is_loop_cond()) frame.loop_conds.push_back(node);
    if (node->is_merge()) frame.merges.push_back(node);
  }

  FrameMap& map_;
  const Graph& graph_;
  const Limits& limits_;
  const size_t old_frames_;
  const size_t old_warnings_;
  const size_t old_ids_;
  bool is_done_ = false;
};

FrameMap::FrameMap() : frames_(1) {}

Result<FrameMap> FrameMap::build(const Graph& graph, const Limits& limits) {
  FrameMap map;
  TAGFLOW_RETURN_IF_ERROR(map.extend(graph, limits));
  return map;
}

Status FrameMap::extend(const Graph& graph, const Limits& limits) {
  return Extension(*this, graph, limits).run();
}

}  // namespace tagflow::graph
