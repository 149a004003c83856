#include "devices/state/guarded_state.h"

#include <memory>
#include <utility>

namespace tagflow::devices {

class GuardedState::Clearing final : public StateLock::Waiter {
 public:
  explicit Clearing(Ref<GuardedState> state) : state_(std::move(state)) {}
  void on_granted() override {
    state_->clear();
    state_->lock_.unlock(StateLock::Mode::kExclusive);
  }

 protected:
  void on_cancel() override {}

 private:
  const Ref<GuardedState> state_;
};

void GuardedState::on_end(const Status&) {
  if (lock_.try_lock(StateLock::Mode::kExclusive)) {
    clear();
    lock_.unlock(StateLock::Mode::kExclusive);
  } else {
    lock_.wait(StateLock::Mode::kExclusive,
               std::make_shared<Clearing>(Ref<GuardedState>(this)));
  }
}

}  // namespace tagflow::devices
