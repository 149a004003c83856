// Fills the queues of a run by the queue runners of a MetaGraph.
#pragma once

#include <vector>

#include "actors/session/coordinator.h"
#include "apps/tagflow/signature.h"
#include "graph/file/queue_runner.h"

namespace tagflow::apps {

// The queue runners of the model whose queues the run reads, and in turn those
// whose queues these read. Thread-compatible; the session must outlive it.
class Filling {
 public:
  explicit Filling(const Prepared& prepared);
  // Whether there are any.
  bool is_needed() const { return !runners_.empty(); }
  // Starts them, before the first run and after the variables have values.
  // Returns errors of actors::start_queue_runners().
  Status start();
  // Stops them and waits for them. Returns the status of the runs; if they
  // failed because a queue had no elements, the reason for that.
  Status end(Status status);

 private:
  actors::Session& session_;
  std::vector<graph::QueueRunnerDef> runners_;
  actors::Coordinator threads_;
};

}  // namespace tagflow::apps
