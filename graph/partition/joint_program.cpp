#include "graph/partition/joint_program.h"

namespace tagflow::graph {
namespace {

// The key that a Send and its Recv share.
Result<std::string> transfer_key(const Node& node) {
  TAGFLOW_ASSIGN(const auto from, node.attr<std::string>("send_device"));
  TAGFLOW_ASSIGN(const auto to, node.attr<std::string>("recv_device"));
  TAGFLOW_ASSIGN(const auto name, node.attr<std::string>("tensor_name"));
  return fmt::format("{};{};{}", from, to, name);
}

}  // namespace

Result<JointProgram> JointProgram::make(std::span<Program* const> programs) {
  JointProgram joint;
  for (Program* program : programs) {
    TAGFLOW_ASSIGN(FrameMap frames, FrameMap::build(program->graph));
    Part& part = joint.parts_.emplace_back();
    part = {program, std::move(frames), {}};
    part.things.resize(program->graph.end_id());
    for (const Node* node : program->graph.nodes()) {
      const auto thing = uint32_t(joint.nodes_.size());
      if (node->op() == "_Send") {
        TAGFLOW_ASSIGN(std::string key, transfer_key(*node));
        joint.sends_[std::move(key)] = thing;
      }
      part.things[node->id()] = thing;
      joint.nodes_.push_back(node);
    }
  }
  joint.num_nodes_ = joint.nodes_.size();
  for (const Part& part : joint.parts_)
    for (const StaticFrame& frame : part.frames.frames())
      if (joint.ends_.try_emplace(frame.name, uint32_t(joint.nodes_.size()))
              .second)
        joint.nodes_.push_back(nullptr);
  return joint;
}

uint32_t JointProgram::send_of(const Node& recv) const {
  const Result<std::string> key = transfer_key(recv);
  const auto send = key.ok() ? sends_.find(*key) : sends_.end();
  return send == sends_.end() ? uint32_t(num_nodes_) : send->second;
}

Precedence JointProgram::precedence() const {
  Precedence before(size(), 4 * size());
  std::vector<std::vector<uint32_t>> within(size());  // by end of a frame
  for (const Part& part : parts_) {
    std::unordered_multimap<const Node*, uint32_t> order_edges;
    for (const OrderEdge& edge : part.program->order_edges)
      order_edges.emplace(edge.then,
                          edge.first->is_enter()
                              ? end_of(part, part.frames.output_of(*edge.first))
                              : thing(part, *edge.first));
    for (const Node* node : part.program->graph.nodes()) {
      const uint32_t own = thing(part, *node);
      for (size_t i = 0; i < node->inputs().size(); ++i)
        if (!is_back_edge(*node, i))
          before.add(thing(part, *node->inputs()[i].node));
      for (const Node* control : node->control_inputs())
        before.add(thing(part, *control));
      if (node->op() == "_Recv")
        if (const uint32_t send = send_of(*node); send != num_nodes_)
          before.add(send);
      const auto [first, end] = order_edges.equal_range(node);
      for (auto it = first; it != end; ++it) before.add(it->second);
      if (node->is_exit())
        before.add(end_of(part, part.frames.of(*node)));
      else
        within[end_of(part, part.frames.of(*node))].push_back(own);
      if (node->is_enter())
        within[end_of(part, part.frames.output_of(*node))].push_back(own);
      before.end_list();
    }
    for (const StaticFrame& frame : part.frames.frames())
      if (frame.id != FrameId::kRoot)
        within[end_of(part, frame.parent)].push_back(end_of(part, frame.id));
  }
  for (size_t end = num_nodes_; end < size(); ++end) {
    for (const uint32_t thing : within[end]) before.add(thing);
    before.end_list();
  }
  return before;
}

}  // namespace tagflow::graph
