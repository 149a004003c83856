// MutexV2, MutexLock, ConsumeMutexLock: what keeps critical sections of
// several steps apart.
#include <atomic>

#include "devices/cpu/containers/kernels.h"
#include "devices/cpu/state/kernels.h"
#include "devices/guard.h"
#include "devices/state/actor_kernel.h"
#include "devices/state/state_kind.h"

namespace tagflow::devices {

namespace {

using Mode = StateLock::Mode;

// What nobody may have together with anybody else. Life cycle: made by the
// first node of its name; ended by a reset of its container: who waits gets it
// in turn, and learns that it has ended.
class Mutex final : public StateObject {
 public:
  static constexpr std::string_view kKind = kMutexKind;

  explicit Mutex(std::string name) : name_(std::move(name)) {}

  StateLock& lock() { return lock_; }
  // REQUIRES: the caller has the lock. Who gets it next may let go of it at
  // once: not deeper and deeper in one another.
  void unlock() noexcept {
    if (unlocks_.fetch_add(1) > 0) return;  // somebody is at it
    do lock_.unlock(Mode::kExclusive);
    while (unlocks_.fetch_sub(1) > 1);
  }
  std::string describe() const override {
    return fmt::format("{} \"{}\"", kKind, name_);
  }

 protected:
  void on_end(const Status&) override {}

 private:
  const std::string name_;
  StateLock lock_;
  std::atomic<int> unlocks_{0};  // to be done
};

// A mutex that is locked. Lets go of it when it is consumed, or with its end:
// of a step that fails nothing is left locked. Thread-safe.
class HeldMutex final : public VariantValue {
 public:
  explicit HeldMutex(Ref<Mutex> mutex) : mutex_(std::move(mutex)) {}
  ~HeldMutex() override { (void)unlock(); }

  std::string describe() const override {
    return fmt::format("the lock of {}", mutex_->describe());
  }
  // Of the mutex, which the caller has locked.
  void hold() { is_held_.store(true, std::memory_order_relaxed); }
  // False where it was let go of before.
  bool unlock() noexcept {
    if (!is_held_.exchange(false)) return false;
    mutex_->unlock();
    return true;
  }

 private:
  const Ref<Mutex> mutex_;
  std::atomic<bool> is_held_{false};
};

class MutexKernel final : public CheapKernel {
 public:
  explicit MutexKernel(const KernelInfo& info) : resource_(info) {}

  Status compute(KernelContext& context) const override {
    return resource_.set_handle(context, [this]() -> Result<Ref<StateObject>> {
      return Ref<StateObject>(make_ref_counted<Mutex>(resource_.key().name));
    });
  }
  bool is_bookkeeping() const override { return true; }

 private:
  const ResourceOp resource_;
};

// What a step waits for. All that an answer needs is there before: it cannot
// fail for want of memory.
class MutexWait final : public StateLock::Waiter {
 public:
  MutexWait(Ref<Mutex> mutex, HeldMutex* held, KernelContext& context,
            Completion done)
      : mutex_(std::move(mutex)),
        held_(held),
        context_(context),
        done_(std::move(done)) {}

  void on_granted() override {
    Status ended = mutex_->ended();
    const bool is_ours = ended.ok();
    if (is_ours) held_->hold();
    const Ref<Mutex> mutex = mutex_;
    done_(std::move(ended));
    if (!is_ours) mutex->unlock();
  }

 protected:
  void on_cancel() override {
    const Ref<Mutex> mutex = mutex_;
    done_(error(Code::kCancelled, "[{}] the step was cancelled",
                context_.node().op()));
    mutex->lock().pass_over();
  }

 private:
  const Ref<Mutex> mutex_;
  HeldMutex* const held_;  // in output 0
  KernelContext& context_;
  const Completion done_;
};

class MutexLockKernel final : public AsyncKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit MutexLockKernel(const KernelInfo&) {}

  WaitsFor waits_for() const override { return WaitsFor::kSharedState; }
  std::optional<Status> try_compute(KernelContext& context) const override {
    const Result<Mutex*> mutex = handle_input<Mutex>(context, 0);
    if (!mutex.ok()) return mutex.status();
    if (Status ended = (*mutex)->ended(); !ended.ok()) return ended;
    // From hold() on its end lets go of the mutex, also where memory is short.
    auto held = make_ref_counted<HeldMutex>(Ref<Mutex>(*mutex));
    if (!(*mutex)->lock().try_lock(Mode::kExclusive)) return std::nullopt;
    held->hold();
    const auto output = context.allocate_output(0, {});
    if (!output.ok()) return output.status();
    *(*output)->mutable_data<Variant>() = Variant(std::move(held));
    return Status();
  }
  void compute_async(KernelContext& context, Completion done) const override {
    const Result<Mutex*> found = handle_input<Mutex>(context, 0);
    if (!found.ok()) return done(found.status());
    const Ref<Mutex> mutex(*found);
    if (Status ended = mutex->ended(); !ended.ok())
      return done(std::move(ended));
    const auto held = held_output(context, mutex.get());
    if (!held.ok()) return done(held.status());
    const auto wait = std::make_shared<MutexWait>(mutex, *held, context, done);
    if (!context.on_cancel(wait))
      return done(error(Code::kCancelled, "[{}] the step was cancelled",
                        context.node().op()));
    try {
      mutex->lock().wait(Mode::kExclusive, wait);
    } catch (...) {
      // That is the answer, after which the context may be gone: a cancellation
      // must not come any more. Where one was first, it has answered.
      if (wait->claim()) throw;
    }
  }
  std::string describe_wait(const KernelContext& context) const override {
    const Result<Mutex*> mutex = handle_input<Mutex>(context, 0);
    return mutex.ok() ? fmt::format("{} is locked", (*mutex)->describe()) : "";
  }

 private:
  static Result<HeldMutex*> held_output(KernelContext& context, Mutex* mutex) {
    return new_value_output<HeldMutex>(context, 0, Ref<Mutex>(mutex));
  }
};

class ConsumeMutexLockKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ConsumeMutexLockKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const HeldMutex* held,
                   value_input<HeldMutex>(context, 0, "lock of a mutex"));
    if (const_cast<HeldMutex*>(held)->unlock()) return {};
    return context.fail("{} has been consumed before", held->describe());
  }
};

}  // namespace

void register_mutex_kernels(KernelRegistry& registry) {
  registry.add<MutexKernel>("MutexV2");
  registry.add<MutexLockKernel>("MutexLock");
  registry.add<ConsumeMutexLockKernel>("ConsumeMutexLock");
}

}  // namespace tagflow::devices
