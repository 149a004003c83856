#include "net/metrics/link_probe.h"

#include <condition_variable>
#include <mutex>

namespace tagflow::net {

struct LinkProbe::Asked {
  std::mutex mutex;  // guards the below
  std::condition_variable changed;
  bool waits = false;  // the thread has not taken the last question
};

LinkProbe::LinkProbe(const IoThreads& threads)
    : small_{"small", *threads.small, std::make_shared<Asked>()},
      bulk_{"bulk", *threads.bulk, std::make_shared<Asked>()} {}

LinkProbe::~LinkProbe() = default;

Status LinkProbe::check(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  // Both are asked before one is awaited.
  for (const Probed* probed : {&small_, &bulk_}) {
    const std::shared_ptr<Asked>& asked = probed->asked;
    {
      const std::lock_guard lock(asked->mutex);
      if (asked->waits) continue;
      asked->waits = true;
    }
    probed->thread.post([asked] {
      const std::lock_guard lock(asked->mutex);
      asked->waits = false;
      asked->changed.notify_all();
    });
  }
  for (const Probed* probed : {&small_, &bulk_}) {
    Asked& asked = *probed->asked;
    std::unique_lock lock(asked.mutex);
    if (!asked.changed.wait_until(lock, end, [&] { return !asked.waits; }))
      return error(Code::kUnavailable,
                   "[net] the thread of the {} links does not answer",
                   probed->name);
  }
  return {};
}

}  // namespace tagflow::net
