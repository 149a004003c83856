#include "actors/runtime/peer_wait.h"

#include <atomic>
#include <utility>

#include "actors/runtime/step.h"
#include "devices/cancellation.h"

namespace tagflow::actors {

class PeerWait::Wait final : public devices::CancelHook {
 public:
  Wait(Step& step, size_t partitions, std::function<std::string()> describe)
      : step_(step), partitions_(partitions) {
    named_.describe = std::move(describe);
    named_.is_for_peers = true;
  }

  void begin(const std::shared_ptr<Wait>& self) {
    step_.begin_wait(named_);
    if (!step_.info.cancels->add(self)) on_cancel();
  }

  void end_partition() {
    if (partitions_.fetch_sub(1, std::memory_order_acq_rel) == 1 && claim())
      end();
  }

 private:
  struct Named final : StepWait {
    std::string name() const override { return describe(); }
    std::function<std::string()> describe;
  };

  void on_cancel() override { end(); }
  // The step may be over afterwards.
  void end() {
    step_.end_wait(named_);
    step_.drop_activity();
  }

  Step& step_;                      // valid as long as the wait lasts
  std::atomic<size_t> partitions_;  // that have not ended
  Named named_;
};

PeerWait::PeerWait(Step& step, size_t partitions,
                   std::function<std::string()> describe)
    : wait_(std::make_shared<Wait>(step, partitions, std::move(describe))) {
  wait_->begin(wait_);
}

void PeerWait::end_partition() { wait_->end_partition(); }

}  // namespace tagflow::actors
