// Service: one incarnation of a worker, from its first connection to the loss
// of its master.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/runtime/device_set.h"
#include "actors/runtime/hold.h"
#include "actors/session/executable.h"
#include "actors/shared_state.h"
#include "net/control/control.h"
#include "net/link/listener.h"
#include "net/protocol/deadlock.h"
#include "net/protocol/departure.h"
#include "net/transfer/channel.h"
#include "net/transfer/object_tensor.h"
#include "net/transfer/pairing.h"
#include "net/transfer/parts.h"
#include "net/transfer/peer_session.h"
#include "net/wire/view_messages.h"
#include "net/worker/executables.h"
#include "net/worker/register_inputs.h"
#include "net/worker/registration.h"
#include "net/worker/worker.h"

namespace tagflow::net {

// What it is called.
inline constexpr char kMaster[] = "the master";

// Three kinds of threads call it: those of the links; those of the engine, at
// the end of a step; and the one of run(), which does all that may take long.
// The links' threads wait for none of the others.
//
// Life: started; run(), until its master is lost or it is closed; gone.
class Service {
 public:
  // All outlive it. Errors of Listener::start().
  static Result<std::unique_ptr<Service>> start(
      const WorkerOptions& options, const IoThreads& threads,
      std::shared_ptr<actors::DeviceSet> devices, Control& control,
      StepCounts& counts, uint16_t port);
  // Waits until the steps are at rest. REQUIRES: run() has returned.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  uint16_t port() const { return listener_->port(); }
  uint64_t incarnation() const { return identity_.incarnation; }
  // Returns why it ended.
  Status run();
  // Ends run(). Thread-safe.
  void close(Status reason);
  // Ends run() when the steps are over: see Note [Departure]. Takes no master
  // any more. Thread-safe.
  void drain();
  // Without what is the process's. Thread-safe.
  Load load();
  // Adds the links, the master and the executables. Thread-safe.
  void add_to(WorkerFigures& figures);

 private:
  // A step that runs here.
  struct Running {
    std::shared_ptr<actors::Step> step;  // null: its feeds are on their way
    Status cause;                        // why it was aborted meanwhile
    QuietPart quiet;
    bool is_stalled = false;             // as the master was told
    std::shared_ptr<actors::Hold> hold;  // null: nobody looks at it
  };
  class FailureHook;
  using PeerId = std::pair<std::string, uint64_t>;  // task, incarnation

  Service(const WorkerOptions& options, const IoThreads& threads,
          std::shared_ptr<actors::DeviceSet> devices, Control& control,
          StepCounts& counts);

  // ResourceExhausted if the master has asked for too much.
  Status post(std::function<void()> job);
  // Those that are not lost. REQUIRES: the lock is held
  std::vector<LinkFigures> links() const;

  // Connections, on the thread of the listener.
  Status admit(const Greeting& peer);
  void on_connection(Connection connection);
  void adopt_master(Pairing::Pair pair);
  void adopt_peer(Pairing::Pair pair);

  // What the master's links bring.
  Status on_frame(const Frame& frame);
  Result<BulkLink::Destination> on_begin(const Begin& begin);
  void on_end(ObjectId object, const Status& status);
  Status on_run(Run run);
  void on_abort(const Abort& abort);
  void on_ask(const Ask& ask);
  Status on_release(const Release& release);
  Status on_look(const Look& look);
  Status on_steer(Steer steer);
  std::shared_ptr<actors::Hold> hold_of(uint64_t step);
  Status on_reset(Reset reset);
  Status on_agreed();

  void start_step(const Run& run,
                  Result<std::vector<std::pair<uint32_t, Tensor>>> feeds);
  Status try_start_step(const Run& run,
                        std::vector<std::pair<uint32_t, Tensor>> feeds);
  // A wait of the step has ended, while nothing of it ran.
  void resume_step(uint64_t step);
  void tell_of_failure(uint64_t step, const Status& cause) const;
  // The step has its first error.
  void fail_step(uint64_t step, const Status& status);
  // What the Done of a step has besides its outcome.
  struct Findings {
    actors::RunStats stats;
    std::span<const std::string> fetches;  // their names
    std::optional<Tensor> trace;           // its bytes
  };
  // The step is over, or could not be started: sends its Done.
  void end_step(uint64_t step, actors::Step::Answer answer,
                const Findings& findings, bool has_committed);
  Status send_done(const WorkerSteps::TellDone& tell, MessageCounts counts,
                   const actors::Step::Answer& answer,
                   const Findings& findings);
  // Looks whether the part is quiet. REQUIRES for these two: the lock is held
  Report look(uint64_t step, Running& running);
  // So that what is told later is sent later.
  void send_report(const Report& report, Running& running);

  // On the thread of run().
  // Reports parts that have been quiet for long. REQUIRES: the lock is held
  void look_at_steps();
  void take_register(std::string_view bytes);
  void take_reset(const Reset& reset);
  Result<std::shared_ptr<Registered>> make(const Register& registration,
                                           graph::Budget& budget);
  // The last one with a peer; null if it is lost. While somebody has it, only
  // the end of the service drops it. REQUIRES: the lock is held
  std::shared_ptr<PeerSession> session_with(const PeerId& id);
  // The sessions with all peers, which are made if they are not there.
  Result<std::vector<std::shared_ptr<PeerSession>>> sessions_of(
      const Register& registration, graph::Budget& budget);
  // Destroys sessions that are lost, and that no executable names. REQUIRES:
  // the lock is held, which it gives up meanwhile
  void drop_lost_sessions(std::unique_lock<std::mutex>& lock);

  const WorkerOptions& options_;
  const IoThreads& threads_;
  const std::shared_ptr<actors::DeviceSet> devices_;
  Control& control_;
  StepCounts& counts_;
  actors::SharedState state_;
  Registrar registrar_;  // of the thread of run()
  Identity identity_;
  Parts parts_;
  TensorInputs feeds_;
  RegisterInputs registers_;
  Executables executables_;

  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  bool is_closed_ = false;
  Departure departure_;
  Status reason_;  // of the end of run()
  std::deque<std::function<void()>> jobs_;
  size_t num_resets_ = 0;  // of them
  Pairing pairing_;
  std::map<uint64_t, Running> running_;  // by step
  uint64_t num_finished_ = 0;            // steps
  bool is_looking_ = false;              // run() looks at steps now and then
  // Those that were lost stay as long as executables name them: then `use` has
  // other owners.
  struct Session {
    std::unique_ptr<PeerSession> session;
    std::shared_ptr<const void> use = std::make_shared<char>();
  };
  using Sessions = std::map<PeerId, std::list<Session>>;
  Sessions sessions_;      // none is empty
  bool has_lost_ = false;  // maybe: one that can be dropped
  // Set once. Destroyed, with the sessions, before what their handlers use.
  std::unique_ptr<Channel> master_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace tagflow::net
