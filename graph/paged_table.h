// A sparse table, which takes memory only for pages in use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace tagflow::graph {

// Values by number; T() if nothing is set. A page is allocated when one of
// its entries is first written, so a few high numbers cost a few pages.
// Thread-compatible.
template <class T, size_t kPage = 64>
class PagedTable {
 public:
  const T& at(size_t number) const {
    static const T none{};
    const size_t page = number / kPage;
    return page < pages_.size() && pages_[page] ? pages_[page][number % kPage]
                                                : none;
  }
  // Access for writing.
  T& operator[](size_t number) {
    const size_t page = number / kPage;
    if (page >= pages_.size())
      pages_.resize(std::max(page + 1, 2 * pages_.size()));
    if (!pages_[page]) pages_[page] = std::make_unique<T[]>(kPage);
    return pages_[page][number % kPage];
  }
  // The number of allocated pages.
  size_t num_pages() const {
    return size_t(std::ranges::count_if(
        pages_, [](const auto& page) { return page != nullptr; }));
  }

 private:
  std::vector<std::unique_ptr<T[]>> pages_;
};

}  // namespace tagflow::graph
