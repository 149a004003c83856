// Steps: all steps of a cluster at its master, and who its workers are.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "net/master/cluster_step.h"
#include "net/master/figures.h"
#include "net/protocol/departure.h"
#include "net/protocol/members.h"
#include "net/protocol/step_counts.h"
#include "net/protocol/torn_state.h"
#include "net/wire/event.h"

namespace tagflow::net {

// Members and programs outlive their steps. Thread-safe.
class Steps final : public MemberEvents {
 public:
  struct Options {
    std::vector<std::string> names;  // of the tasks
    bool tolerates_torn_state = false;
    Duration grace{};
    OnEvent on_event;  // as that of ClusterOptions
  };
  using Done = std::function<void(actors::RemotePart::Done)>;

  // The clock's thread outlives all steps.
  Steps(IoThread& clock, Options options);

  // As Members::on_hello() and on_ready(). The hello of a connection has
  // compared the digests already.
  Status on_hello(TaskIndex task, Incarnation incarnation);
  void on_ready(const Member& member);
  // Why the task has no worker, by its last loss; OK if it has one.
  Status lost(TaskIndex task) const;

  // As RemotePart::start(): fails at once, with nothing begun, if a worker of
  // the program is lost or wants to leave, or if it updates torn state.
  void start(const ClusterProgram& program,
             const actors::RemotePart::Order& order, Done done);
  // The master leaves: that it loses its workers is no event.
  void leave() { is_leaving_ = true; }
  // Why the program can never run again: a worker is lost, or two of them have
  // lost the links that it was registered for. OK if it can.
  Status check_links(const ClusterProgram& program) const;
  // Whether that is only for its links: it can be registered again.
  bool has_lost_pair(const ClusterProgram& program) const;
  // Losses of links between two workers so far.
  uint64_t num_pair_losses() const;
  // As the functions of RemotePart, of a step that start() got.
  void stop(const ClusterProgram& program, uint64_t step, const Status& cause);
  std::string describe_wait(const ClusterProgram& program, uint64_t step) const;
  std::string describe_stall(const ClusterProgram& program,
                             uint64_t step) const;

  // Of the steps, and of the members by task.
  StepCounts::Numbers counts() const { return counts_.numbers(); }
  std::vector<ClusterFigures::Member> members() const;

  // As TornState::check_snapshot().
  Status check_state() const;
  // All workers have dropped their state. `num_torn` is of the begin of that.
  uint64_t num_torn() const;
  void on_mended(uint64_t num_torn);

  Status on_done(Member& member, const net::Done& done, Result<Fetches> fetches,
                 actors::TracePart* trace) override;
  void on_failed(Member& member, uint64_t step, Status status) override;
  void on_report(Member& member, const Report& report) override;
  void on_seen(Member& member, Seen seen) override;
  void on_pair_lost(Member& member, const PairLost& lost) override;
  void on_drain(Member& member) override;
  void on_lost(Member& member, const Status& why) override;

 private:
  struct Running {
    std::shared_ptr<ClusterStep> step;
    // Of the caller.
    const ClusterProgram* program = nullptr;
    uint64_t id = 0;
  };

  // The last loss of the links between two workers.
  struct PairLoss {
    uint64_t number = 0;  // among all losses
    Status reason;
  };

  // REQUIRES for these four: the lock is held
  Status check_members(const ClusterProgram& program) const;
  Status check_pairs(const ClusterProgram& program) const;
  Status check(const ClusterProgram& program) const;
  bool is_member(TaskIndex task, Incarnation incarnation) const {
    return members_.incarnation(task) == incarnation;
  }
  // Of the log; `step` is 0 if it is about none.
  void tell(const Status& what, const std::string& peer, uint64_t step) const;
  void on_answer(uint64_t number, bool tears, const Status& status);
  // Lets those members go that want to leave, and that no step needs.
  void let_go();
  std::shared_ptr<ClusterStep> find(uint64_t number) const;
  std::shared_ptr<ClusterStep> find(const ClusterProgram& program,
                                    uint64_t id) const;
  std::vector<std::shared_ptr<ClusterStep>> all() const;

  IoThread& clock_;
  const std::vector<std::string> names_;
  const Duration grace_;
  const OnEvent on_event_;
  // Held while Runs are sent, which waits for no connection: a link keeps what
  // its socket does not take, and is lost if that is too much. Guards the next.
  std::mutex order_mutex_;
  uint64_t last_number_ = 0;
  StepCounts counts_;
  std::atomic<bool> is_leaving_{false};
  mutable std::mutex mutex_;  // guards the below; locked after the other
  Members members_;
  std::vector<const Member*> ready_;  // by task: the last one that was
  std::vector<Status> lost_;          // by task: of the last one
  std::map<MasterStep::Pair, PairLoss> pair_losses_;
  uint64_t num_pair_losses_ = 0;
  Departures<Member*> departures_;
  TornState torn_;
  std::set<Incarnation> with_state_;
  std::map<uint64_t, Running> running_;  // by number
};

}  // namespace tagflow::net
