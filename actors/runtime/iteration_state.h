// IterationState: the state of a running iteration. It is layer two, between
// the static plan and the actors: flat arrays that plan indices address.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "actors/plan/plan.h"

namespace tagflow::actors {

// One per iteration actor, reused for every iteration that the actor runs.
//
// The pending word of a node counts the inputs that it still waits for; its
// upper bits are flags. A Merge waits for its control inputs and for *one*
// further token: its first live input, or the last dead one if none is live.
//
// Invariants:
//   1. A node is pushed to the ready stack once: when its count reaches zero.
//   2. Words and merge records keep their flags until the next start(), so that
//      a diagnosis of a finished iteration can find out why a node is dead.
//      Only kAsked is cleared, by the answer.
class IterationState {
 public:
  static constexpr uint32_t kDead = 1u << 31;   // an input is dead
  static constexpr uint32_t kLive = 1u << 30;   // Merge: has its live input
  static constexpr uint32_t kFired = 1u << 29;  // ran, or was skipped
  // Switch: its true side. Recv: its token has come.
  static constexpr uint32_t kTaken = 1u << 28;
  static constexpr uint32_t kAsked = 1u << 27;  // runs elsewhere, unanswered
  static constexpr uint32_t kCount = kAsked - 1;

  struct MergeRecord {
    uint32_t left = 0;   // data inputs that may still arrive
    int32_t index = -1;  // of the live input
  };

  explicit IterationState(const FramePlan& plan)
      : plan_(plan),
        slots_(plan.num_slots),
        words_(2 * plan.nodes.size() + StartState::kBlock),
        merges_(plan.num_merges),
        pending_(words_.data()),
        ready_(pending_ + plan.nodes.size()),
        ready_end_(ready_) {
    for (const ConstantSlot& constant : plan.constants)
      slots_[constant.slot] = constant.value;
  }
  IterationState(const IterationState&) = delete;
  IterationState& operator=(const IterationState&) = delete;

  void start(const StartState& from) {
    constexpr size_t kBlock = StartState::kBlock;
    const uint32_t* word = from.words.data();
    const uint32_t* const end = word + from.words.size();
    for (uint32_t* to = pending_; word != end; word += kBlock, to += kBlock)
      std::memcpy(to, word, kBlock * sizeof(uint32_t));
    ready_end_ = ready_ + from.num_ready;
    for (size_t i = 0; i < merges_.size(); ++i)
      merges_[i] = {from.merge_inputs[i], -1};
  }

  bool has_ready() const { return ready_end_ != ready_; }
  uint32_t pop_ready() { return *--ready_end_; }
  std::span<const uint32_t> ready() const { return {ready_, ready_end_}; }

  Tensor& slot(uint32_t index) { return slots_[index]; }
  const Tensor& slot(uint32_t index) const { return slots_[index]; }
  Tensor* slots() { return slots_.data(); }
  uint32_t& pending(uint32_t node) { return pending_[node]; }
  uint32_t pending(uint32_t node) const { return pending_[node]; }
  MergeRecord& merge(uint32_t ordinal) { return merges_[ordinal]; }
  const MergeRecord& merge(uint32_t ordinal) const { return merges_[ordinal]; }

  // Many arrivals in a row, with their pointers in registers. Nothing else may
  // arrive while it exists.
  class Arrivals {
   public:
    explicit Arrivals(IterationState& state)
        : state_(state),
          slots_(state.slots_.data()),
          pending_(state.pending_),
          ready_end_(state.ready_end_) {}
    Arrivals(const Arrivals&) = delete;
    Arrivals& operator=(const Arrivals&) = delete;
    ~Arrivals() { state_.ready_end_ = ready_end_; }
    void add(uint32_t node) { arrive(pending_, node, ready_end_); }
    void add(uint32_t node, uint32_t slot, const Tensor& value) {
      slots_[slot] = value;
      add(node);
    }

   private:
    IterationState& state_;
    Tensor* const slots_;
    uint32_t* const pending_;
    uint32_t* ready_end_;
  };

  // One of the inputs that `node` waits for has arrived.
  void arrive(uint32_t node) { arrive(pending_, node, ready_end_); }
  void arrive_dead(uint32_t node) {
    pending_[node] |= kDead;
    arrive(node);
  }
  // The first live input wins; later ones are dropped.
  void merge_live(uint32_t node, uint32_t input, Tensor&& value) {
    if (pending_[node] & (kLive | kFired)) {
      value.reset();
      return;
    }
    const NodeItem& item = plan_.nodes[node];
    slots_[item.first_slot] = std::move(value);
    merges_[item.ordinal].index = int32_t(input);
    pending_[node] |= kLive;
    arrive(node);
  }
  void merge_dead(uint32_t node) {
    MergeRecord& record = merges_[plan_.nodes[node].ordinal];
    if (--record.left > 0 || (pending_[node] & kLive)) return;
    arrive_dead(node);
  }

  // Clears all words: nothing has happened yet.
  void forget() { std::fill(words_.begin(), words_.end(), 0); }
  // Releases all tensors except the plan's constants.
  void release_values() {
    for (size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].buffer() != nullptr && plan_.sticky[i] != kPlanConstant)
        slots_[i] = Tensor();
  }

 private:
  static void arrive(uint32_t* pending, uint32_t node, uint32_t*& ready_end) {
    if ((--pending[node] & kCount) == 0) *ready_end++ = node;
  }

  const FramePlan& plan_;
  std::vector<Tensor> slots_;
  std::vector<uint32_t> words_;  // as in StartState
  std::vector<MergeRecord> merges_;
  uint32_t* const pending_;  // into words_
  uint32_t* const ready_;    // a stack, above them
  uint32_t* ready_end_;
};

}  // namespace tagflow::actors
