// RunFigures: what a program that runs steps says of itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "actors/checkpoint/saver.h"
#include "net/master/cluster.h"
#include "net/metrics/metric_text.h"
#include "net/protocol/step_counts.h"

namespace tagflow::apps {

// Of the program, over all its restarts. Thread-safe.
class RunFigures {
 public:
  net::StepCounts steps;

  void on_written(const actors::SaverOptions::Written& written);
  // A checkpoint was restored, which took so long.
  void on_restored(std::chrono::nanoseconds time);
  // A worker was lost: from now until the next step has ended, it is restarted.
  void on_restart();
  void on_step_after_restart();
  // The workers that it runs on from now on.
  void watch(std::weak_ptr<net::Cluster> cluster);

  void write(net::MetricText& text) const;

 private:
  using Clock = std::chrono::steady_clock;

  mutable std::mutex mutex_;  // guards the below
  uint64_t saves_ = 0, failed_saves_ = 0, restores_ = 0, restarts_ = 0;
  std::chrono::nanoseconds saving_{0}, restoring_{0}, restarting_{0};
  bool is_restarting_ = false;
  Clock::time_point lost_at_;
  std::weak_ptr<net::Cluster> cluster_;
};

}  // namespace tagflow::apps
