// Member: a worker, as its master sees it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "graph/placement/device_info.h"
#include "net/transfer/channel.h"
#include "net/transfer/object_tensor.h"
#include "net/transfer/pairing.h"
#include "net/wire/messages.h"

namespace tagflow::graph {
class Budget;  // graph/budget.h
}

namespace tagflow::net {

// Life: made, when both connections are there; lost; gone. Thread-safe.
class Member {
 public:
  // The values of the fetches that the worker has, by index.
  struct Over {
    Status status;
    std::vector<uint64_t> stats;
    std::vector<std::pair<uint32_t, Tensor>> fetches;
  };
  using OnOver = std::function<void(Over)>;

  Member(const IoThreads& threads, Pairing::Pair pair, Address address,
         Task task);
  // REQUIRES: the thread is not an io thread.
  ~Member() = default;

  const Task& task() const { return task_; }
  // "/job:worker/task:1", as errors call it.
  const std::string& name() const { return channel_.name(); }
  Register::Peer as_peer() const;

  // The devices of the worker, which it says first. DeadlineExceeded after
  // kHelloTime.
  Result<std::vector<graph::DeviceInfo>> devices();

  // Sends a registration, or a Reset, to whose request reply() has the answer.
  Status send(const Register& registration);
  Status send(const Reset& reset) { return channel_.send(reset); }
  // Waits for the answer to a request. Unavailable if the worker is lost
  // before; the error of the budget if that ends before.
  Result<Reply> reply(uint64_t request, graph::Budget* budget);

  // Starts a part. `names` are those of the feeds, for errors. `on_over` is
  // called once, on any thread, maybe before this returns. REQUIRES: the
  // numbers of steps grow.
  void run(Run run, const std::vector<std::pair<uint32_t, Tensor>>& feeds,
           OnOver on_over);
  void abort(uint64_t step, const Status& cause);
  // Says that the master leaves: the worker then does without an error.
  void leave();

 private:
  Status on_frame(const Frame& frame);
  void on_done(Done done);
  void on_lost(const Status& status);
  // Takes the step out, and tells its end.
  void finish(uint64_t step, Over over);

  const Task task_;
  const Address address_;
  const uint64_t incarnation_;
  TensorInputs fetches_;

  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  Status lost_;
  bool has_devices_ = false;
  std::vector<graph::DeviceInfo> devices_;
  std::map<uint64_t, Reply> replies_;
  std::map<uint64_t, OnOver> running_;  // by step
  // Destroyed first.
  Channel channel_;
};

}  // namespace tagflow::net
