#include "devices/kernels/containers/indexed_tensors.h"

namespace tagflow::devices {

IndexedTensors::IndexedTensors(const IndexedTensors& other)
    : single_(other.single_),
      single_index_(other.single_index_),
      size_(other.size_) {
  for (const auto& [number, page] : other.pages_)
    pages_.emplace(number, std::make_unique<Page>(*page));
}

IndexedTensors::Page* IndexedTensors::find_page(int64_t number) {
  if (last_page_ != nullptr && last_number_ == number) return last_page_;
  const auto it = pages_.find(number);
  if (it == pages_.end()) return nullptr;
  last_page_ = it->second.get();
  last_number_ = number;
  return last_page_;
}

const Tensor* IndexedTensors::find(int64_t index) const {
  if (single_.valid() && single_index_ == index) return &single_;
  const auto it = pages_.find(page_of(index));
  if (it == pages_.end()) return nullptr;
  const Tensor& tensor = it->second->tensors[place(index)];
  return tensor.valid() ? &tensor : nullptr;
}

std::pair<Tensor*, bool> IndexedTensors::try_emplace(int64_t index,
                                                     const Tensor& value) {
  if (single_.valid() && single_index_ == index) return {&single_, false};
  Page* page = find_page(page_of(index));
  if (page != nullptr && page->tensors[place(index)].valid())
    return {&page->tensors[place(index)], false};
  if (!single_.valid()) {
    single_ = value;
    single_index_ = index;
    ++size_;
    return {&single_, true};
  }
  if (page == nullptr) {
    pages_.emplace(page_of(index), std::make_unique<Page>());
    page = find_page(page_of(index));
  }
  page->tensors[place(index)] = value;
  ++page->count;
  ++size_;
  return {&page->tensors[place(index)], true};
}

Tensor IndexedTensors::take(int64_t index) {
  if (single_.valid() && single_index_ == index) {
    --size_;
    return std::exchange(single_, Tensor());
  }
  Page* const page = find_page(page_of(index));
  if (page == nullptr || !page->tensors[place(index)].valid()) return {};
  Tensor taken = std::exchange(page->tensors[place(index)], Tensor());
  --size_;
  if (--page->count == 0) {
    pages_.erase(page_of(index));
    last_page_ = nullptr;
  }
  return taken;
}

}  // namespace tagflow::devices
