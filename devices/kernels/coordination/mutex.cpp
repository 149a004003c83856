// MutexV2, MutexLock, ConsumeMutexLock: mutual exclusion of critical sections
// in several steps.
#include <atomic>

#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/variable/state_inputs.h"
#include "devices/state/actor_kernel.h"
#include "devices/state/guard.h"
#include "devices/state/state_kind.h"

namespace tagflow::devices {

namespace {

using Mode = StateLock::Mode;

// A mutex between steps. Life cycle: made by the first node of its name; ended
// by a reset of its container: waiters get it in turn, and learn that it has
// ended.
class Mutex final : public StateObject {
 public:
  static constexpr std::string_view kKind = kMutexKind;

  explicit Mutex(std::string name) : name_(std::move(name)) {}

  StateLock& lock() { return lock_; }
  // REQUIRES: the caller has the lock. The next owner may release it at once;
  // the loop avoids recursion in this case.
  void unlock() noexcept {
    if (unlocks_.fetch_add(1) > 0) return;  // somebody is unlocking
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

// A locked mutex. Releases it when it is consumed, or in the destructor: a
// failed step leaves nothing locked. Thread-safe.
class HeldMutex final : public VariantValue {
 public:
  explicit HeldMutex(Ref<Mutex> mutex) : mutex_(std::move(mutex)) {}
  ~HeldMutex() override { (void)unlock(); }

  std::string describe() const override {
    return fmt::format("the lock of {}", mutex_->describe());
  }
  // Marks the mutex, which the caller has locked, as held.
  void hold() { is_held_.store(true, std::memory_order_relaxed); }
  // False if it was released before.
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

// A step's wait. Everything that an answer needs is allocated before: it cannot
// fail for lack of memory.
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
    // From hold() on its destructor releases the mutex, also when out of
    // memory.
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
      // The exception is the answer, after which the context may be destroyed:
      // a cancellation must not follow. If a cancellation came first, it has
      // answered.
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
