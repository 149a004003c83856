// Member: a worker, as its master sees it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/watch/trace.h"
#include "graph/placement/device_info.h"
#include "net/protocol/clock_offset.h"
#include "net/protocol/ids.h"
#include "net/transfer/channel.h"
#include "net/transfer/link_figures.h"
#include "net/transfer/object_tensor.h"
#include "net/transfer/pairing.h"
#include "net/wire/messages.h"
#include "net/wire/service_request.h"
#include "net/wire/view_messages.h"

namespace tagflow::graph {
class Budget;  // graph/budget.h
}

namespace tagflow::net {

class Member;

// What workers say of steps. Called on threads of the links, but for on_lost(),
// which Member::close() calls, too. A status that is an error ends the link.
class MemberEvents {
 public:
  // The values of the fetches that a worker has, by index.
  using Fetches = std::vector<std::pair<uint32_t, Tensor>>;

  virtual ~MemberEvents() = default;
  // A Done, whose fetches are there: or an error instead of them. `trace` is
  // what the part has recorded, with the times of this process's clock. The
  // callee may move it away. Null: nothing was recorded.
  virtual Status on_done(Member& member, const Done& done,
                         Result<Fetches> fetches, actors::TracePart* trace) = 0;
  virtual void on_failed(Member& member, uint64_t step, Status status) = 0;
  virtual void on_report(Member& member, const Report& report) = 0;
  virtual void on_seen(Member& member, Seen seen) = 0;
  virtual void on_pair_lost(Member& member, const PairLost& lost) = 0;
  // The worker wants to leave, and waits for let_go().
  virtual void on_drain(Member& member) = 0;
  // Called once. No part of the worker will say anything more.
  virtual void on_lost(Member& member, const Status& why) = 0;
};

// Life: made, when both connections are there; lost; gone. Thread-safe.
class Member {
 public:
  // `index` is that of the task in the cluster. The events outlive it.
  Member(const IoThreads& threads, Pairing::Pair pair, Address address,
         Task task, TaskIndex index, MemberEvents& events);
  // REQUIRES: the thread is not an io thread.
  ~Member() { fetches_.join(); }

  const Task& task() const { return task_; }
  // "/job:worker/task:1", as errors call it.
  const std::string& name() const { return channel_.name(); }
  Register::Peer as_peer() const;
  TaskIndex index() const { return index_; }
  Incarnation incarnation() const { return Incarnation(incarnation_); }
  // Why it is lost, if it is.
  Status lost() const;
  // Gives it up: it is lost for that reason.
  void close(const Status& why) { channel_.close(why); }

  // The devices of the worker, which it says first. Unavailable if it is lost,
  // or says nothing for kHelloTime.
  Result<std::vector<graph::DeviceInfo>> devices();

  // Sends a registration, a Reset or, to a master service, what it is asked
  // for, to whose request reply() has the answer.
  Status send(const Register& registration);
  Status send(const ServiceRequest& request);
  Status send(const Reset& reset);
  // Waits for the answer to a request, which is called once. Unavailable if the
  // worker is lost before; the error of the budget if that ends before.
  Result<Reply> reply(uint64_t request, graph::Budget* budget,
                      const std::function<Status()>& check = {});
  // The registration is not needed any more; nor is the answer, if it has not
  // come. Called once after each send() of one.
  Status release(uint64_t executable);

  // Starts a part, whose Done comes unless this is an error. REQUIRES: the
  // numbers of steps grow.
  Status run(Run run, const std::vector<std::pair<uint32_t, Tensor>>& feeds);
  void abort(uint64_t step, const Status& cause);
  void ask(uint64_t step, uint64_t round);
  // Both are for a part whose Run may be held. Look is answered by on_seen().
  void look(const Look& look);
  void steer(const Steer& steer);
  // The worker, which wants to leave, gets no Run any more.
  void let_go();
  // Says that the master leaves; the worker then closes the channel.
  void leave();
  // Waits until it has, but not longer.
  void await_end(std::chrono::steady_clock::time_point end);
  LinkFigures link() const { return {name(), channel_.traffic()}; }

 private:
  Status send(uint64_t number, Result<std::string> bytes);
  // The answer to a request will be taken.
  void expect(uint64_t request);
  Status on_frame(const Frame& frame);
  void on_done(Done done);
  void on_trace(const Done& done, Result<MemberEvents::Fetches> fetches,
                const Result<MemberEvents::Fetches>& trace);
  void tell(const Done& done, Result<MemberEvents::Fetches> fetches,
            actors::TracePart* trace);
  void ping();
  void on_pong(const Pong& pong);
  // Sets the start, which is by the clock of the worker, to that of this
  // process.
  void move_to_local(actors::TracePart& part) const;
  void on_lost(const Status& status);

  const Task task_;
  const Address address_;
  const uint64_t incarnation_;
  const TaskIndex index_;
  MemberEvents& events_;
  TensorInputs fetches_;

  mutable std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  Status lost_;
  ClockOffset clock_;
  int pings_ = 0;  // whose Pongs are to come before at_clock_ is called
  std::vector<std::function<void()>> at_clock_;
  bool has_devices_ = false;
  std::vector<graph::DeviceInfo> devices_;
  // By request: those that are awaited, and what has come of them.
  std::map<uint64_t, std::optional<Reply>> replies_;
  // Destroyed first.
  Channel channel_;
};

}  // namespace tagflow::net
