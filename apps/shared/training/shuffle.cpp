#include "apps/shared/training/shuffle.h"

#include <numeric>

namespace tagflow::training {

std::mt19937_64 random_of_epoch(uint64_t seed, int64_t epoch) {
  constexpr int kHalf = 32;
  std::seed_seq words{uint32_t(seed), uint32_t(seed >> kHalf), uint32_t(epoch),
                      uint32_t(uint64_t(epoch) >> kHalf)};
  return std::mt19937_64(words);
}

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
    std::mt19937_64 random = random_of_epoch(seed_, epoch);
    shuffle(order_, random);
  }
  const int64_t first = (step - 1) % steps_per_epoch() * batch_;
  return std::span(order_).subspan(size_t(first), size_t(batch_));
}

}  // namespace tagflow::training
