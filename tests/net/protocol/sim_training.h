// TrainingMaster: a command that trains, with the real loop and the real order
// of a save, on simulated workers and a simulated disk.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/checkpoint/checkpoint_folder.h"
#include "actors/checkpoint/graph_variables.h"
#include "actors/checkpoint/training_run.h"
#include "tests/net/protocol/sim_disk.h"
#include "tests/net/protocol/sim_fiber.h"
#include "tests/net/protocol/sim_master.h"
#include "tests/net/protocol/sim_shard.h"
#include "tests/net/protocol/training.h"

namespace tagflow::net::simulated {

// Of a training. All of its masters have the same.
struct TrainingPlan {
  size_t num_workers = 1;
  size_t num_variables = 1;
  size_t num_elements = 8;  // of a variable's tensor
  int64_t steps = 0;
  int64_t every_steps = 0;
  Duration every{};
  int keep = 1;
  bool sync = true;
  int restarts = 0;
  bool leaves_out_lost = false;
  Duration patience{};
};

// What those who watch a training are told, before it goes on.
class TrainingWatch {
 public:
  virtual ~TrainingWatch() = default;
  virtual void on_moment(Moment moment) = 0;
  virtual void on_init(uint64_t seed) = 0;
  virtual void on_restored(int64_t step, uint64_t seed,
                           const Shards& shards) = 0;
  // All workers have the state of a session.
  virtual void on_loaded(uint64_t session, size_t num_parts,
                         const Shards& shards) = 0;
  virtual void on_step(int64_t step, uint64_t seed, uint64_t value) = 0;
  virtual void on_snapshot(int64_t step, uint64_t seed,
                           const Shards& shards) = 0;
  virtual void on_saved(int64_t step) = 0;
  virtual void on_failed_save() = 0;
  // A session has ended, since it has lost a worker.
  virtual void on_loss() = 0;
};

// One process. Ends with its command, or is killed.
class TrainingMaster : public Process {
 public:
  // `process`: its number, which is not 0; it may have this many sessions.
  static constexpr uint64_t kMostSessions = 1000;
  TrainingMaster(World& world, Ledger& ledger, Disk& disk,
                 const TrainingPlan& plan, TrainingWatch& watch, size_t host,
                 uint64_t process, Duration clock_ahead);
  ~TrainingMaster() override;

  void start();
  // The process has been killed.
  void on_killed();
  // Runs what need not wait any more. Called after each event.
  void poll();
  // What the command returned; nothing while it runs.
  const std::optional<Status>& result() const { return result_; }
  size_t host() const { return host_; }
  uint64_t process() const { return process_; }

  void on_message(LinkId link, Message message) override;
  void on_closed(LinkId link) override;

 private:
  class Run;
  struct Task {
    std::unique_ptr<Fiber> fiber;  // null when it is over
    std::function<bool()> is_ready;
  };

  Status attempt();
  // Of fibers: wait until this holds, or for this time.
  void wait(std::function<bool()> is_ready);
  void pass(Duration time);
  // Starts a fiber beside the others.
  void spawn(std::function<void()> body);

  World& world_;
  Ledger& ledger_;
  Disk& disk_;
  const TrainingPlan& plan_;
  TrainingWatch& watch_;
  const size_t host_;
  const uint64_t process_;
  const Duration clock_ahead_;
  std::vector<std::unique_ptr<Master>> sessions_;  // the last one is in use
  bool has_session_ = false;
  std::vector<std::unique_ptr<Run>> runs_;  // of these sessions
  std::deque<Task> tasks_;
  size_t running_ = 0;  // of the tasks
  std::optional<Status> result_;
};

}  // namespace tagflow::net::simulated
