// Where there is no oneDNN, products by constants are products as any other.
#include "devices/cpu/packed_product.h"

namespace tagflow::devices {

std::unique_ptr<PackedProduct> PackedProduct::make(const WeightLayout&) {
  return nullptr;
}

}  // namespace tagflow::devices
