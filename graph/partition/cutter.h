// Makes every edge of a program local to a device: the work behind
// partition(), and private to this folder.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/analysis/prune.h"
#include "graph/partition/partition.h"

namespace tagflow::graph {

// Walks from what is wanted to what that reads, and so finds what each device
// needs. The graph only grows meanwhile: what a node is to read instead is
// noted, and changed at the end, so that whoever is copied is copied as it was.
class Cutter {
 public:
  // All outlive this. REQUIRES: as for partition().
  Cutter(Program& program, std::span<const DeviceInfo> devices,
         const Placement& placement, const PartitionOptions& options);

  // Afterwards no edge between two needed nodes leaves a device, and what is
  // fetched is where the host reads it.
  Status run();

  // --- What came of it. REQUIRES: run() was ok.
  bool is_needed(const Node& node) const { return needed_.contains(node); }
  uint32_t device_of(const Node& node) const { return device_[node.id()]; }
  const std::string& device_name(uint32_t device) const {
    return device_names_[device];
  }
  std::span<Node* const> sends() const { return sends_; }

 private:
  // What one device has of a loop.
  struct Share {
    bool has_next_iteration = false;
    // Nodes that read nothing but constants of the loop.
    std::vector<Node*> constant_readers;
    // The control loop, as far as it was needed.
    Node* enter = nullptr;
    Node* merge = nullptr;
  };
  // What is read across devices. Source and reader are for messages.
  struct Reading {
    FrameId frame = FrameId::kRoot;
    const Node* source = nullptr;
    const Node* reader = nullptr;  // null: a fetch
    uint32_t device = 0;           // of the reader
  };
  // A node that is needed. Copies are in the frame of what they are made from.
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
  // What stands for `source`, a node of the uncut graph, on the device.
  Result<Endpoint> bring(const Endpoint& source, const Node* reader,
                         uint32_t device);
  Result<Node*> bring_control(Node* source, const Node* reader,
                              uint32_t device);
  // Settles from which nodes control inputs are to come, so that control
  // loops are known before control edges look for what they can share.
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
  // Makes control loops where a device has nothing else that goes around.
  Status drive_constant_readers();
  // The node on the reader's device that has a token whenever there is
  // something to read; null outside of loops.
  Result<Node*> starter(const Reading& reading);
  Result<Node*> control_enter(const Reading& reading);
  Status make_loop(const Reading& reading);
  Result<Node*> start_of_loops(const Reading& reading, const Node& origin);

  // What stands for outputs on one device, by key().
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
  size_t visited_ = 0;         // of them
  std::vector<Rewire> rewires_;
  std::vector<std::pair<Node*, Node*>> drives_;  // a reader, its control loop
  std::vector<Node*> waits_;      // have control inputs from other devices
  std::vector<Arrived> arrived_;  // by device
  std::vector<Share> shares_;
  std::unordered_map<uint64_t, size_t> share_index_;
  std::vector<std::pair<FrameId, uint32_t>> share_of_;  // as shares_
  std::vector<Node*> starts_of_loops_;                  // by device
  std::vector<Node*> sends_;
};

}  // namespace tagflow::graph
