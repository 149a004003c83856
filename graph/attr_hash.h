// Hashes of attributes, for hash tables.
#pragma once

#include <cstddef>
#include <string_view>

#include "graph/attr.h"

namespace tagflow {

// Combines values into one hash; equal values give equal hashes.
class AttrHash {
 public:
  // How many bytes of a tensor are hashed by default.
  static constexpr size_t kTensorBytes = 512;

  size_t value() const { return hash_; }

  void add_number(size_t number) {
    hash_ ^= number + 0x9e3779b97f4a7c15 + (hash_ << 6) + (hash_ >> 2);
  }
  void add_text(std::string_view text);
  // Adds the type, the number of elements, and their first `most` bytes.
  void add_tensor(const Tensor& tensor, size_t most = kTensorBytes);
  void add_value(const AttrValue& value);
  // Adds names and values.
  void add_attrs(const AttrMap& attrs);

 private:
  size_t hash_ = 0;
};

}  // namespace tagflow
