// Makes every edge of a program local to a device: the implementation of
// partition(), private to this folder.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/node_set.h"
#include "graph/partition/partition.h"

namespace tagflow::graph {

// Walks from the wanted nodes to their inputs and finds the nodes that each
// device needs. Until the end nodes are only added; changes of inputs are
// recorded and applied last, so that nodes are copied unchanged.
class Cutter {
 public:
  // All arguments outlive this. REQUIRES: as for partition().
  Cutter(Program& program, std::span<const DeviceInfo> devices,
         const Placement& placement, const PartitionOptions& options);

  // Afterwards no edge between two needed nodes crosses devices, and fetches
  // are on devices with host memory.
  Status run();

  // --- Results. REQUIRES: run() was ok.
  bool is_needed(const Node& node) const { return needed_.contains(node); }
  uint32_t device_of(const Node& node) const { return device_[node.id()]; }
  const std::string& device_name(uint32_t device) const {
    return device_names_[device];
  }
  std::span<Node* const> sends() const { return sends_; }

 private:
  // The part of a loop on one device.
  struct Share {
    bool has_next_iteration = false;
    // Nodes that only read constants of the loop.
    std::vector<Node*> constant_readers;
    // The parts of the control loop that have been needed.
    Node* enter = nullptr;
    Node* merge = nullptr;
  };
  // A read across devices. Source and reader are for messages.
  struct Reading {
    FrameId frame = FrameId::kRoot;
    const Node* source = nullptr;
    const Node* reader = nullptr;  // null: a fetch
    uint32_t device = 0;           // of the reader
  };
  // A needed node. Copies are in the same frame as the original.
  struct Visit {
    Node* node = nullptr;
    const Node* original = nullptr;
  };
  struct Rewire {
    Node* node = nullptr;
    int index = 0;
    Endpoint source;
  };

  // --- Edges, in cutter.cpp
  void need(Node* node);
  Status drain();
  Status visit(const Visit& visit);
  Status fetch();
  Reading reading(Node* source, const Node* reader, uint32_t device) const;
  // The output on the device that replaces `source`, a node of the uncut graph.
  Result<Endpoint> bring(const Endpoint& source, const Node* reader,
                         uint32_t device);
  Result<Node*> bring_control(Node* source, const Node* reader,
                              uint32_t device);
  // Determines the sources of control inputs in advance, so that control loops
  // are known before control edges look for inputs that they can share.
  Status announce_control(Node* source, const Node* reader, uint32_t device);
  Result<Node*> copy(Node* node, uint32_t device);
  Result<Endpoint> transfer(const Endpoint& source, bool is_fetched,
                            uint32_t device, Node* start);
  Result<Node*> add(uint32_t device, const Node& origin,
                    std::string_view ending, std::string_view op,
                    std::vector<Endpoint> inputs, AttrMap attrs,
                    std::vector<Node*> controls = {});
  Status apply();

  // --- Loops, in control_loops.cpp
  Share& share(FrameId frame, uint32_t device);
  void note_share(const Visit& visit);
  // Makes control loops for devices on which the loop has no other cycle.
  Status drive_constant_readers();
  // The node on the reader's device that gets a token whenever there is
  // something to read; null outside of loops.
  Result<Node*> starter(const Reading& reading);
  Result<Node*> control_enter(const Reading& reading);
  Status make_loop(const Reading& reading);
  Result<Node*> start_of_loops(const Reading& reading, const Node& origin);

  // The replacements of outputs on one device, by key().
  using Arrived = std::unordered_map<uint64_t, Endpoint>;
  static constexpr int kControl = -1;  // as a port: the control edge
  static uint64_t key(const Node& node, int port) {
    return uint64_t(node.id()) << 32 | uint32_t(port);
  }

  Program& program_;
  Graph& graph_;
  const std::span<const DeviceInfo> devices_;
  const PartitionOptions& options_;
  std::vector<std::string> device_names_;
  FrameMap frames_;                 // of the uncut graph
  std::vector<std::string> whole_;  // by frame, why it cannot be cut
  std::vector<uint32_t> device_;    // by node id
  NodeSet needed_;
  std::vector<Visit> visits_;  // in the order in which they were found
  size_t visited_ = 0;         // how many of them have been visited
  std::vector<Rewire> rewires_;
  std::vector<std::pair<Node*, Node*>> drives_;  // a reader, its control loop
  std::vector<Node*> waits_;      // have control inputs from other devices
  std::vector<Arrived> arrived_;  // by device
  std::vector<Share> shares_;
  std::unordered_map<uint64_t, size_t> share_index_;
  std::vector<std::pair<FrameId, uint32_t>> share_of_;  // parallel to shares_
  std::vector<Node*> starts_of_loops_;                  // by device
  std::vector<Node*> sends_;
};

}  // namespace tagflow::graph
