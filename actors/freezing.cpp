#include "actors/freezing.h"

#include <algorithm>
#include <utility>

namespace tagflow::actors {

bool Freezing::count_run() { return !is_freezing_ && ++runs_ > wait_; }

std::shared_ptr<const Prepared> Freezing::pick(
    const std::function<Result<Frozen>(const Signature&)>& freeze) {
  Frozen old;  // ends outside of the lock
  {
    std::lock_guard lock(mutex_);
    if (frozen_.form != nullptr) {
      if (frozen_.variables.are_current()) {
        ++runs_;
        return frozen_.form;
      }
      wait_ = runs_ > wait_ ? std::max(wait_ / 2, kFewestRuns)
                            : std::min(wait_ * 2, kMostRuns);
      runs_ = 0;
      old = std::exchange(frozen_, {});
    }
    if (!count_run() || freeze == nullptr) return nullptr;
    is_freezing_ = true;
  }
  Result<Frozen> frozen = freeze(signature_);
  std::lock_guard lock(mutex_);
  is_freezing_ = false;
  runs_ = 0;
  if (!frozen.ok() || frozen->form == nullptr) {
    wait_ = std::min(wait_ * 2, kMostRuns);
    return nullptr;
  }
  frozen_ = std::move(frozen).value();
  // What changed meanwhile is seen by the next run: this one has started.
  return frozen_.variables.are_current() ? frozen_.form : nullptr;
}

}  // namespace tagflow::actors
