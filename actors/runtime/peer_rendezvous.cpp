#include "actors/runtime/peer_rendezvous.h"

#include <caf/actor_system.hpp>
#include <utility>

#include "actors/runtime/rendezvous.h"
#include "actors/runtime/runner.h"
#include "actors/runtime/step.h"

namespace tagflow::actors {

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
    if (!step.cancelled()) exchange(*batch, runner);
    LocalRendezvous::on_batch(batch, runner);
  }

 private:
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
    port_->flush();
    for (TransferAnswers::Answer& given : answers_.answers_)
      answer({given.end.iteration, given.end.node}, given.is_dead,
             std::move(given.value), *batch.step);
    answers_.answers_.clear();
    post_answers(runner);
  }

  BatchStore& store_;
  const std::unique_ptr<PeerPort> port_;
  TransferAnswers answers_;  // of the batch in hand
};

void TransferAnswers::post(Step& step, BatchStore& store) {
  for (Answer& answer : answers_) {
    Batch* const batch = store.make();
    batch->kind = BatchKind::kReceived;
    batch->step = &step;
    batch->receiver = answer.end.iteration;
    batch->tokens.add(answer.end.node, answer.is_dead).value.take(answer.value);
    step.add_activity();
    answer.end.iteration->accept(batch);
  }
  answers_.clear();
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
