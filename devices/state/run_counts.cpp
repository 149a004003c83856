#include "devices/state/run_counts.h"

#include <utility>

namespace tagflow::devices {

int64_t RunCounts::take(std::string_view node_name) {
  std::lock_guard lock(mutex_);
  auto it = counts_.find(node_name);
  if (it == counts_.end())
    it = counts_.emplace(std::string(node_name), 0).first;
  return it->second++;
}

std::map<std::string, int64_t, std::less<>> RunCounts::all() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

void RunCounts::restore(std::map<std::string, int64_t, std::less<>> counts) {
  std::lock_guard lock(mutex_);
  counts_ = std::move(counts);
}

int64_t NumberedRun::earlier_runs(const std::string& node_name) {
  std::lock_guard lock(mutex_);
  const auto [it, is_new] = numbers_.try_emplace(node_name, 0);
  if (is_new) it->second = counts_.take(node_name);
  return it->second;
}

}  // namespace tagflow::devices
