// Weights in the orders that oneDNN likes.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "devices/cpu/onednn.h"
#include "devices/cpu/packed_product.h"

namespace tagflow::devices {

// Weights of a part of a product, by what decides their order.
struct WeightColumns {
  dnnl::memory::desc desc;  // as a primitive wants them
  int64_t segments = 1, first = 0, count = 0;
};

// Of so many columns, as the library counts dimensions.
dnnl::memory::dims weight_dims(const WeightLayout& layout, int64_t columns);

// Memory with floats that are somebody else's.
dnnl::memory memory_at(const dnnl::memory::desc& desc, const float* elements);

class OneDnnWeights final : public PackedWeights {
 public:
  OneDnnWeights(const WeightLayout& layout, Tensor tensor)
      : PackedWeights(layout, std::move(tensor)) {}

  // The columns as the primitive wants them. Throws std::bad_alloc and
  // dnnl::error.
  dnnl::memory ordered(const WeightColumns& columns);

 private:
  dnnl::memory as_they_are(const WeightColumns& columns) const;
  // The columns of each segment of a matrix, one after another, in `to`.
  dnnl::memory gather(const WeightColumns& columns,
                      std::vector<float>& to) const;

  std::mutex mutex_;
  std::vector<std::pair<WeightColumns, dnnl::memory>> ordered_;
};

}  // namespace tagflow::devices
