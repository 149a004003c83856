#include "actors/runtime/rendezvous.h"

#include <algorithm>
#include <caf/actor_system.hpp>

#include "actors/runtime/step.h"

namespace tagflow::actors {

LocalRendezvous::LocalRendezvous(caf::actor_config& config, HandOff policy,
                                 const std::vector<Transfer>& transfers,
                                 BatchStore* store)
    : Rendezvous(config, policy, store),
      transfers_(transfers),
      slots_(transfers.size()) {}

size_t LocalRendezvous::KeyHash::operator()(const Key& key) const {
  // The frame's id is a hash already.
  uint64_t h = key.tag.frame_lo ^ (uint64_t(key.tag.iteration) << 32) ^
               uint64_t(key.transfer);
  h *= 0x9e3779b97f4a7c15u;
  return size_t(h ^ (h >> 32));
}

void LocalRendezvous::on_batch(Batch* batch, Runner& runner) {
  Step& step = *batch->step;
  if (!step.cancelled()) {
    if (batch->kind == BatchKind::kTransfers) {
      EngineActor* const sender = batch->sender;
      for (Token& token : batch->tokens) {
        const Key key{token.slot, batch->tag};
        if (token.waiter == Token::kNobody) {
          send(key, token, step);
        } else {
          receive(key, {sender, token.waiter}, step);
        }
      }
    }
    post_answers(runner);
  }
  pool().give(batch);
}

void LocalRendezvous::send(const Key& key, Token& token, Step& step) {
  Entry first;
  if (!take(key, first)) {
    Entry& entry = add(key);
    entry.is_dead = token.is_dead;
    entry.value.take(token.value);
  } else if (first.receiver.actor != nullptr) {
    answer(first.receiver, token.is_dead, std::move(token.value), step);
  } else {
    step.fail(error(Code::kAlreadyExists, "[rendezvous] {} was sent twice",
                    describe(key)));
  }
}

void LocalRendezvous::receive(const Key& key, const Receiver& receiver,
                              Step& step) {
  Entry first;
  if (!take(key, first)) {
    add(key).receiver = receiver;
  } else if (first.receiver.actor == nullptr) {
    answer(receiver, first.is_dead, std::move(first.value), step);
  } else {
    step.fail(error(Code::kAlreadyExists, "[rendezvous] {} is received twice",
                    describe(key)));
  }
}

bool LocalRendezvous::take(const Key& key, Entry& entry) {
  Slot& slot = slots_[key.transfer];
  if (slot.is_full && slot.tag == key.tag) [[likely]] {
    slot.is_full = false;
    --num_full_;
    entry = std::move(slot.entry);
    return true;
  }
  if (table_.empty()) return false;
  const auto it = table_.find(key);
  if (it == table_.end()) return false;
  entry = std::move(it->second);
  spare_.push_back(table_.extract(it));
  return true;
}

LocalRendezvous::Entry& LocalRendezvous::add(const Key& key) {
  Slot& slot = slots_[key.transfer];
  if (!slot.is_full) [[likely]] {
    slot.is_full = true;
    slot.tag = key.tag;
    ++num_full_;
    slot.entry.receiver.actor = nullptr;
    return slot.entry;
  }
  if (spare_.empty()) return table_[key];
  Table::node_type node = std::move(spare_.back());
  spare_.pop_back();
  node.key() = key;
  Entry& entry = table_.insert(std::move(node)).position->second;
  entry.receiver.actor = nullptr;
  return entry;
}

void LocalRendezvous::answer(const Receiver& receiver, bool is_dead,
                             Tensor&& value, Step& step) {
  const auto is_for = [&](const Batch* batch) {
    return batch->receiver == receiver.actor;
  };
  auto it = std::ranges::find_if(answers_, is_for);
  if (it == answers_.end()) {
    Batch* batch = pool().take(BatchKind::kReceived);
    batch->step = &step;
    batch->receiver = receiver.actor;
    it = answers_.insert(answers_.end(), batch);
  }
  (*it)->tokens.add(receiver.node, is_dead).value.take(value);
}

void LocalRendezvous::post_answers(Runner& runner) {
  for (Batch* batch : answers_) runner.post(batch->receiver, batch);
  answers_.clear();
}

std::string LocalRendezvous::describe(const Key& key) const {
  const std::string& name = transfers_[key.transfer].name;
  if (key.tag.frame_hi == 0 && key.tag.frame_lo == 0) return name;
  return fmt::format("{}, iteration {} of frame instance {:016x}{:016x}", name,
                     key.tag.iteration, key.tag.frame_hi, key.tag.frame_lo);
}

void LocalRendezvous::reset() {
  if (std::exchange(num_full_, 0) > 0)
    for (Slot& slot : slots_) {
      slot.is_full = false;
      slot.entry.value.reset();
    }
  if (!table_.empty()) table_.clear();
  // Of a step that was cancelled in the middle of a batch.
  for (Batch* batch : answers_) pool().give(batch);
  answers_.clear();
}

caf::actor spawn_local_rendezvous(caf::actor_system& system, HandOff policy,
                                  const std::vector<Transfer>& transfers,
                                  BatchStore* store) {
  return spawn_actor<LocalRendezvous, caf::lazy_init>(
      system, policy, std::cref(transfers), store);
}

}  // namespace tagflow::actors
