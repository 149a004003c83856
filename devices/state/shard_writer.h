// ShardWriter: what a process holds of a snapshot, and the thread that writes
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "devices/state/resource_manager.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// One of each state, which _HoldShard makes. The tensors are shared with the
// variables that they come from, which get buffers of their own when they
// change.
//
// Its thread has a lower priority than those of steps: writing takes what they
// leave of the processors, and a sixth of one that they keep busy. So does a
// thread that it starts, as DirectOutput does: it inherits that. Thread-safe.
class ShardWriter final : public StateObject {
 public:
  static constexpr std::string_view kKind = "shard writer";
  static ResourceKey key() { return {"", std::string(kKind), "shards"}; }

  class Job {
   public:
    virtual ~Job() = default;
    // Called once, by the thread. Throws nothing.
    virtual void run() = 0;
    // Makes run() return soon. Called by any thread, any number of times.
    void stop() { is_stopped_ = true; }
    bool is_stopped() const { return is_stopped_; }

   protected:
    const std::atomic<bool>& stopped() const { return is_stopped_; }

   private:
    std::atomic<bool> is_stopped_{false};
  };

  ShardWriter();
  // Stops the job, and waits until the file system has answered it.
  ~ShardWriter() override;

  std::string describe() const override { return "the writer of shards"; }

  // Holds the tensors for that save, and those of no other.
  void hold(int64_t save, std::vector<Tensor> tensors);
  // Gives them away. NotFound if others, or none, are held.
  Result<std::vector<Tensor>> take(int64_t save);
  // Runs the job on the thread, after the one that runs there: one that was
  // stopped may still wait for its file system. Unavailable if another one that
  // is not stopped waits already; ResourceExhausted if there is no thread.
  Status start(std::shared_ptr<Job> job);

 protected:
  void on_end(const Status& reason) override;

 private:
  struct Thread;

  std::mutex mutex_;  // guards the group below
  int64_t save_ = 0;  // 0: none
  std::vector<Tensor> tensors_;

  const std::shared_ptr<Thread> thread_;
};

}  // namespace tagflow::devices
