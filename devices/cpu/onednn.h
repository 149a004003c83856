// How oneDNN is used: on one thread.
#pragma once

#include <omp.h>

#include <deque>
#include <dnnl.hpp>
#include <memory>
#include <mutex>
#include <utility>

namespace tagflow::devices {

// What makes and runs all primitives.
inline const dnnl::engine& onednn_engine() {
  static const dnnl::engine the_engine(dnnl::engine::kind::cpu, 0);
  return the_engine;
}

// While this lives, what the calling thread asks of OpenMP runs on it alone:
// kernels shard their work themselves. Afterwards the thread, which may be the
// user's, has the number of threads again that it had before.
class SingleThreaded {
 public:
  SingleThreaded() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~SingleThreaded() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  const int before_;
};

// How shapes are computed, as worked out once for each. A Plan has a flag
// `works`: the library does it. Calls may come from any thread.
template <class Key, class Plan>
class PlanCache {
 public:
  // The plan of `key`, which fill(plan) works out where it is new. What throws
  // a dnnl::error does not work. Throws std::bad_alloc.
  template <class Fill>
  std::shared_ptr<const Plan> find(const Key& key, Fill&& fill) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, plan] : plans_)
      if (known == key) return plan;
    auto plan = std::make_shared<Plan>();
    try {
      const SingleThreaded guard;
      fill(*plan);
    } catch (const dnnl::error&) {
      plan->works = false;
    }
    if (plans_.size() == kMost) plans_.pop_front();
    return plans_.emplace_back(key, std::move(plan)).second;
  }

 private:
  // More shapes than a program is likely to need at a time.
  static constexpr size_t kMost = 8;

  std::mutex mutex_;
  std::deque<std::pair<Key, std::shared_ptr<const Plan>>> plans_;
};

}  // namespace tagflow::devices
