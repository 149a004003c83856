// RunCounts: the number of runs in which each random op took part.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "devices/kernel.h"

namespace tagflow::devices {

// The counts of a session's state, by the names of nodes. They are state like
// variables: after a restore, random ops draw the numbers that would have come
// next, regardless of runs in between without these nodes. Thread-safe.
class RunCounts {
 public:
  // The number of earlier runs; counts this one.
  int64_t take(std::string_view node_name);

  // All of them, by name.
  std::map<std::string, int64_t, std::less<>> all() const;
  // Replaces them all.
  void restore(std::map<std::string, int64_t, std::less<>> counts);

 private:
  mutable std::mutex mutex_;  // guards the below
  std::map<std::string, int64_t, std::less<>> counts_;
};

// The numbers of one run: a node takes its number when it draws first.
// Thread-safe.
class NumberedRun final : public RandomRuns {
 public:
  // `counts` must outlive this.
  explicit NumberedRun(RunCounts& counts) : counts_(counts) {}
  int64_t earlier_runs(const std::string& node_name) override;
  // Those of all runs.
  RunCounts& counts() const { return counts_; }

 private:
  RunCounts& counts_;
  std::mutex mutex_;  // guards the below; locked before the counts' mutex
  std::map<std::string, int64_t, std::less<>> numbers_;
};

}  // namespace tagflow::devices
