// IndexedTensors: a sparse list of tensors.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "devices/counted_growth.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// Valid tensors by index. Finding, adding and taking one take constant time.
// Neighbours share a page, which has a place for each; a single tensor needs no
// memory beside the object. A tensor's address stays the same until it is
// taken. Thread-compatible.
class IndexedTensors {
 public:
  IndexedTensors() = default;
  IndexedTensors(const IndexedTensors& other);
  IndexedTensors& operator=(const IndexedTensors&) = delete;

  int64_t size() const { return size_; }
  // The number of tensors that memory is allocated for.
  int64_t places() const { return 1 + kPage * int64_t(pages_.size()); }
  // The bytes that it takes, without the tensors' buffers.
  size_t own_bytes() const {
    return sizeof(*this) + pages_.size() * (sizeof(Page) + kNodeBytes);
  }
  // Null if the index has no tensor.
  const Tensor* find(int64_t index) const;
  // The tensor of the index; true if `value` was inserted. REQUIRES: `value`
  // is valid.
  std::pair<Tensor*, bool> try_emplace(int64_t index, const Tensor& value);
  // Not valid if the index has no tensor.
  Tensor take(int64_t index);
  // Calls visit(index, tensor) for each, in any order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    if (single_.valid()) visit(single_index_, single_);
    for (const auto& [number, page] : pages_)
      for (int64_t i = 0; i < kPage; ++i)
        if (const Tensor& tensor = page->tensors[size_t(i)]; tensor.valid())
          visit(number * kPage + i, tensor);
  }
  // As for_each(), but visit() may move the tensors out. REQUIRES: afterwards
  // the object is only destroyed.
  template <class Visit>
  void for_each_last(Visit&& visit) {
    std::as_const(*this).for_each([&](int64_t index, const Tensor& tensor) {
      visit(index, const_cast<Tensor&>(tensor));
    });
  }

 private:
  static constexpr int kPageBits = 4;
  static constexpr int64_t kPage = int64_t(1) << kPageBits;
  struct Page {
    std::array<Tensor, size_t(kPage)> tensors;
    int64_t count = 0;  // valid ones
  };

  // Rounded down, also if an index is negative.
  static int64_t page_of(int64_t index) { return index >> kPageBits; }
  static size_t place(int64_t index) { return size_t(index & (kPage - 1)); }
  // Null if it does not exist.
  Page* find_page(int64_t number);

  // The first tensor that was added, unless it was taken: it is on no page.
  Tensor single_;
  int64_t single_index_ = 0;
  std::unordered_map<int64_t, std::unique_ptr<Page>> pages_;  // none empty
  Page* last_page_ = nullptr;                                 // the last found
  int64_t last_number_ = 0;
  int64_t size_ = 0;
};

}  // namespace tagflow::devices
