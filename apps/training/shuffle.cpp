#include "apps/training/shuffle.h"

#include <numeric>
#include <random>
#include <utility>

namespace tagflow::training {

Result<ShuffledBatches> ShuffledBatches::create(int64_t rows, int64_t batch,
                                                uint64_t seed) {
  if (batch < 1 || rows < batch)
    return invalid_argument("[batches] {} rows do not fill a batch of {}", rows,
                            batch);
  return ShuffledBatches(rows, batch, seed);
}

ShuffledBatches::ShuffledBatches(int64_t rows, int64_t batch, uint64_t seed)
    : batch_(batch), seed_(seed), order_(size_t(rows)) {}

std::span<const int64_t> ShuffledBatches::at(int64_t step) {
  const int64_t epoch = (step - 1) / steps_per_epoch();
  if (epoch != epoch_) {
    epoch_ = epoch;
    std::iota(order_.begin(), order_.end(), 0);
    // By hand: the standard shuffle may differ from library to library.
    constexpr int kHalf = 32;
    std::seed_seq seeds{uint32_t(seed_), uint32_t(seed_ >> kHalf),
                        uint32_t(epoch), uint32_t(uint64_t(epoch) >> kHalf)};
    std::mt19937_64 random(seeds);
    for (size_t i = order_.size() - 1; i > 0; --i)
      std::swap(order_[i], order_[random() % (i + 1)]);
  }
  const int64_t first = (step - 1) % steps_per_epoch() * batch_;
  return std::span(order_).subspan(size_t(first), size_t(batch_));
}

}  // namespace tagflow::training
