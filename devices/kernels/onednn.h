// oneDNN on one thread.
#pragma once

#include <omp.h>

#include <deque>
#include <dnnl.hpp>
#include <memory>
#include <mutex>
#include <utility>

namespace tagflow::devices {

// The engine of all primitives.
inline const dnnl::engine& onednn_engine() {
  static const dnnl::engine the_engine(dnnl::engine::kind::cpu, 0);
  return the_engine;
}

// While this lives, OpenMP regions of the calling thread run on that thread
// alone: kernels shard their work themselves. Afterwards the thread, which may
// be the user's, has its former number of threads again.
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

// A cache of plans by shape; each is computed once. A Plan has a flag `works`:
// the library supports it. Thread-safe.
template <class Key, class Plan>
class PlanCache {
 public:
  // The plan of `key`; fill(plan) computes a new one. If that throws a
  // dnnl::error, the plan does not work. Throws std::bad_alloc.
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
