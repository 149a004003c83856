// TaskState: what the processes of a session have beside variables.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/checkpoint/snapshot.h"
#include "devices/state/resource_manager.h"
#include "graph/node.h"
#include "graph/status.h"

namespace tagflow::actors {

class Session;

// Takes and restores the contents of queues, tables and the like, and the
// counts of random ops, by nodes that run in each task of the session: Note
// [Saved contents] in devices/state/saved_contents.h. Thread-compatible.
//
// A snapshot takes two runs: the first one lists what there is, the second one
// reads it.
class TaskState {
 public:
  // Adds its nodes to the session, which outlives it.
  static Result<std::unique_ptr<TaskState>> create(Session& session);

  // What the first run fetches.
  std::vector<std::string> looks() const;
  // Takes what that run has fetched, and adds what the second one fetches to
  // `reads`. Sets the counts, and what needs no second run.
  Status plan(std::span<const Tensor> looked, Snapshot& snapshot,
              std::vector<std::string>& reads);
  // Takes what the second run has fetched of that.
  void take(std::span<const Tensor> read, Snapshot& snapshot) const;

  // Leaves the contents with all tasks: the one that has the resource is known
  // when its node runs. After an error, some of them may have been.
  Status restore_contents(const Snapshot& snapshot);
  // Sets the counts of all tasks.
  Status restore_counts(const Snapshot& snapshot);

 private:
  struct Saving {
    std::string node;
    std::string resource;  // for messages
  };
  explicit TaskState(Session& session) : session_(session) {}
  // The node that reads a resource of a task.
  Result<std::string> node_for(size_t task, const devices::ResourceKey& key);

  Session& session_;
  std::vector<std::string> devices_;  // one of each task
  std::map<std::pair<size_t, devices::ResourceKey>, std::string> nodes_;
  std::vector<Saving> savings_;  // of the planned run
};

}  // namespace tagflow::actors
