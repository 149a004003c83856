// Hashes of attributes, for tables of what has them.
#pragma once

#include <cstddef>
#include <string_view>

#include "graph/attr.h"

namespace tagflow {

// Mixes values into one number; what is equal makes the same number.
class AttrHash {
 public:
  // How much of a tensor's elements is looked at, unless said otherwise.
  static constexpr size_t kTensorBytes = 512;

  size_t value() const { return hash_; }

  void add_number(size_t number) {
    hash_ ^= number + 0x9e3779b97f4a7c15 + (hash_ << 6) + (hash_ >> 2);
  }
  void add_text(std::string_view text);
  // The type, the number of elements, and the first `most` bytes of these.
  void add_tensor(const Tensor& tensor, size_t most = kTensorBytes);
  void add_value(const AttrValue& value);
  // Names and values.
  void add_attrs(const AttrMap& attrs);

 private:
  size_t hash_ = 0;
};

}  // namespace tagflow
