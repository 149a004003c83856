// Joins the partitions of one program again: the order of dependence across
// devices.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/analysis/topology.h"
#include "graph/precedence.h"
#include "graph/program.h"

namespace tagflow::graph {

// Numbers ("things") for all nodes, partition by partition, then for the end of
// each frame; a frame ends on all devices together. Thread-compatible.
class JointProgram {
 public:
  struct Part {
    Program* program = nullptr;
    FrameMap frames;
    std::vector<uint32_t> things;  // by node id
  };

  // The programs outlive this. REQUIRES: they are valid, and are all partitions
  // of one program, or of one body.
  static Result<JointProgram> make(std::span<Program* const> programs);

  const std::vector<Part>& parts() const { return parts_; }
  size_t size() const { return nodes_.size(); }
  size_t num_nodes() const { return num_nodes_; }
  // Null: the end of a frame.
  const Node* node(uint32_t thing) const { return nodes_[thing]; }
  static uint32_t thing(const Part& part, const Node& node) {
    return part.things[node.id()];
  }
  uint32_t end_of(const Part& part, FrameId frame) const {
    return ends_.at(part.frames.frame(frame).name);
  }
  // The Send that matches a Recv; num_nodes() if there is none.
  uint32_t send_of(const Node& recv) const;

  // The dependences: a node waits for its inputs without back edges, and its
  // control inputs; a Recv for its Send; the end of a frame for all nodes in
  // it; an Exit, which may be dead, for the end of its frame; and in a turn
  // (Program::turns), the second node for the first.
  Precedence precedence() const;

 private:
  JointProgram() = default;

  std::vector<Part> parts_;
  std::vector<const Node*> nodes_;
  size_t num_nodes_ = 0;
  std::unordered_map<std::string, uint32_t> sends_;  // by what they send
  std::map<std::string, uint32_t> ends_;             // of frames, by name
};

}  // namespace tagflow::graph
