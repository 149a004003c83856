// KeyTable: finds the names of features.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tagflow::devices {

// A set of names, each with a number: that of its first call of add().
// Thread-safe while nobody adds.
class KeyTable {
 public:
  // The number of the name, which was added before, or is now.
  size_t add(std::string_view key);
  // The number; -1 if it was not added.
  int find(std::string_view key) const {
    if (slots_.empty()) return -1;
    for (size_t at = hash(key);; ++at) {
      const int found = slots_[at & (slots_.size() - 1)];
      if (found < 0 || keys_[size_t(found)] == key) return found;
    }
  }
  size_t size() const { return keys_.size(); }
  const std::string& operator[](size_t i) const { return keys_[i]; }

 private:
  static size_t hash(std::string_view key) {
    return std::hash<std::string_view>()(key);
  }

  std::vector<std::string> keys_;
  std::vector<int> slots_;  // a power of two, more than twice the keys
};

}  // namespace tagflow::devices
