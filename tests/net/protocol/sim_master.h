// Master: the machines of a master, and a client that runs scripts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "net/protocol/departure.h"
#include "net/protocol/torn_state.h"
#include "tests/net/protocol/sim_ledger.h"
#include "tests/net/protocol/sim_world.h"

namespace tagflow::net::simulated {

// What became of a step.
struct Answered {
  StepId step{};
  std::shared_ptr<const Script> script;
  std::vector<MasterStep::Part> parts;
  std::vector<TaskIndex> lost;  // before the answer
  Time begin, end;
  Time deadline = kNever;
  bool is_cancelled = false;  // by the client, before the answer
  MasterStep::Answer answer;
  uint64_t value = 0;
  Shards fetched;
};

class Master : public Process {
 public:
  // At that host; 0: `num_workers`.
  Master(World& world, Ledger& ledger, size_t num_workers, size_t host = 0);

  void start();
  // Closes all links; from now on nothing has an effect.
  void end();
  // Runs a random script on all ready members. Returns whether there was one.
  bool run_step(std::function<void()> on_answer);
  // Runs the script on these members. `on_answer` may be null.
  void run(Script script, std::vector<MasterStep::Part> parts,
           MasterStep::Limits limits, std::function<void()> on_answer);
  // The client cancels all its steps.
  void cancel();

  void on_message(LinkId link, Message message) override;
  void on_closed(LinkId link) override;

  // Of a training: what its workers know it by.
  void set_session(uint64_t session) { session_ = session; }

  const std::vector<Answered>& answered() const { return answered_; }
  // When the steps that have no answer began.
  std::vector<Time> waiting() const;
  const Members& members() const { return members_; }
  const TornState& torn() const { return torn_; }

 private:
  struct Step {
    Answered record;
    MasterStep machine;
    DeadlockWatch watch;
    uint64_t num_torn = 0;  // at its begin
    std::set<TaskIndex> done;
    std::function<void()> on_answer;
  };
  using StepPtr = std::shared_ptr<Step>;

  void on_worker(TaskIndex task, Message message);
  void let_go();
  void tick();
  void arm();
  void send(TaskIndex task, Message message);
  void perform(const Members::Actions& actions);
  void perform(const StepPtr& step, const MasterStep::Actions& actions);
  void perform(const StepPtr& step, DeadlockWatch::Decision decision);
  void cancel(const StepPtr& step);
  void answer(const StepPtr& step, const MasterStep::Answer& answer);
  void arm(const StepPtr& step);
  StepPtr find(StepId id) const;
  static size_t index_of(const Step& step, TaskIndex task);

  World& world_;
  Ledger& ledger_;
  const size_t host_;
  Members members_;
  Departures<TaskIndex> departures_;
  TornState torn_{false};
  std::map<LinkId, std::pair<TaskIndex, Incarnation>> workers_;
  std::vector<LinkId> links_;  // by task
  std::map<StepId, StepPtr> steps_;
  uint64_t last_step_ = 0;
  std::vector<Answered> answered_;
  Time armed_ = kNever;
  uint64_t session_ = 0;
  bool is_over_ = false;
};

std::string task_name(size_t index);

}  // namespace tagflow::net::simulated
