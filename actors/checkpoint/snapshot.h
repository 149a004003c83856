// Snapshots: all variables of a session at one moment between steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::actors {

class Session;

// The state that a training needs to continue from that moment.
struct Snapshot {
  // Values in the host's memory, by the names of the variables; in a named
  // container, the name is "container/name".
  std::map<std::string, Tensor, std::less<>> variables;
  // The state of random ops: the session's seed, and in how many runs each op
  // took part. Without a seed, as in files of other programs, a restore keeps
  // the numbers of the session.
  std::optional<uint64_t> seed;
  std::map<std::string, int64_t, std::less<>> run_counts;
  // The contents of queues, tables, accumulators, staging areas and barriers
  // that have a name: Note [Saved contents] in devices/state/saved_contents.h.
  std::vector<Tensor> contents;
  // The others of these, each with the reason.
  std::vector<std::string> left_out;
};

// Takes and restores snapshots of the variables that a session's graph has when
// this is made. Keeps the shared state alive, not the session.
//
// No step that updates variables runs while a snapshot is taken (Note [Borders]
// in shared_state.h): the snapshot waits for running ones, and while it reads
// the variables, others wait for it. Steps without updates continue. A dense
// variable on the host is shared, not copied, until the next update needs a
// buffer of its own; a variable that is on an accelerator, or was updated
// sparsely, is copied; so are the contents of queues, tables and the like. So a
// snapshot needs at most as much memory as all of these. Thread-safe.
class Snapshots {
 public:
  // Errors as of Session::create(). InvalidArgument if two variables of
  // different kinds have the same name.
  static Result<std::unique_ptr<Snapshots>> create(const Session& session);
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  // Takes a snapshot of the variables that have a value. DeadlineExceeded if
  // there was no moment between steps. REQUIRES: as for Session::run().
  Result<Snapshot> take(
      std::chrono::nanoseconds timeout = std::chrono::minutes(1));
  // Assigns all variables of the snapshot in one step, and then, if the
  // snapshot has a seed, the seed and counts of the state. Queues and the like
  // that the snapshot has are removed, and get its contents when a node makes
  // them again; others are kept. A concurrent step
  // may see some of these changes and not the others, so run none. A session
  // that has a seed of its own (SessionOptions::seed) keeps it. Variables of
  // the graph that the snapshot does not have are not changed: `missing`, if
  // not null, gets their names. InvalidArgument, with the differences, if the
  // graph lacks a variable, or has it with another type or shape; then nothing
  // is changed. REQUIRES: as for Session::run().
  Status restore(const Snapshot& snapshot,
                 std::vector<std::string>* missing = nullptr);
  // The names, in ascending order.
  std::vector<std::string> names() const;

 private:
  struct Parts;
  explicit Snapshots(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace tagflow::actors
