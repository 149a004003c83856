// WorkerShards: checkpoints whose variables are written by the processes that
// have them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/checkpoint/snapshot.h"
#include "actors/checkpoint/stored_variables.h"
#include "devices/files/bundle_shard.h"
#include "devices/files/files.h"
#include "devices/state/resource_manager.h"
#include "graph/device_name.h"
#include "graph/node.h"
#include "graph/status.h"

namespace tagflow::actors {

class Session;

// Note [Shards of workers]
// While steps wait, a node of each worker takes the values of the variables
// there, by reference. Then steps go on, and another node writes these values
// to the worker's shard, as Note [Shards of other processes] in
// devices/files/bundle_shard.h says, by a thread of its own. The master writes
// shard 0, with all that is not a variable, compares what it sees with what the
// workers say, and publishes. Each save has a number of its own, which the
// names of its files and what is held for it have: so a process that was given
// up, or that has followed a lost one, adds nothing to a later save.
//
// A restore goes the other way. The master reads the index, and tells each
// worker the places of its variables there. In one step the workers read them,
// and when all have, assign them: so if one cannot, nothing has changed.

// The nodes of a session's workers for that. Thread-compatible.
class WorkerShards {
 public:
  // Adds its nodes to the session, which outlives it. There is a shard for each
  // task. FailedPrecondition if the session has no workers.
  static Result<std::unique_ptr<WorkerShards>> create(Session& session);

  // Lets each worker write a shard without tensors beside those of the prefix,
  // looks for it, and removes it. The error of the first one that cannot, or
  // whose files this process does not see.
  Status try_out(const std::string& prefix, checkpoint::FileSystem& files);

  // A variable with a value.
  struct Variable {
    std::string name;
    std::string read;  // the node that reads it
    DataType dtype = DataType::kInvalid;
    std::string home;  // the device that has it; empty if that is unknown
  };
  // Draws the number of the save, and says which of the variables workers will
  // hold, in `snapshot`, and which nodes do so, in `targets`. Returns the
  // others, whose values the master reads.
  Result<std::vector<Variable>> plan(std::vector<Variable> variables,
                                     Snapshot& snapshot,
                                     std::vector<std::string>& targets);
  // What these nodes are fed with.
  static std::pair<std::string, Tensor> feed_of(const Snapshot& snapshot);

  // Lets the workers write the variables that they hold for the snapshot, with
  // the keys that `key_of` gives, and checks that this process sees their
  // files. After an error there are none, unless a worker does not answer.
  using KeyOf = std::function<const std::string&(const std::string& variable)>;
  Result<std::vector<checkpoint::ForeignShard>> write(
      const Snapshot& snapshot, const std::string& prefix, const KeyOf& key_of,
      const checkpoint::WriteOptions& options,
      std::chrono::nanoseconds timeout) const;

  // The only task that a device of that name, which may be partial, can be of.
  std::optional<size_t> task_of(const std::string& device) const;
  // Returns the targets of a run that lets the workers read the variables, and
  // assigns them after that, and adds what it is to be fed with. `assign` makes
  // the node by which a variable gets a value, after another node.
  using Assign = std::function<graph::NodeDef(const std::string& variable,
                                              const std::string& value,
                                              const std::string& after)>;
  Result<std::vector<std::string>> read(
      const StoredVariables& stored, const Assign& assign,
      std::vector<std::pair<std::string, Tensor>>& feeds);

 private:
  struct Task {
    graph::DeviceName device;
    std::string name;  // "/job:worker/task:1"
  };
  struct Request {
    size_t task = 0;
    std::vector<std::string> keys;
  };
  explicit WorkerShards(Session& session) : session_(session) {}
  Status try_task(size_t task, const std::string& prefix,
                  checkpoint::FileSystem& files);
  // The node by which a task holds what these nodes read.
  Result<std::string> holder(size_t task, std::vector<std::string> reads,
                             std::vector<DataType> dtypes);
  Result<std::vector<checkpoint::ForeignShard>> write_all(
      int64_t save, const std::string& prefix,
      std::span<const Request> requests,
      const checkpoint::WriteOptions& options,
      std::chrono::nanoseconds timeout) const;

  Session& session_;
  std::vector<Task> tasks_;
  struct Holder {
    std::string node;
    std::vector<std::string> reads;
  };
  std::map<size_t, Holder> holders_;  // of tasks
  size_t num_holders_ = 0;            // that were ever made
  // The nodes of the last restore.
  struct Reader {
    std::map<std::string, std::pair<size_t, int>> variables;  // task and dtype
    std::vector<std::string> targets;
  };
  Reader reader_;
  size_t num_readers_ = 0;  // that were ever made
};

}  // namespace tagflow::actors
