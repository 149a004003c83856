// Which loop each node of a graph runs in.
//
// Note [Static frames]
// An Enter leads into the frame it names, an Exit out of the frame it runs in;
// every other node hands its frame on along its out-edges, control edges too.
// So each node has one static frame: the one its inputs arrive in. An Enter
// runs in the parent and puts its output into the loop; an Exit runs in the
// loop and puts its output into the parent. A node without inputs runs in the
// root. The dynamic frames of a run (one per parent iteration) are instances
// of these.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/hash_index.h"
#include "graph/limits.h"

namespace tagflow::graph {

// An index into FrameMap::frames().
enum class FrameId : uint32_t { kRoot = 0 };

struct StaticFrame {
  FrameId id = FrameId::kRoot;
  std::string name;                 // the Enters' frame_name; "" of the root
  FrameId parent = FrameId::kRoot;  // the root's is itself
  int depth = 0;                    // 0 of the root
  int64_t parallel_iterations = 1;  // what the first Enter asks for
  // In order of insertion into the graph. Enters lead into this frame; all
  // others run in it.
  std::vector<Node*> enters;
  std::vector<Node*> exits;
  std::vector<Node*> next_iterations;
  std::vector<Node*> loop_conds;
  std::vector<Node*> merges;
};

// The frames of one graph, parents before children. Valid while what the graph
// has of nodes is unchanged. Thread-compatible.
class FrameMap {
 public:
  FrameMap();
  // InvalidArgument where a node's inputs come from different frames, a back
  // edge leaves its frame, an Exit or NextIteration is in no loop, the Enters
  // of one frame have different parents, a frame has two LoopConds, or edges
  // form an illegal cycle; ResourceExhausted where loops nest too deep. The
  // message names the edges, their frames, and what to do. A back edge may
  // still be open.
  static Result<FrameMap> build(const Graph& graph, const Limits& limits = {});

  // Takes in the nodes that were added to the graph since, and looks at no
  // others: what is there keeps its frame, since nothing can be put in front
  // of it. The result, and the error, is that of build(); after an error this
  // is as before. REQUIRES: nodes were added only, by Graph::extend() or so
  // that none that was there reads one that was not.
  Status extend(const Graph& graph, const Limits& limits = {});

  // Of how many nodes of the graph it has the frames.
  size_t num_nodes() const { return num_nodes_; }
  const std::vector<StaticFrame>& frames() const { return frames_; }
  const StaticFrame& frame(FrameId id) const { return frames_[size_t(id)]; }
  // Where the node's inputs arrive. REQUIRES: a node of the graph.
  FrameId of(const Node& node) const { return of_[node.id()]; }
  // Where its outputs arrive: differs for Enter and Exit.
  FrameId output_of(const Node& node) const { return output_of_[node.id()]; }
  // Of Enters of one frame that disagree on parallel_iterations. Later warnings
  // are appended.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // `inner` is `outer` or inside it.
  bool is_within(FrameId inner, FrameId outer) const;

 private:
  class Extension;

  size_t num_nodes_ = 0;
  std::vector<StaticFrame> frames_;
  NameIndex by_name_;  // of frames_, the root apart
  // By node id; kRoot where there is no such node.
  std::vector<FrameId> of_;
  std::vector<FrameId> output_of_;
  std::vector<std::string> warnings_;
};

}  // namespace tagflow::graph
