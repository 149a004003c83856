#include "actors/runtime/step.h"

#include <algorithm>
#include <utility>

#include "actors/runtime/engine.h"
#include "actors/runtime/hold.h"
#include "devices/thread_activity.h"
#include "graph/counted.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// How long a waiting caller sleeps before it is asked whether to go on.
constexpr std::chrono::milliseconds kAskAgain{50};

// The number of waits that a message names.
constexpr size_t kMostNamed = 5;

}  // namespace

Step::Step(uint64_t id, size_t fetch_count) : fetches(fetch_count) {
  info.step_id = id;
  info.cancelled = &cancelled_;
  info.cancels = &cancels_;
  info.commits = &gate_;
}

Step::~Step() {
  if (token_hook != nullptr) token_hook->claim();
  Timer::forget(deadline_entry);
}

// --- Units and waits --------------------------------------------------------

void Step::drop_activity() {
  uint64_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    const bool last = (word & kUnits) == kUnit;
    if (!last || (word & ~kClosed) == kUnit) {
      const uint64_t wanted = last ? kClosed : word - kUnit;
      if (!word_.compare_exchange_weak(word, wanted, std::memory_order_acq_rel,
                                       std::memory_order_relaxed))
        continue;
      if (last) quiet();
      return;
    }
    // From here on the step may continue, and end, without us.
    const std::shared_ptr<Step> alive = self_;
    if (!word_.compare_exchange_weak(word, word - kUnit,
                                     std::memory_order_acq_rel,
                                     std::memory_order_relaxed))
      continue;
    if (on_waiting) on_waiting(*this);
    if (hold != nullptr) hold->on_rest();
    return;
  }
}

bool Step::try_enter() {
  uint64_t word = word_.load(std::memory_order_relaxed);
  do {
    if (word & kClosed) return false;
  } while (!word_.compare_exchange_weak(word, word + kUnit,
                                        std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
  return true;
}

void Step::begin_wait(StepWait& wait) {
  std::lock_guard lock(mutex_);
  waits_.push_back(wait);
  word_.fetch_add(kWait);
}

void Step::end_wait(StepWait& wait) {
  bool was_waiting;
  {
    std::lock_guard lock(mutex_);
    waits_.erase(boost::intrusive::list<StepWait>::s_iterator_to(wait));
    waits_ended_.fetch_add(1);
    was_waiting = (word_.fetch_add(kUnit - kWait) & kUnits) == 0;
  }
  if (was_waiting && on_resumed) on_resumed(*this);
}

bool Step::is_waiting() const {
  const uint64_t word = word_.load();
  return (word & kUnits) == 0 && (word & kClosed) == 0;
}

bool Step::waits_for_state() const {
  std::lock_guard lock(mutex_);
  bool is_for_state = false;
  for (const StepWait& wait : waits_) {
    if (wait.is_for_peers) continue;
    if (!wait.is_for_state()) return false;
    is_for_state = true;
  }
  return is_for_state && is_waiting();
}

bool Step::waits_for_peers() const {
  std::lock_guard lock(mutex_);
  return is_waiting() && std::ranges::all_of(waits_, &StepWait::is_for_peers);
}

std::string KernelWait::name() const {
  return fmt::format("{} \"{}\"", node->op(), node->name());
}

std::string KernelWait::reason() const {
  return kernel == nullptr ? std::string() : kernel->describe_wait(*context);
}

std::vector<std::string> Step::list_waits(size_t most) const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const StepWait& wait : waits_) {
    if (texts.size() == most) break;
    if (wait.is_hold) continue;
    const std::string reason = wait.reason();
    texts.push_back(reason.empty()
                        ? wait.name()
                        : fmt::format("{}: {}", wait.name(), reason));
  }
  return texts;
}

std::string Step::describe_waits() const {
  std::lock_guard lock(mutex_);
  return first_of(waits_, kMostNamed, [](const StepWait& wait) {
    const std::string reason = wait.reason();
    return reason.empty() ? wait.name()
                          : fmt::format("{} ({})", wait.name(), reason);
  });
}

void Step::note_waits() {
  std::string waits = describe_waits();
  std::lock_guard lock(mutex_);
  waits_at_stop_ = std::move(waits);
  size_t noted = 0;
  for (StepWait& wait : waits_) {
    if (noted++ == kMostNamed) break;
    wait.at_stop = wait.reason();
  }
}

void Step::quiet() {
  const std::shared_ptr<Step> self = std::move(self_);
  on_quiet(*this);
}

// --- Errors -----------------------------------------------------------------

void Step::fail(Status status) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = fail_locked(std::move(status));
  }
  if (first) cancels_.cancel();
}

void Step::fault() noexcept {
  faulted_.store(true, std::memory_order_relaxed);
  fail(current_fault("engine"));
}

bool Step::fail_locked(Status&& status) {
  const bool first = error_.ok();
  if (first) error_ = std::move(status);
  cancelled_.store(true, std::memory_order_release);
  interrupts_.fetch_or(kCancelled);
  return first;
}

Status Step::error() const {
  if (!cancelled_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  return error_;
}

// --- The answer -------------------------------------------------------------

bool Step::write_answer(Answer&& answer, const RunStats& stats) {
  if (answered_.exchange(true)) return false;
  answer_.emplace(std::move(answer));
  stats_ = stats;
  return gate_.close();
}

void Step::answer(Answer answer, const RunStats& stats) {
  if (!write_answer(std::move(answer), stats)) return;
  Timer* const clock = on_answer ? Timer::this_clock() : nullptr;
  if (clock != nullptr) {
    clock->deliver(*this);
  } else {
    deliver_answer();
  }
}

void Step::answer_on_worker(Answer answer, const RunStats& stats) {
  if (!write_answer(std::move(answer), stats)) return;
  if (Engine::is_worker()) {
    deliver_answer();
  } else {
    deliver_on_worker();
  }
}

void Step::deliver_answer() {
  if (on_answer) {
    try {
      on_answer(std::move(*answer_), stats_);
    } catch (...) {
      // The session's callback reports exceptions of the user's.
    }
    return;
  }
  std::lock_guard lock(mutex_);
  delivered_ = true;
  changed_.notify_all();
}

// The last one to leave the gate is a kernel, which may hold locks, and may run
// on a thread of its own.
void Step::deliver_on_worker() {
  if (!on_answer) return deliver_answer();
  later_self_ = shared_from_this();
  later_ready_.urgent = urgent;
  scheduler->enqueue(later_ready_);
}

caf::resumable::resume_result Step::Later::resume(caf::execution_unit*,
                                                  size_t) {
  step_.deliver_answer();
  return done;
}

void Step::Later::intrusive_ptr_release_impl() {
  const std::shared_ptr<Step> self = std::move(step_.later_self_);
}

template <class F>
bool Step::await_in_time(const F& is_delivered,
                         const std::function<bool()>& goes_on) {
  std::unique_lock lock(mutex_);
  const bool has_deadline = timeout.count() > 0;
  if (!goes_on && !has_deadline) {
    changed_.wait(lock, is_delivered);
    return true;
  }
  for (;;) {
    const auto asks = std::chrono::steady_clock::now() + kAskAgain;
    const bool is_last = has_deadline && (!goes_on || deadline <= asks);
    if (changed_.wait_until(lock, is_last ? deadline : asks, is_delivered))
      return true;
    lock.unlock();
    if (is_last) {
      expire();
      return false;
    }
    if (!goes_on()) {
      stop(tagflow::error(Code::kCancelled,
                          "[session] the run was cancelled by its caller"));
      return false;
    }
    lock.lock();
  }
}

template <class F>
void Step::await(const F& is_delivered, const std::function<bool()>& goes_on) {
  if (await_in_time(is_delivered, goes_on)) return;
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, grace.load(), is_delivered)) {
    lock.unlock();
    give_up();
    lock.lock();
    changed_.wait(lock, is_delivered);
  }
}

Step::Answer Step::wait(RunStats* stats, const std::function<bool()>& goes_on) {
  const auto is_delivered = [this] {
    return delivered_.load(std::memory_order_acquire);
  };
  // Usually this thread has done all work itself.
  if (!is_delivered()) await(is_delivered, goes_on);
  if (stats != nullptr) *stats = stats_;
  return std::move(*answer_);
}

// --- Stopping -----------------------------------------------------------

void Step::check_deadline() {
  if (timeout.count() > 0 && std::chrono::steady_clock::now() > deadline)
    expire();
}

void Step::expire() { stop(late()); }

// Only the message needs memory.
void Step::stop(Status reason) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = fail_locked(std::move(reason));
    if (first) stopped_ = true;
  }
  if (!first) return;
  (void)guarded([this] { note_waits(); });
  cancels_.cancel();
}

bool Step::was_stopped() const {
  std::lock_guard lock(mutex_);
  return stopped_;
}

void Step::give_up() {
  const Status first = error();
  // error() handles a lack of memory.
  const auto say = [&](std::string_view what, std::string_view waits) {
    return tagflow::error(first.code(), "{}; {} ms later {}{}", first.message(),
                          grace.load().count(), what, waits);
  };
  Status last = guarded("session", [&] {
    if (is_waiting()) return say("the run still waited for ", describe_waits());
    std::string rest = devices::describe_work(info);
    if (!rest.empty()) rest.insert(0, ": ");
    std::lock_guard lock(mutex_);
    if (!waits_at_stop_.empty())
      rest += "; it had waited for " + waits_at_stop_;
    return say("the run was still ending", rest);
  });
  answer(std::move(last));
}

Status Step::late() const {
  const double seconds = std::chrono::duration<double>(timeout).count();
  return tagflow::error(
      Code::kDeadlineExceeded,
      "[session] the run took longer than its time-out of {} s", seconds);
}

}  // namespace tagflow::actors
