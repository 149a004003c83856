// SeedGenerator: the seeds of a dataset that is shuffled anew in each epoch.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "devices/kernels/dataset/pipeline.h"
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

// The seeds of one node whose own are two zeros, which stand for seeds that are
// drawn: others in each iteration, and in each session, unless the sessions
// have the same seed. Thread-safe.
class DrawnSeeds final : public StateObject {
 public:
  static constexpr std::string_view kKind = "drawn seeds";

  // That of the node, which is made at its first use.
  static Result<Ref<DrawnSeeds>> of_node(const KernelContext& context);

  // Those of that pipeline.
  ShuffleSeeds next(Pipeline& pipeline);
  std::string describe() const override;

 protected:
  void on_end(const Status&) override {}

 private:
  std::atomic<int64_t> drawn_{0};
};

// Thread-safe.
class SeedGenerator final : public SharedSource {
 public:
  static constexpr std::string_view kKind = "seed generator";

  // Gives the seeds themselves, or, if `reshuffles`, others each time. If
  // `drawn` is not null, it gives the seeds, to the first pipeline that asks.
  SeedGenerator(const ShuffleSeeds& seeds, Ref<DrawnSeeds> drawn,
                bool reshuffles)
      : reshuffles_(reshuffles), drawn_(std::move(drawn)) {
    if (!drawn_) state_.emplace(seeds);
  }

  ShuffleSeeds next(Pipeline& pipeline);
  Ref<SharedSource> copy() const override;
  std::string describe() const override { return std::string(kKind); }

 protected:
  void on_end(const Status&) override {}

 private:
  struct State {
    explicit State(const ShuffleSeeds& given)
        : seeds(given), numbers(given.seed, given.seed2) {}
    ShuffleSeeds seeds;
    SeededNumbers numbers;
  };

  const bool reshuffles_;
  Ref<DrawnSeeds> drawn_;     // null: it was given its seeds
  mutable std::mutex mutex_;  // guards the below
  std::optional<State> state_;
};

}  // namespace tagflow::devices
