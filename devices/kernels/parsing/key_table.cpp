#include "devices/kernels/parsing/key_table.h"

namespace tagflow::devices {

size_t KeyTable::add(std::string_view key) {
  if (const int found = find(key); found >= 0) return size_t(found);
  keys_.emplace_back(key);
  size_t first = keys_.size() - 1;
  if (slots_.size() <= 2 * keys_.size()) {
    slots_.assign(slots_.empty() ? 8 : 2 * slots_.size(), -1);
    first = 0;
  }
  for (size_t i = first; i < keys_.size(); ++i) {
    size_t at = hash(keys_[i]);
    while (slots_[at & (slots_.size() - 1)] >= 0) ++at;
    slots_[at & (slots_.size() - 1)] = int(i);
  }
  return keys_.size() - 1;
}

}  // namespace tagflow::devices
