// The nodes that are seen in a run, as a drawing that grows.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/runtime/iteration_view.h"
#include "actors/watch/observer.h"
#include "apps/tagflow/stepper/recording.h"

namespace tagflow::apps::stepper {

// The graph of a run can differ from that of the file: functions become frames,
// and passes rewrite it. So the drawing is made of the nodes that are seen:
// those of each frame that starts, and all that lead to them. Nodes are
// identified by their address, which is valid as long as the run's session.
// Thread-compatible.
class NodeTable {
 public:
  // The nodes that fire in a frame, as first seen.
  struct Frame {
    int drawn = 0;
    std::unordered_map<int, size_t> fires;  // from node to its place in a view
    std::vector<int> node_of;               // the inverse
  };

  explicit NodeTable(Recording& recording) : recording_(recording) {}

  // The frame of that name. When it is first seen, adds the nodes of `view`.
  // `device` is the suffix of the names of frames on several devices.
  const Frame& frame(std::string_view name, std::string_view device,
                     const actors::IterationView& view);
  // The number of a node of frame `name`, which is added if it is new.
  int number(const graph::Node& node, std::string_view name,
             std::string_view device);

  // Numbers of the edges to and from a node.
  const std::vector<int>& edges_to(int node) const { return to_[size_t(node)]; }
  const std::vector<int>& edges_from(int node) const {
    return from_[size_t(node)];
  }
  const draw::DrawnEdge& edge(int edge) const {
    return recording_.drawing.edges[size_t(edge)];
  }
  // REQUIRES: the run's session lives.
  const graph::Node& node(int number) const { return *nodes_[size_t(number)]; }

 private:
  // Adds `roots` and all that leads to them; `base` is the frame they run in.
  void add(const std::vector<const graph::Node*>& roots, int base);
  void add_edges(int to);
  void place(int node, int base);
  int drawn_frame(std::string_view name, int parent);
  int entered_frame(const graph::Node& enter, int parent);

  Recording& recording_;
  std::string device_;  // of what is added
  std::unordered_map<const graph::Node*, int> numbers_;
  std::vector<const graph::Node*> nodes_;
  std::vector<std::vector<int>> to_, from_;
  std::unordered_map<std::string, int> drawn_frames_{{"", 0}};
  std::unordered_map<std::string, Frame> frames_;
};

}  // namespace tagflow::apps::stepper
