// What a traced run did, node by node, as TensorBoard shows it in its graph.
//
//   actors::Trace trace;
//   actors::OutputRecorder outputs;
//   session->run(feeds, fetches, {}, {.observer = &outputs, .trace = &trace});
//   writer->run_metadata("step 7", actors::run_metadata(trace, &outputs), 7);
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/watch/observer.h"

namespace tagflow::actors {

class Trace;  // actors/watch/trace.h

// Records what nodes output: how many bytes, of which shapes. It costs more
// than the trace: use it for single steps. Thread-safe.
class OutputRecorder : public Observer {
 public:
  struct Port {
    DataType dtype = DataType::kInvalid;
    Shape shape;
  };
  struct Node {
    uint64_t firings = 0;
    uint64_t bytes = 0;       // of all its firings
    uint64_t most_bytes = 0;  // of one of them
    std::vector<Port> ports;  // of the last one
  };
  // By device and name.
  using Nodes = std::map<std::pair<std::string, std::string>, Node>;

  Nodes nodes() const;

  void on_fired(const Location& location, const graph::Node& node,
                std::span<const Tensor> outputs) override;

 private:
  mutable std::mutex mutex_;  // guards the below
  Nodes nodes_;
};

// What a node has done in all runs of a trace.
struct NodeStats {
  std::string device;  // of an accelerator's kernels: "DEVICE/stream:all"
  std::string name;
  std::string op;  // empty for kernels of an accelerator
  uint64_t firings = 0;
  int64_t nanoseconds = 0;  // of all firings
  uint64_t bytes = 0;       // that it has output, in all
  uint64_t most_bytes = 0;  // in one firing
};
// By device and name. `outputs` may be null: then there are no bytes. REQUIRES:
// no run is active.
std::vector<NodeStats> node_stats(const Trace& trace,
                                  const OutputRecorder* outputs);

// The bytes of a RunMetadata message with the statistics of the trace's runs:
// an entry for each node of a device, and, for an accelerator, one for each of
// its kernels in "DEVICE/stream:all". A node of a loop has one entry: its time
// is the sum of its firings from the first one on. No time is less than a
// microsecond, since viewers leave out what takes no time. `outputs` may be
// null: then there is nothing of memory. REQUIRES: no run is active.
std::string run_metadata(const Trace& trace, const OutputRecorder* outputs);

}  // namespace tagflow::actors
