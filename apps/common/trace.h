// Records what a run did, for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <filesystem>
#include <memory>

#include "actors/observer.h"
#include "graph/status.h"

namespace tagflow::apps {

// A track per thread. On it slices: iterations, for as long as a thread is
// busy with one, and in them the nodes that fire, each with its frame, instance
// and iteration, from its firing to the next one. Arrows: tokens that hop from
// an iteration to another one, by Enter, Exit or NextIteration. Marks: nodes
// that were skipped.
//
// Each thread writes to a buffer of its own, and looks at the clock once for a
// node. The first `kMaxEvents` events are kept; where there were more, the
// trace and a warning say so. Thread-safe but for write().
class TraceRecorder : public actors::Observer {
 public:
  static constexpr size_t kMaxEvents = size_t{1} << 20;

  explicit TraceRecorder(size_t max_events = kMaxEvents);
  ~TraceRecorder() override;

  void on_fire(const actors::Place& place, const graph::Node& node,
               bool dead) override;
  void on_compute(const actors::Place& place, const graph::Node& node) override;
  void on_computed(const actors::Place& place,
                   const graph::Node& node) override;
  void on_arrive(const actors::Place& place, const graph::Node& node,
                 const Tensor& value, bool dead) override;
  void on_settle(const actors::Place& place,
                 const actors::IterationView& view) override;
  void on_pause(const actors::Place& place) override;
  void on_iteration_start(const actors::Place& place) override;
  void on_frame_start(const actors::Place& place,
                      const actors::Place& caller) override;

  // Writes what was recorded as Chrome trace JSON. Errors as io::write_file.
  // REQUIRES: no run is being recorded.
  Status write(const std::filesystem::path& path) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tagflow::apps
