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

// What a training needs to go on from there.
struct Snapshot {
  // In the host's memory, by the names of the variables; one of a container
  // that has a name has that before it, and a slash.
  std::map<std::string, Tensor, std::less<>> variables;
  // Of random ops: the session's seed, and in how many runs each took part.
  // Without a seed, as where another program wrote the variables, a session
  // that this is restored to keeps its own numbers.
  std::optional<uint64_t> seed;
  std::map<std::string, int64_t, std::less<>> run_counts;
};

// Takes and restores snapshots of the variables that a session's graph has when
// this is made. Keeps the state, not the session.
//
// No step that updates variables is halfway through in a snapshot (Note
// [Borders] in shared_state.h): it waits for those that are, and while it reads
// the variables, others wait for it. Steps without updates go on. A dense
// variable on the host is not copied but shared, until the next update needs a
// buffer of its own; one that is on an accelerator, or was updated sparsely, is
// copied. So a snapshot needs at most as much memory as the variables have.
// Thread-safe.
class Snapshots {
 public:
  // Errors as of Session::create(). InvalidArgument where two variables of
  // different kinds have one name.
  static Result<std::unique_ptr<Snapshots>> create(const Session& session);
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  // Of the variables that have a value. DeadlineExceeded where no moment came
  // at which no step was halfway through. REQUIRES: as for Session::run().
  Result<Snapshot> take(
      std::chrono::nanoseconds timeout = std::chrono::minutes(1));
  // Assigns all variables of the snapshot, in one step, and then, where it has
  // a seed, seed and counts of the state: a step that runs at the same time may
  // see some of these and not the others, so run none. A session that has a
  // seed of its own (SessionOptions::seed) keeps that. The variables of the
  // graph that it does not have stay as they are: `missing`, where it is not
  // null, gets their names. InvalidArgument that lists what differs, where the
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
