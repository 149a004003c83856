// ClusterStep: one step of a cluster at its master, by the rules of
// net/protocol/master_step.h and deadlock.h.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/session/inspector.h"
#include "actors/session/joined_executable.h"
#include "net/link/io_thread.h"
#include "net/master/member.h"
#include "net/protocol/deadlock.h"
#include "net/protocol/master_step.h"

namespace tagflow::net {

// What one worker runs of a signature. The member lives as long as its cluster.
struct ClusterPart {
  Member* member = nullptr;
  uint64_t executable = 0;
  std::vector<uint32_t> feeds;  // that it takes
  bool updates_state = false;
};

// What a cluster runs of a signature.
struct ClusterProgram {
  std::vector<ClusterPart> parts;
  std::vector<MasterStep::Pair> pairs;  // of parts that exchange tokens
  struct Fetch {
    TaskIndex task{};  // whose part has it
    DataType dtype = DataType::kInvalid;
    PartialShape shape;
  };
  std::vector<Fetch> fetches;
  // Of Steps, before it was registered.
  uint64_t num_pair_losses = 0;

  bool updates_state() const;
};

// Life: made; begun; answered. Events may come from any thread, also after the
// answer. It is kept by whoever made it until the answer. Thread-safe.
class ClusterStep final : public std::enable_shared_from_this<ClusterStep>,
                          public actors::RemoteHold {
 public:
  using Done = actors::RemotePart::Done;
  // Gets the answer once, on any thread, without a lock of the step. `tears` is
  // that of MasterStep::Answer.
  using OnAnswer = std::function<void(Done, bool tears)>;

  // `clock` calls it when workers that do not abort are to be given up, and
  // outlives the step. The program is used until the answer. REQUIRES: it has
  // parts
  ClusterStep(uint64_t number, const ClusterProgram& program, IoThread& clock,
              Duration grace, OnAnswer on_answer);

  // Sends the Runs. REQUIRES: it is called once, before all else, and the
  // numbers of steps that begin grow.
  void begin(const actors::RemotePart::Order& order);
  // The caller ends it, or its time is up.
  void stop(const Status& cause);
  // Those of its tasks whose parts are not over, for users.
  std::string describe_wait() const;
  // What it waits for, if only other runs can make it go on; else empty.
  std::string describe_stall() const;

  // As those of a Hold, for all parts. What a part does not say in time is
  // missing.
  std::vector<actors::SeenPart> look(
      std::chrono::nanoseconds patience) override;
  void stop_at(const std::optional<actors::StopPoint>& stop) override;
  void advance(const std::string& frame) override;

  // What workers say. An error ends the link of the worker.
  Status on_done(Member& member, const net::Done& done,
                 Result<MemberEvents::Fetches> fetches,
                 actors::TracePart* trace);
  void on_failed(Member& member, const Status& status);
  void on_report(Member& member, const Report& report);
  void on_seen(Member& member, Seen seen);
  void on_pair_lost(Member& member, TaskIndex peer, Incarnation incarnation,
                    const Status& reason);
  void on_lost(TaskIndex task, Incarnation incarnation, const Status& reason);

 private:
  // What is left to do without the lock.
  struct Rest {
    // Parts whose Run was not sent, so that no Done comes of them.
    std::vector<std::pair<TaskIndex, Status>> unsent;
    std::vector<std::pair<Member*, Status>> evicted;
    bool is_answered = false;
    MasterStep::Answer answer;
  };
  using Lock = std::unique_lock<std::mutex>;

  // Performs the actions of an event, and unlocks.
  void perform(Lock lock, const MasterStep::Actions& actions);
  void perform(const MasterStep::Action& action, Rest& rest);
  void perform(DeadlockWatch::Decision decision, MasterStep::Actions& actions);
  Status send_run(const ClusterPart& part);
  void steer(const Steer& steer);
  // REQUIRES: the lock is held, and there is no answer yet
  void add_to_trace(const Member& member, actors::TracePart part);
  void on_time();
  size_t index_of(TaskIndex task) const;
  const ClusterPart& part_of(TaskIndex task) const;

  const uint64_t number_;
  const ClusterProgram& program_;
  IoThread& clock_;
  const OnAnswer on_answer_;
  mutable std::mutex mutex_;  // guards the below
  // A loss before is found when the Run is sent.
  bool is_begun_ = false;
  const actors::RemotePart::Order* order_ = nullptr;  // during begin()
  actors::Trace* trace_ = nullptr;  // of the step; used until the answer
  MasterStep machine_;
  DeadlockWatch watch_;
  std::vector<std::string> waits_;         // for other runs, by part
  Time alarm_ = kNever;                    // when the clock comes
  uint64_t look_ = 0;                      // the request of the last look
  std::vector<std::optional<Seen>> seen_;  // its answers, by part
  std::condition_variable seen_changed_;
  std::vector<Tensor> fetches_;
  actors::RunStats stats_;
};

}  // namespace tagflow::net
