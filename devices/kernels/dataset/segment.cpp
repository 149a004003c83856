#include "devices/kernels/dataset/segment.h"

#include <algorithm>

#include "devices/kernels/dataset/pipeline.h"
#include "graph/fault.h"

namespace tagflow::devices {

// --- Segments ---------------------------------------------------------------

Segment::Segment(std::shared_ptr<Pipeline> pipeline, StartStages start,
                 int depth)
    : pipeline_(std::move(pipeline)), start_(std::move(start)), depth_(depth) {}

Segment::~Segment() = default;

void Segment::wake() {
  int state = state_.load(std::memory_order_relaxed);
  for (;;) {
    if (state == kScheduled || state == kWoken) {
      // The fence of a failed exchange would not be enough: what the caller
      // wrote before must be seen by the work that is to come.
      if (state_.compare_exchange_weak(state, state, std::memory_order_acq_rel))
        return;
      continue;
    }
    const int wanted = state == kIdle ? kScheduled : kWoken;
    if (!state_.compare_exchange_weak(state, wanted, std::memory_order_acq_rel))
      continue;
    if (wanted == kScheduled && !post()) run();
    return;
  }
}

void Segment::stop() {
  stopped_.store(true, std::memory_order_release);
  wake();
}

bool Segment::post() noexcept {
  return guarded([this] {
           pipeline_->post([self = shared_from_this()] { self->run(); });
         })
      .ok();
}

void Segment::run() noexcept {
  for (;;) {
    state_.exchange(kRunning, std::memory_order_acq_rel);
    turns_ = 0;
    if (stopped_.load(std::memory_order_acquire))
      drop_stages();
    else if (Status thrown = guarded([this] { work(); }); !thrown.ok())
      fail(thrown);
    int state = kRunning;
    if (state_.compare_exchange_strong(state, kIdle, std::memory_order_acq_rel))
      return;
    // It was woken meanwhile. Others, who wait for a worker, go first.
    state_.store(kScheduled, std::memory_order_release);
    if (pipeline_->host() != nullptr && post()) return;
  }
}

void Segment::drop_stages() {
  root_ = nullptr;
  start_ = nullptr;
}

bool Segment::take_turn() {
  if (++turns_ < kTurns && !stopped_.load(std::memory_order_relaxed))
    return true;
  wake();
  return false;
}

Progress Segment::pull(Pull& pull) {
  if (is_over_) return Progress::kEnd;
  Progress progress = Progress::kWait;
  Status thrown = guarded([&] {
    if (root_ == nullptr) {
      Result<StagePtr> root = start_(*this);
      if (!root.ok()) {
        progress = pull.fail(std::move(root).status());
        return;
      }
      root_ = *std::move(root);
    }
    progress = root_->next(pull);
  });
  if (!thrown.ok()) progress = pull.fail(std::move(thrown));
  is_over_ = progress == Progress::kEnd;
  return progress;
}

// --- The root ---------------------------------------------------------------

void RootSegment::ask(std::shared_ptr<ElementRequest> request) {
  Status ended;
  {
    const std::lock_guard lock(mutex_);
    ended = ended_;
    if (ended.ok()) requests_.push_back(request);
  }
  if (ended.ok()) return wake();
  if (request->claim()) request->refuse(ended);
}

void RootSegment::end(const Status& reason) noexcept {
  std::deque<std::shared_ptr<ElementRequest>> refused;
  {
    const std::lock_guard lock(mutex_);
    if (ended_.ok()) ended_ = reason;
    refused.swap(requests_);
  }
  for (const auto& request : refused)
    if (request->claim()) request->refuse(reason);
  stop();
}

bool RootSegment::is_wanted() {
  std::deque<std::shared_ptr<ElementRequest>> gone;  // freed without the lock
  const std::lock_guard lock(mutex_);
  while (!requests_.empty() && !requests_.front()->is_open()) {
    gone.push_back(std::move(requests_.front()));
    requests_.pop_front();
  }
  return !requests_.empty();
}

std::shared_ptr<ElementRequest> RootSegment::take_request() {
  for (;;) {
    std::shared_ptr<ElementRequest> first;
    {
      const std::lock_guard lock(mutex_);
      if (requests_.empty()) return nullptr;
      first = std::move(requests_.front());
      requests_.pop_front();
    }
    if (first->claim()) return first;
  }
}

void RootSegment::work() {
  while (is_wanted()) {
    Progress progress = Progress::kWait;
    if (kept_progress_) {
      progress = *kept_progress_;
      kept_progress_.reset();
    } else {
      progress = pull(kept_);
    }
    if (progress == Progress::kWait) return;
    const bool is_end = progress == Progress::kEnd;
    bool is_taken = false;
    if (to_skip_ > 0 && !is_end) {
      --to_skip_;
      is_taken = true;
    }
    while (!is_taken) {
      const auto request = take_request();
      if (request == nullptr) break;
      // Before: whoever has the answer may save the position at once.
      if (!is_end) position_.fetch_add(1, std::memory_order_relaxed);
      is_taken = request->answer(progress, kept_);
      if (!is_taken && !is_end)
        position_.fetch_sub(1, std::memory_order_relaxed);
    }
    // The end is known for the next ones, too.
    if (!is_taken && !is_end) kept_progress_ = progress;
    if (is_taken) kept_ = {};
    if (!take_turn()) return;
  }
}

// --- Work ahead -------------------------------------------------------------

AheadSegment::AheadSegment(std::shared_ptr<Pipeline> pipeline,
                           StartStages start, size_t capacity,
                           Segment& consumer)
    : Segment(std::move(pipeline), std::move(start), consumer.depth()),
      capacity_(std::max<size_t>(capacity, 1)),
      consumer_(consumer.weak_from_this()) {}

bool AheadSegment::is_full() {
  const std::lock_guard lock(mutex_);
  return has_ended_ || ready_.size() >= capacity_;
}

void AheadSegment::put(Answer answer) {
  bool is_waiting = false;
  {
    const std::lock_guard lock(mutex_);
    if (answer.progress == Progress::kEnd)
      has_ended_ = true;
    else
      ready_.push_back(std::move(answer));
    is_waiting = std::exchange(is_consumer_waiting_, false);
  }
  if (!is_waiting) return;
  if (const auto consumer = consumer_.lock()) consumer->wake();
}

void AheadSegment::work() {
  while (!is_full()) {
    Answer answer{Progress::kWait, {}};
    answer.progress = pull(answer.pull);
    if (answer.progress == Progress::kWait) return;
    put(std::move(answer));
    if (!take_turn()) return;
  }
}

void AheadSegment::fail(const Status& thrown) noexcept {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    failed_ = thrown;
  }
  // It may wait for this.
  if (const auto consumer = consumer_.lock()) consumer->wake();
}

Progress AheadSegment::take(Pull& pull) {
  Progress progress = Progress::kWait;
  bool was_full = false;
  {
    const std::lock_guard lock(mutex_);
    if (!ready_.empty()) {
      was_full = ready_.size() >= capacity_;
      progress = ready_.front().progress;
      pull = std::move(ready_.front().pull);
      ready_.pop_front();
    } else if (!failed_.ok()) {
      progress = pull.fail(std::exchange(failed_, {}));
    } else if (has_ended_) {
      progress = Progress::kEnd;
    } else {
      is_consumer_waiting_ = true;
    }
  }
  if (was_full) wake();
  return progress;
}

AheadStage::AheadStage(Segment& consumer, StartStages start, size_t capacity)
    : ahead_(std::make_shared<AheadSegment>(
          consumer.pipeline().shared_from_this(), std::move(start), capacity,
          consumer)) {
  ahead_->wake();
}

AheadStage::~AheadStage() { ahead_->stop(); }

}  // namespace tagflow::devices
