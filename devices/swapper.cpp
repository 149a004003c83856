#include "devices/swapper.h"

#include <algorithm>
#include <utility>

#include "devices/device.h"
#include "devices/memory_ledger.h"
#include "graph/fault.h"

namespace tagflow::devices {

// Note [Moves]
// Copies use the accelerator's copy streams, kMovesAtOnce in each direction, so
// that other copies do not wait for long. The copy on the host is kept until
// the value is popped, so the value can leave again without a copy. A value
// leaves only if nobody but its stack holds it: otherwise nothing would be
// freed.
//
// Invariants:
//   1. A value that is kept is here, on the host, or both.
//   2. The accelerator is not called, and memory is not freed, with the mutex
//      held.
//   3. Threads that copy to the host never wait for memory; threads that copy
//      from it wait only for these; threads that run kernels wait for both:
//      this excludes deadlocks.
//   4. A value that was given up is in no set. So a thread that finds a value
//      in a set may take a reference to it: its owner has one.

namespace {

// Fractions of the memory. Between the two nothing moves, so that the temporary
// memory of a kernel moves nothing back and forth.
constexpr double kSwapAbove = 12.0 / 16;
constexpr double kRefillBelow = 11.0 / 16;
constexpr int kMovesAtOnce = 2;
// The number of values that are checked at a time whether they may leave.
constexpr size_t kMostLookedAt = 32;

thread_local Swapper::Waits thread_waits = Swapper::Waits::kNever;

}  // namespace

uint64_t Swapper::NumberOf::operator()(const SavedTensor& saved) const {
  return saved.number_;
}

const Buffer* Swapper::BufferOf::operator()(const SavedTensor& saved) const {
  return saved.here_.buffer();
}

Swapper::Swapper(Accelerator& accelerator, const MemoryLedger& memory,
                 int64_t limit)
    : accelerator_(accelerator), memory_(memory), limit_(limit) {}

void Swapper::set_thread_waits(Waits waits) { thread_waits = waits; }

void Swapper::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void Swapper::add_to(MemoryStats& stats) const {
  const std::lock_guard lock(mutex_);
  stats.swapped_out = swapped_out_;
  stats.swapped_in = swapped_in_;
  stats.host_is_short = host_is_short_;
}

// Whether it has an owner and was not taken. REQUIRES: mutex_ is held.
bool Swapper::is_kept(const SavedTensor& saved) {
  return saved.SavedHook<SavedByNumber>::is_linked();
}

// --- Adding and removing values ----------------------------------------------

SavedTensor* Swapper::find(const Tensor& value) {
  const auto at = buffers_.find(value.buffer());
  if (at == buffers_.end() || at->here_.dtype() != value.dtype() ||
      at->here_.shape() != value.shape())
    return nullptr;
  return &*at;
}

// If two values share a buffer, with different shapes, one is found by it.
void Swapper::add_here(SavedTensor& saved) {
  here_.insert(here_.end(), saved);  // usually the newest
  buffers_.insert(saved);
}

Tensor Swapper::remove_here(SavedTensor& saved) {
  here_.erase(here_.iterator_to(saved));
  if (saved.SavedHook<SavedByBuffer>::is_linked())
    buffers_.erase(buffers_.iterator_to(saved));
  return std::move(saved.here_);
}

SavedOwner Swapper::keep(Tensor value, uint64_t step) {
  SavedOwner owner;
  {
    const std::lock_guard lock(mutex_);
    if (SavedTensor* const known = find(value)) {
      here_.erase(here_.iterator_to(*known));
      known->number_ = ++pushed_;
      here_.insert(here_.end(), *known);
      ++known->owners_;
      known->add_ref();
      owner.reset(known);
    }
  }
  if (owner == nullptr) {
    auto* const made =
        new SavedTensor(shared_from_this(), std::move(value), step);
    made->add_ref();
    owner.reset(made);
    const std::lock_guard lock(mutex_);
    made->number_ = ++pushed_;
    add_here(*made);
  }
  balance();
  return owner;
}

void Swapper::note_popped(SavedTensor& saved) {
  last_popped_ = looked_at_ = saved.number_;
  saved.is_wanted_ = false;
  refill_failed_ = false;
}

Tensor Swapper::read(SavedTensor& saved) {
  Tensor value;
  {
    const std::lock_guard lock(mutex_);
    value = saved.here_.valid() ? saved.here_ : saved.away_;
    note_popped(saved);
  }
  balance();
  return value;
}

// A move in progress finds the value gone.
Tensor Swapper::take(SavedTensor& saved) {
  Tensor value, copy;
  {
    const std::lock_guard lock(mutex_);
    note_popped(saved);
    if (saved.owners_ > 1) {
      value = saved.here_.valid() ? saved.here_ : saved.away_;
    } else if (saved.here_.valid()) {
      value = remove_here(saved);
      copy = std::move(saved.away_);
    } else {
      away_.erase(away_.iterator_to(saved));
      value = std::move(saved.away_);
    }
  }
  balance();
  return value;
}

// A value that was given up is in no set, where others could find it.
void Swapper::forget(SavedTensor& saved) {
  Tensor here, away;
  const std::lock_guard lock(mutex_);
  if (--saved.owners_ > 0 || !is_kept(saved)) return;
  if (saved.here_.valid()) {
    here = remove_here(saved);
  } else {
    away_.erase(away_.iterator_to(saved));
  }
  away = std::move(saved.away_);
}

void Swapper::fetch(SavedTensor& saved, SavedTensor::Fetched done) {
  Step step;
  bool is_away = false;
  {
    const std::lock_guard lock(mutex_);
    saved.is_wanted_ = true;
    is_away = is_kept(saved) && !saved.here_.valid() && !closed_;
    if (is_away) {
      saved.waiting_.push_back(std::move(done));
      if (saved.moves_ == SavedTensor::Moves::kNot) step = begin_to_come(saved);
    }
  }
  is_away ? carry_out(std::move(step)) : done();
}

// --- Choosing values to move ------------------------------------------------

bool Swapper::can_leave(const SavedTensor& saved) const {
  return saved.moves_ == SavedTensor::Moves::kNot && !saved.is_wanted_ &&
         saved.refused_after_ != num_left_ && saved.here_.unique();
}

Swapper::Step Swapper::next_to_leave(size_t most_looked_at) {
  if (closed_) return {};
  auto at = here_.upper_bound(looked_at_);
  for (size_t left = std::min(most_looked_at, here_.size()); left > 0; --left) {
    if (at == here_.end()) at = here_.begin();
    SavedTensor& saved = *at++;
    looked_at_ = saved.number_;
    if (!can_leave(saved)) continue;
    Step step{Step::Kind::kLeave, Ref(&saved), saved.here_};
    if (saved.away_.valid()) {
      step.kind = Step::Kind::kDrop;
      step.tensor = remove_here(saved);
      away_.insert(saved);
    } else {
      saved.moves_ = SavedTensor::Moves::kLeaving;
      ++num_leaving_;
      leaving_ += saved.bytes_;
    }
    return step;
  }
  return {};
}

Swapper::Step Swapper::next_to_come() {
  if (closed_ || refill_failed_ || num_coming_ >= kMovesAtOnce) return {};
  auto at = away_.lower_bound(last_popped_);
  while (at != away_.begin()) {
    SavedTensor& saved = *--at;
    if (saved.moves_ != SavedTensor::Moves::kNot) continue;
    const int64_t then = memory_.in_use() + coming_ + saved.bytes_;
    if (double(then) > kRefillBelow * double(limit_)) return {};
    return begin_to_come(saved);
  }
  return {};
}

Swapper::Step Swapper::begin_to_come(SavedTensor& saved) {
  saved.moves_ = SavedTensor::Moves::kComing;
  ++num_coming_;
  coming_ += saved.bytes_;
  return {Step::Kind::kCome, Ref(&saved), saved.away_};
}

// Only one thread does it at a time: a step that leads to another one at once
// does not recurse.
void Swapper::balance() {
  std::unique_lock lock(mutex_);
  look_again_ = true;
  if (balancing_) return;
  balancing_ = true;
  while (std::exchange(look_again_, false)) {
    Step step;
    const int64_t staying = memory_.in_use() - leaving_;
    const bool is_full = double(staying) > kSwapAbove * double(limit_);
    if (!closed_ && is_full && num_leaving_ < kMovesAtOnce)
      step = next_to_leave(kMostLookedAt);
    if (step.kind == Step::Kind::kNothing) step = next_to_come();
    if (step.kind == Step::Kind::kNothing) continue;
    look_again_ = true;
    lock.unlock();
    carry_out(std::move(step));
    lock.lock();
  }
  balancing_ = false;
}

bool Swapper::make_room(size_t bytes) {
  if (int64_t(bytes) > limit_ || thread_waits == Waits::kNever) return false;
  std::unique_lock lock(mutex_);
  for (;;) {
    const uint64_t events = events_, freed = freed_;
    while (leaving_ < int64_t(bytes)) {
      Step step = next_to_leave(here_.size());
      if (step.kind == Step::Kind::kNothing) break;
      lock.unlock();
      carry_out(std::move(step));
      lock.lock();
      if (freed_ != freed) return true;
    }
    const bool waits =
        num_leaving_ > 0 || (thread_waits == Waits::kForAll && num_coming_ > 0);
    if (events_ == events && !waits) return false;
    changed_.wait(lock, [&] { return events_ != events; });
    if (freed_ != freed) return true;
  }
}

// --- Moves ------------------------------------------------------------------

void Swapper::carry_out(Step step) {
  if (step.kind == Step::Kind::kNothing) return;
  if (step.kind == Step::Kind::kDrop) {
    step.tensor.reset();
    return note_event(true);
  }
  SavedTensor& saved = *step.saved;
  const bool leaves = step.kind == Step::Kind::kLeave;
  Status begun = guarded("swap", [&] {
    auto done = [saved = step.saved, leaves](Result<Tensor> copy) {
      Swapper& swapper = *saved->swapper_;
      leaves ? swapper.has_left(*saved, std::move(copy))
             : swapper.has_come(*saved, std::move(copy));
    };
    leaves ? accelerator_.copy_to_host(std::move(step.tensor), std::move(done),
                                       saved.step_)
           : accelerator_.copy_from_host(std::move(step.tensor),
                                         std::move(done), saved.step_);
  });
  if (begun.ok()) return;
  leaves ? has_left(saved, std::move(begun))
         : has_come(saved, std::move(begun));
}

// The memory is freed before the waiting threads check.
void Swapper::note_event(bool freed) {
  {
    const std::lock_guard lock(mutex_);
    ++events_;
    if (freed) ++freed_;
  }
  changed_.notify_all();
}

void Swapper::has_left(SavedTensor& saved, Result<Tensor> copy) {
  Tensor gone;
  {
    const std::lock_guard lock(mutex_);
    if (saved.moves_ != SavedTensor::Moves::kLeaving) return;
    saved.moves_ = SavedTensor::Moves::kNot;
    --num_leaving_;
    leaving_ -= saved.bytes_;
    if (!copy.ok()) {
      saved.refused_after_ = num_left_;
      host_is_short_ =
          host_is_short_ || copy.status().code() == Code::kResourceExhausted;
    } else {
      swapped_out_ += saved.bytes_;
      ++num_left_;
      host_is_short_ = false;
      if (is_kept(saved)) saved.away_ = std::move(*copy);
      if (is_kept(saved) && !saved.is_wanted_) {
        gone = remove_here(saved);
        away_.insert(saved);
      }
    }
  }
  const bool freed = gone.valid();
  gone.reset();
  note_event(freed);
  balance();
}

void Swapper::has_come(SavedTensor& saved, Result<Tensor> copy) {
  std::vector<SavedTensor::Fetched> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (saved.moves_ != SavedTensor::Moves::kComing) return;
    saved.moves_ = SavedTensor::Moves::kNot;
    --num_coming_;
    coming_ -= saved.bytes_;
    waiting.swap(saved.waiting_);
    if (!copy.ok()) {
      refill_failed_ = true;
    } else {
      swapped_in_ += saved.bytes_;
      if (is_kept(saved)) {
        away_.erase(away_.iterator_to(saved));
        saved.here_ = std::move(*copy);
        add_here(saved);
      }
    }
  }
  note_event(false);
  for (const SavedTensor::Fetched& done : waiting) done();
  balance();
}

}  // namespace tagflow::devices
