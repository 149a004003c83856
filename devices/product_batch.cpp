#include "devices/product_batch.h"

namespace tagflow::devices {

int64_t ProductBatch::count() const {
  int64_t product = 1;
  for (const Dim& dim : dims) product *= dim.size;
  return product;
}

std::pair<int64_t, int64_t> ProductBatch::factors(int64_t i) const {
  int64_t in_a = 0, in_b = 0;
  for (size_t d = dims.size(); d-- > 0;) {
    const int64_t at = i % dims[d].size;
    i /= dims[d].size;
    in_a += at * dims[d].a_step;
    in_b += at * dims[d].b_step;
  }
  return {in_a, in_b};
}

}  // namespace tagflow::devices
