// Worker: the machines of a worker, and a toy engine for scripts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/protocol/departure.h"
#include "net/protocol/membership.h"
#include "net/protocol/transfers.h"
#include "net/protocol/window.h"
#include "net/protocol/worker_steps.h"
#include "tests/net/protocol/sim_ledger.h"
#include "tests/net/protocol/sim_world.h"

namespace tagflow::net::simulated {

// The sizes of all windows of a world.
struct Sizes {
  uint64_t window = 0;
  uint64_t small_token = 0;
};

class Worker : public Process {
 public:
  Worker(World& world, Ledger& ledger, TaskIndex task, size_t master,
         Sizes sizes);

  // Where it looks for a master, too.
  void set_other_master(size_t host) { masters_.push_back(host); }
  // What it has of a training, and for which master.
  const Shards& shards() const { return reign_->shards; }
  uint64_t session() const { return reign_->session; }

  // A process starts at the host of this index.
  void start();
  // Leaves its master: calls `on_left` when the process is to end.
  void drain(std::function<void()> on_left);
  // Whether on_left was called, of the process that runs.
  bool has_left() const { return has_left_; }

  void on_message(LinkId link, Message message) override;
  void on_closed(LinkId link) override;

  // What is left when nothing happens any more: empty if nothing is.
  std::string leftovers() const;
  // Of both ends of the direction to a peer, if both have the session.
  static std::string balance(const Worker& from, const Worker& to);

 private:
  // A session with a peer.
  struct Session {
    LinkId link = 0;
    TaskIndex task{};
    SendWindow send;
    ReceiveWindow receive;
    Life life;
    bool is_up = false;
  };
  // A token that came inline, and the link on which its credit returns.
  struct Arrived {
    Token token;
    Incarnation peer{};
    LinkId link = 0;
  };
  struct Held {
    Token token;
    size_t lane = 0;
  };
  struct Unsent {
    StepId step{};
    TransferKey key;
    Held held;
  };
  struct Kept {
    TransferKey key;
    std::optional<Arrived> arrived;  // else it is announced
  };
  struct Lane {
    enum class State : uint8_t {
      kBusy,
      kQueued,  // waits for a queue
      kWaits,   // for a token
      kHolds,   // for a held Send
      kOver,
    };
    State state = State::kBusy;
    size_t at = 0;
    int64_t iteration = 0;
    bool flag = false;
    size_t num_held = 0;
    uint64_t value = 0;
  };
  // The local step.
  struct Local {
    Run run;
    std::vector<Lane> lanes;
    Inbox<Arrived, size_t> inbox;
    Outbox<Held> outbox;
    MessageCounts counts;
    QuietPart quiet;
    size_t num_commits = 0;  // in the gate
    size_t num_unsent = 0;
    bool has_committed = false;
    bool is_over = false;
    Status error;
    Shards fetched;

    const Part& part() const { return run.script->parts[run.index]; }
  };
  using LocalPtr = std::shared_ptr<Local>;
  // All that ends with an incarnation.
  struct Reign {
    Incarnation incarnation{};
    LinkId master = 0;
    WorkerSteps steps;
    std::map<StepId, LocalPtr> locals;
    std::map<StepId, std::vector<Kept>> kept;
    std::map<StepId, Run> runs;  // that Start is to take
    // By the incarnation of the peer: a hello that comes late, of one that is
    // gone, does not end the session with the one that has followed it.
    std::map<Incarnation, Session> sessions;
    std::map<Incarnation, std::vector<Unsent>> unsent;
    std::map<uint64_t, std::pair<StepId, TransferKey>> objects;  // pulled
    uint64_t last_object = 0;
    std::map<Incarnation, uint64_t> credit_of_old_session;
    Shards shards;         // of a training
    uint64_t session = 0;  // of the master, since its first Run
    LinkId old_master = 0;
  };
  using ReignPtr = std::shared_ptr<Reign>;

  // Membership.
  void leave_if_free();
  void tick();
  void arm();
  void perform(const Membership::Actions& actions);
  void clear(Incarnation incarnation, const Status& reason);

  // The master's messages, and what the machines want.
  void on_master(Message message);
  void on_run(Run run);
  void tell_master(const ReignPtr& reign, Message message);
  void perform(const ReignPtr& reign, const WorkerSteps::Actions& actions);
  void report(const ReignPtr& reign, const LocalPtr& local, uint32_t round);

  // Sessions.
  void need_session(const MasterStep::Part& peer);
  void on_peer_hello(LinkId link, const PeerHello& hello);
  void add_session(Incarnation peer, TaskIndex task, LinkId link, bool is_up);
  void on_session_up(Incarnation peer);
  void lose_session(Incarnation peer);
  void watch(Incarnation peer, LinkId link);
  void on_peer(Incarnation peer, Message message);
  void on_small_token(Incarnation peer, Session& session, SmallToken message);
  void on_announcement(const Announcement& message);
  void on_pull(Session& session, const Pull& pull);
  void on_object(const Object& object);
  void give_credit(Reign& reign, const Arrived& arrived);
  void check_memory(const Session& session);

  // The toy engine.
  void start_local(const ReignPtr& reign, StepId step);
  void fail_local(const ReignPtr& reign, const LocalPtr& local,
                  const Status& cause);
  void drop(Reign& reign, StepId step);
  void schedule(const ReignPtr& reign, const LocalPtr& local, size_t lane);
  void perform(const ReignPtr& reign, const LocalPtr& local, size_t lane);
  void advance(const ReignPtr& reign, const LocalPtr& local, size_t lane);
  void change(Reign& reign, Local& local, const Op& now, uint64_t& value);
  void commit(const ReignPtr& reign, const LocalPtr& local, size_t lane);
  void send(const ReignPtr& reign, const LocalPtr& local, size_t lane);
  bool transmit(Reign& reign, Local& local, Incarnation peer,
                const TransferKey& key, const Held& held);
  void unhold(const ReignPtr& reign, const LocalPtr& local, size_t lane);
  void receive(const ReignPtr& reign, const LocalPtr& local, size_t lane);
  void take(const ReignPtr& reign, const LocalPtr& local, size_t lane,
            const Token& token);
  void pull(Reign& reign, Local& local, const TransferKey& key, size_t lane);
  void accept(const ReignPtr& reign, const LocalPtr& local, Kept kept);
  void settle(const ReignPtr& reign, const LocalPtr& local);
  const Op& op(const Local& local, size_t lane) const;
  LocalPtr find(StepId step) const;
  bool check(const Status& status);

  World& world_;
  Ledger& ledger_;
  const TaskIndex task_;
  const size_t host_;
  std::vector<size_t> masters_;
  size_t num_joins_ = 0;
  const Sizes sizes_;
  std::optional<Membership> membership_;
  ReignPtr reign_;
  Incarnation first_incarnation_{};
  Time armed_ = kNever;
  Departure departure_;
  std::function<void()> on_left_;
  bool has_left_ = false;
};

}  // namespace tagflow::net::simulated
