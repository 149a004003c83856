// The partitions of one program, seen as one again: what comes before what, on
// whatever device.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/analysis/topology.h"
#include "graph/program.h"

namespace tagflow::graph {

// A number for each node, partition by partition, and after them for the end of
// each frame, which is the end of it on every device. Thread-compatible.
class JointProgram {
 public:
  struct Part {
    Program* program = nullptr;
    FrameMap frames;
    std::vector<uint32_t> things;  // by node id
  };

  // The programs outlive this. REQUIRES: they are valid, and all partitions of
  // one program, or one body.
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
  // The Send of what a Recv receives; num_nodes() where there is none.
  uint32_t send_of(const Node& recv) const;

  // What each waits for: its inputs, back edges apart, and control inputs; a
  // Recv its Send; the end of a frame all that is in it; an Exit, which may be
  // dead, the end of its frame; and who has a turn (Program::turns) whoever is
  // first.
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
