// What a model server counts.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "graph/status.h"
#include "net/metrics/metric_text.h"
#include "net/protocol/step_counts.h"

namespace tagflow::net::serving {

// How many values were at most each bound. Thread-safe.
template <size_t kBounds>
class Histogram {
 public:
  explicit constexpr Histogram(const std::array<double, kBounds>& bounds)
      : bounds_(bounds) {}

  void add(double value) {
    size_t i = 0;
    while (i < kBounds && value > bounds_[i]) ++i;
    counts_[i].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }
  void write(MetricText& text, MetricText::Labels labels) const {
    std::array<uint64_t, kBounds + 1> counts;
    for (size_t i = 0; i <= kBounds; ++i) counts[i] = counts_[i];
    text.add_histogram(labels, bounds_, counts, sum_);
  }

 private:
  const std::array<double, kBounds>& bounds_;
  std::array<std::atomic<uint64_t>, kBounds + 1> counts_{};
  std::atomic<double> sum_{0};
};

// In seconds.
inline constexpr std::array<double, 15> kLatencyBounds{
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
    0.2,    0.5,   1,     2,     5,    10,   30};
inline constexpr std::array<double, 11> kBatchBounds{1,  2,   4,   8,   16,  32,
                                                     64, 128, 256, 512, 1024};

// Of one model. Thread-safe.
struct ModelFigures {
  StepCounts requests;
  Histogram<kLatencyBounds.size()> latency{kLatencyBounds};
  Histogram<kBatchBounds.size()> batches{kBatchBounds};  // rows of each run
};

// Of all models that have had a request. Thread-safe.
class ServingFigures {
 public:
  std::shared_ptr<ModelFigures> of(const std::string& model);
  void write(MetricText& text) const;

 private:
  mutable std::mutex mutex_;  // guards the map
  std::map<std::string, std::shared_ptr<ModelFigures>> models_;
};

}  // namespace tagflow::net::serving
