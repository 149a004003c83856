// SeedGenerator: the seeds of a dataset that is shuffled anew in each epoch.
#pragma once

#include <mutex>
#include <string>

#include "devices/philox.h"
#include "devices/state/resource_manager.h"

namespace tagflow::devices {

// Numbers of a Philox stream, one by one, as TensorFlow draws them.
class SeededNumbers {
 public:
  SeededNumbers(int64_t seed, int64_t seed2)
      : stream_(uint64_t(seed), 0, uint64_t(seed2)) {}

  uint32_t next() {
    if (used_ == block_.size()) {
      block_ = stream_.next();
      used_ = 0;
    }
    return block_[used_++];
  }

 private:
  Philox stream_;
  Philox::Block block_{};
  size_t used_ = block_.size();
};

struct ShuffleSeeds {
  int64_t seed = 0;
  int64_t seed2 = 0;
};

// Thread-safe.
class SeedGenerator final : public StateObject {
 public:
  static constexpr std::string_view kKind = "seed generator";

  // Gives the seeds themselves, or, if `reshuffles`, others each time.
  SeedGenerator(const ShuffleSeeds& seeds, bool reshuffles)
      : seeds_(seeds),
        reshuffles_(reshuffles),
        numbers_(seeds.seed, seeds.seed2) {}

  ShuffleSeeds next();
  std::string describe() const override { return std::string(kKind); }

 protected:
  void on_end(const Status&) override {}

 private:
  const ShuffleSeeds seeds_;
  const bool reshuffles_;
  std::mutex mutex_;  // guards the below
  SeededNumbers numbers_;
};

}  // namespace tagflow::devices
