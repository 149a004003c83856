// Finds the loop in which each node of a graph runs.
//
// Note [Static frames]
// An Enter leads into the frame it names, an Exit out of the frame it runs in;
// any other node passes its frame on along its out-edges, including control
// edges. So each node has one static frame: that of its inputs. An Enter runs
// in the parent frame, its output is in the loop; an Exit runs in the loop, its
// output is in the parent frame. A node without inputs runs in the root. The
// dynamic frames of a run (one per parent iteration) are instances of the
// static ones.
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
  int64_t parallel_iterations = 1;  // as given by the first Enter
  // In order of insertion into the graph. Enters lead into this frame; the
  // other nodes run in it.
  std::vector<Node*> enters;
  std::vector<Node*> exits;
  std::vector<Node*> next_iterations;
  std::vector<Node*> loop_conds;
  std::vector<Node*> merges;
};

// The frames of one graph, parents before children. Valid while the nodes of
// the graph are unchanged. Thread-compatible.
class FrameMap {
 public:
  FrameMap();
  // InvalidArgument if a node's inputs come from different frames, a back edge
  // leaves its frame, an Exit or NextIteration is outside of loops, the Enters
  // of one frame have different parents, a frame has two LoopConds, or edges
  // form an illegal cycle; ResourceExhausted if loops are nested too deeply.
  // The message names the edges, their frames, and a remedy. A back edge may
  // still be open.
  static Result<FrameMap> build(const Graph& graph, const Limits& limits = {});

  // Adds the nodes that were added to the graph since the last call, without
  // visiting others: existing nodes keep their frames, since nothing can be
  // inserted before them. The result, or error, is that of build(); after an
  // error this is unchanged. REQUIRES: nodes were only added, by
  // Graph::extend() or such that no older node reads a newer one.
  Status extend(const Graph& graph, const Limits& limits = {});

  // The number of nodes whose frames are known.
  size_t num_nodes() const { return num_nodes_; }
  const std::vector<StaticFrame>& frames() const { return frames_; }
  const StaticFrame& frame(FrameId id) const { return frames_[size_t(id)]; }
  // The frame of the node's inputs. REQUIRES: the node is in the graph.
  FrameId of(const Node& node) const { return of_[node.id()]; }
  // The frame of its outputs: differs for Enter and Exit.
  FrameId output_of(const Node& node) const { return output_of_[node.id()]; }
  // Warnings about Enters of one frame with different parallel_iterations. New
  // warnings are appended.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Whether `inner` is `outer` or inside it.
  bool is_within(FrameId inner, FrameId outer) const;

 private:
  class Extension;

  size_t num_nodes_ = 0;
  std::vector<StaticFrame> frames_;
  NameIndex by_name_;  // of frames_, except the root
  // By node id; kRoot if there is no such node.
  std::vector<FrameId> of_;
  std::vector<FrameId> output_of_;
  std::vector<std::string> warnings_;
};

}  // namespace tagflow::graph
