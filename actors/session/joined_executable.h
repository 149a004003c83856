// JoinedExecutable: runs a signature whose parts are in other processes.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/session/executable.h"

namespace tagflow::actors {

// Adds the counts of a part to those of its step.
void add_stats(const RunStats& part, RunStats& all);

// What one other process, or several of them together, run of a signature: Note
// [A part of a step] in actors/runtime/peer_wait.h. Thread-safe.
class RemotePart {
 public:
  virtual ~RemotePart() = default;

  // Whether it can never run again, since its process is lost.
  virtual bool is_lost() const = 0;
  // What a step waits for that has begun here: "the part of
  // /job:worker/task:1".
  virtual std::string describe_wait(uint64_t step) const = 0;
  // If only other runs can make such a step go on: what it waits for in their
  // processes. Else empty.
  virtual std::string describe_stall(uint64_t step) const = 0;

  // What it needs of a step. Valid during start(). The step's trace, if there
  // is one, gets what was recorded in other processes before `done` is called.
  struct Order {
    const Step& step;
    std::span<const Tensor> feeds;  // of the signature
    bool count = false;             // statistics are wanted
  };
  struct Done {
    // Those that the part has; the others are not valid.
    Step::Answer fetches;
    RunStats stats;
  };
  // Starts the part. Calls `done` once, on any thread, maybe before this
  // returns: when nothing of the part runs any more, or its process is lost.
  virtual void start(const Order& order, std::function<void(Done)> done) = 0;
  // Ends the part of a step that has failed elsewhere, or was stopped, for that
  // reason. Its `done` may have been called. If the step was stopped, the error
  // of `done` is its answer: it may say more than the reason.
  virtual void abort(uint64_t step, const Status& reason) = 0;
};

// Starts all parts of a step, which waits for each. The first error ends the
// others, and is the answer.
class JoinedExecutable final
    : public Executable,
      public std::enable_shared_from_this<JoinedExecutable> {
 public:
  // `fetches` are names.
  JoinedExecutable(std::vector<std::shared_ptr<RemotePart>> parts,
                   std::vector<std::string> fetches, bool updates_state)
      : parts_(std::move(parts)),
        fetches_(std::move(fetches)),
        updates_state_(updates_state) {}

  size_t num_fetches() const override { return fetches_.size(); }
  bool updates_state() const override { return updates_state_; }
  // The values of variables are not here.
  bool can_be_frozen() const override { return false; }
  bool is_lost() const override {
    return std::ranges::any_of(
        parts_, [](const auto& part) { return part->is_lost(); });
  }
  // Ignores `lend`. Unimplemented if the step has an observer, which the parts
  // would not tell anything.
  Status start(const std::shared_ptr<Step>& step, std::span<const Tensor> feeds,
               bool lend, bool count) override;

 private:
  struct Joint;
  class PartWait;

  // `last` is an error of a part, if one has failed.
  Step::Answer outcome(Step& step, const Status& last) const;

  const std::vector<std::shared_ptr<RemotePart>> parts_;
  const std::vector<std::string> fetches_;
  const bool updates_state_;
};

}  // namespace tagflow::actors
