// A rendezvous for stress tests: what partitions exchange arrives late, and in
// another order than it was sent.
#pragma once

#include <caf/actor_system.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime/engine.h"
#include "actors/runtime/rendezvous.h"

namespace tagflow::actors {

// Sends about half of the tokens and requests of each batch to itself once
// more, behind what waits already. A seeded coin decides.
class DelayingRendezvous : public LocalRendezvous {
 public:
  using LocalRendezvous::LocalRendezvous;

 protected:
  void on_batch(Batch* batch, Runner& runner) override {
    if (batch->kind == BatchKind::kTransfers) delay_some(*batch, runner);
    LocalRendezvous::on_batch(batch, runner);
  }

 private:
  void delay_some(Batch& batch, Runner& runner) {
    Batch* later = nullptr;
    size_t kept = 0;
    for (Token& token : batch.tokens) {
      if (coin()) {
        Token& place = batch.tokens.begin()[kept++];
        if (&place != &token) place = std::move(token);
        continue;
      }
      if (later == nullptr) {
        later = pool().take(BatchKind::kTransfers);
        later->step = batch.step;
        later->sender = batch.sender;
        later->tag = batch.tag;
      }
      Token& delayed = later->tokens.add(token.slot, token.is_dead);
      delayed.waiter = token.waiter;
      delayed.value.take(token.value);
    }
    batch.tokens.truncate(kept);
    if (later != nullptr) runner.post_later(this, later);
  }

  bool coin() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return (random_ >> 33) % 2 == 0;
  }

  uint64_t random_ = 1;
};

inline caf::actor spawn_delaying_rendezvous(
    caf::actor_system& system, HandOff policy,
    const std::vector<Transfer>& transfers, BatchStore* store) {
  return spawn_actor<DelayingRendezvous, caf::lazy_init>(
      system, policy, std::cref(transfers), store);
}

}  // namespace tagflow::actors
