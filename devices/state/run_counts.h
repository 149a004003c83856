// RunCounts: in how many runs each random op took part.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "devices/kernel.h"

namespace tagflow::devices {

// The counts of a session's state, by the names of nodes. They are state as
// variables are: who restores them draws the numbers that would have come next,
// whatever was run in between without these nodes. Thread-safe.
class RunCounts {
 public:
  // How many runs there were before this one, which counts from now on.
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

 private:
  RunCounts& counts_;
  std::mutex mutex_;  // guards the below; before that of the counts
  std::map<std::string, int64_t, std::less<>> numbers_;
};

}  // namespace tagflow::devices
