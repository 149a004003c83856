// Assigns rows of a data set to the steps of a training.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "graph/status.h"

namespace tagflow::training {

// Shuffles the items in an order that depends only on the random numbers:
// std::shuffle differs from library to library.
template <class T>
void shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[random() % i]);
}

// The random numbers for the order of an epoch.
std::mt19937_64 random_of_epoch(uint64_t seed, int64_t epoch);

// Splits the rows into batches, in another order in every epoch. The order
// depends only on the seed and the epoch, so a resumed training takes the same
// rows. Rows that do not fill a batch are left out of their epoch.
// Thread-compatible.
class ShuffledBatches {
 public:
  // Returns InvalidArgument unless 1 <= batch <= rows.
  static Result<ShuffledBatches> create(int64_t rows, int64_t batch,
                                        uint64_t seed);

  int64_t batch() const { return batch_; }
  int64_t steps_per_epoch() const { return int64_t(order_.size()) / batch_; }
  // The rows of a step, counted from 1. The span is valid until the next call.
  // REQUIRES: step >= 1.
  std::span<const int64_t> at(int64_t step);

 private:
  ShuffledBatches(int64_t rows, int64_t batch, uint64_t seed);

  int64_t batch_;
  uint64_t seed_;
  int64_t epoch_ = -1;  // whose order it is
  std::vector<int64_t> order_;
};

}  // namespace tagflow::training
