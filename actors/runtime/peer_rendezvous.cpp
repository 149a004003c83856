#include "actors/runtime/peer_rendezvous.h"

#include <caf/actor_system.hpp>
#include <chrono>
#include <utility>

#include "actors/runtime/rendezvous.h"
#include "actors/runtime/runner.h"
#include "actors/runtime/step.h"

namespace tagflow::actors {
namespace {

// How long a lent thread runs actors before it leaves them to the workers.
constexpr std::chrono::microseconds kLentQuantum{200};

}  // namespace

class PeerRendezvous final : public LocalRendezvous {
 public:
  PeerRendezvous(caf::actor_config& config, HandOff policy,
                 const std::vector<Transfer>& transfers, BatchStore* store,
                 std::unique_ptr<PeerPort> port)
      : LocalRendezvous(config, policy, transfers, store),
        store_(*store),
        port_(std::move(port)) {}

  void begin(Step& step) override { port_->begin(step, store_); }
  void reset() override {
    port_->end();
    LocalRendezvous::reset();
  }

 protected:
  void on_batch(Batch* batch, Runner& runner) override {
    Step& step = *batch->step;
    if (batch == &flush_) {
      is_flush_posted_ = false;
      if (!step.cancelled()) port_->flush();
      return;
    }
    if (!step.cancelled()) exchange(*batch, runner);
    LocalRendezvous::on_batch(batch, runner);
  }

 private:
  // Tokens leave when nothing else is left to do on this thread: then those of
  // many iterations are one message.
  void post_flush(Step& step, Runner& runner) {
    if (std::exchange(is_flush_posted_, true)) return;
    flush_.step = &step;
    runner.post_later(this, &flush_);
  }

  // Leaves the tokens in the batch whose ends are both here.
  void exchange(Batch& batch, Runner& runner) {
    size_t kept = 0;
    for (Token& token : batch.tokens) {
      const Transfer::Ends ends = transfer(token.slot).ends;
      const TransferEnd end{batch.sender, token.waiter};
      if (ends == Transfer::Ends::kSend) {
        port_->send(token.slot, batch.tag, token.is_dead,
                    std::move(token.value), end, answers_);
      } else if (ends == Transfer::Ends::kRecv) {
        port_->receive(token.slot, batch.tag, end, answers_);
      } else {
        Token& place = batch.tokens.begin()[kept++];
        if (&place != &token) place = std::move(token);
      }
    }
    batch.tokens.truncate(kept);
    post_flush(*batch.step, runner);
    for (TransferAnswers::Answer& given : answers_.answers_)
      answer({given.end.iteration, given.end.node}, given.is_dead,
             std::move(given.value), *batch.step);
    answers_.answers_.clear();
    post_answers(runner);
  }

  BatchStore& store_;
  const std::unique_ptr<PeerPort> port_;
  TransferAnswers answers_;  // of the batch in hand
  Batch flush_;
  bool is_flush_posted_ = false;
};

// The first one last, since a runner takes the newest batch first.
Batch* TransferAnswers::take_batches(Step& step, BatchStore& store) {
  Batch* newest = nullptr;
  for (Answer& answer : answers_) {
    if (newest == nullptr || newest->receiver != answer.end.iteration) {
      Batch* const batch = store.make();
      batch->kind = BatchKind::kReceived;
      batch->step = &step;
      batch->receiver = answer.end.iteration;
      batch->next = std::exchange(newest, batch);
    }
    newest->tokens.add(answer.end.node, answer.is_dead)
        .value.take(answer.value);
  }
  answers_.clear();
  return newest;
}

void TransferAnswers::post(Step& step, BatchStore& store) {
  Batch* next = take_batches(step, store);
  while (next != nullptr) {
    Batch* const batch = std::exchange(next, next->next);
    step.add_activity();
    batch->receiver->accept(batch);
  }
}

void TransferAnswers::run(Step& step, BatchStore& store) {
  if (answers_.empty()) return;
  const Engine::Lent lent(Engine::Lender::kCaller);
  const HandOff policy = answers_.front().end.iteration->policy();
  Batch* next = take_batches(step, store);
  Runner runner(nullptr, policy, kLentQuantum, step.info.step_id);
  while (next != nullptr) {
    Batch* const batch = std::exchange(next, next->next);
    step.add_activity();
    runner.post_counted(batch->receiver, batch);
  }
  runner.drain();
}

SpawnRendezvous spawn_with_port(MakePort make_port) {
  return [make_port = std::move(make_port)](
             caf::actor_system& system, HandOff policy,
             const std::vector<Transfer>& transfers, BatchStore* store) {
    return spawn_actor<PeerRendezvous, caf::lazy_init>(
        system, policy, std::cref(transfers), store, make_port(transfers));
  };
}

}  // namespace tagflow::actors
