// Records what a run did, for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "actors/observer.h"
#include "graph/status.h"

namespace tagflow::apps {

// One slice for each firing of a node, on the thread that finished it, with
// its frame and iteration; marks for skipped nodes and for the start and end
// of iterations. Keeps the first `kMaxEvents` events, and says so where there
// were more. Slows a run down considerably. Thread-safe.
class TraceRecorder : public actors::Observer {
 public:
  static constexpr size_t kMaxEvents = size_t{1} << 20;

  TraceRecorder();
  ~TraceRecorder() override;

  void on_fire(const actors::Place& place, const graph::Node& node,
               bool dead) override;
  void on_fired(const actors::Place& place, const graph::Node& node,
                std::span<const Tensor> outputs) override;
  void on_iteration_start(const actors::Place& place) override;
  void on_iteration_end(const actors::Place& place) override;

  // Writes what was recorded as Chrome trace JSON. Errors as io::write_file.
  Status write(const std::filesystem::path& path) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tagflow::apps
