// Runs the parts of parallel_for() without threads.
#pragma once

#include <algorithm>

#include "devices/kernel.h"

namespace tagflow::devices {

// Parts of a given size, the last one first.
class PartsParallel : public Parallel {
 public:
  explicit PartsParallel(int64_t part = 1) : part_(part) {}
  void run(int64_t total, double, RangeBody body) override {
    for (int64_t begin = (total - 1) / part_ * part_; begin >= 0;
         begin -= part_)
      body(begin, std::min(begin + part_, total));
  }

 private:
  int64_t part_;
};

}  // namespace tagflow::devices
