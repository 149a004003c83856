#include "devices/kernels/gradient/persistent_stack.h"

#include <vector>

#include "devices/kernels/containers/values.h"
#include "graph/status_exception.h"

namespace tagflow::devices {

PersistentStack::PersistentStack(const PersistentStack& other)
    : GradientValue(),
      dtype_(other.dtype_),
      size_(other.size_),
      top_(other.top_) {}

PersistentStack::Chunk::Chunk(Part rest, bool swaps, MemoryCharge chunk_charge)
    : saved(swaps ? std::make_unique<Saved>() : nullptr),
      charge(std::move(chunk_charge)),
      below(std::move(rest)) {}

// Iterates over chunks: a stack may be as long as memory allows.
PersistentStack::Chunk::~Chunk() {
  for (Tensor& element : elements)
    if (!is_plain(element.dtype())) release_nested(std::move(element));
  Ref<Chunk> next = std::move(below.chunk);
  while (next && next->unique()) next = std::move(next->below.chunk);
}

std::string PersistentStack::describe() const {
  return fmt::format("PersistentStack[{}] of {}", size_, dtype_name(dtype_));
}

Tensor PersistentStack::Chunk::take(uint32_t at) {
  if (saved != nullptr && (*saved)[at] != nullptr)
    return std::exchange((*saved)[at], nullptr)->take();
  return std::move(elements[at]);
}

void PersistentStack::push(const Tensor& value, uint64_t step,
                           Allocator& memory) {
  SavedOwner swappable = save(value, step);
  uint32_t expected = top_.count;
  const bool has_room =
      top_.chunk && top_.count < kChunk &&
      (swappable == nullptr || top_.chunk->saved != nullptr) &&
      top_.chunk->used.compare_exchange_strong(expected, top_.count + 1,
                                               std::memory_order_relaxed);
  if (!has_room) {
    MemoryCharge charge;
    if (!charge.set(memory, sizeof(Chunk)))
      throw StatusException(out_of_memory(memory, describe(), sizeof(Chunk)));
    auto chunk = make_ref_counted<Chunk>(std::move(top_), swappable != nullptr,
                                         std::move(charge));
    chunk->used.store(1, std::memory_order_relaxed);
    top_ = {std::move(chunk), 0};
  }
  if (swappable != nullptr) {
    (*top_.chunk->saved)[top_.count++] = std::move(swappable);
  } else {
    top_.chunk->elements[top_.count++] = value;
  }
  ++size_;
}

Tensor PersistentStack::pop() {
  const uint32_t at = top_.count - 1;
  Tensor value;
  if (top_.chunk->unique()) {
    // Elements above belonged to stacks that are gone.
    for (uint32_t i = top_.chunk->used.load(std::memory_order_relaxed);
         i-- > top_.count;)
      release_nested(top_.chunk->take(i));
    value = top_.chunk->take(at);
    top_.chunk->used.store(at, std::memory_order_relaxed);
  } else if (const Ref<SavedTensor> saved = next_saved()) {
    value = saved->read();
  } else {
    value = top_.chunk->elements[at];
  }
  --top_.count;
  --size_;
  if (top_.count == 0) {
    Part below = top_.chunk->below;
    top_ = std::move(below);
  }
  return value;
}

Ref<SavedTensor> PersistentStack::next_saved() const {
  if (size_ == 0 || top_.chunk->saved == nullptr) return {};
  return Ref((*top_.chunk->saved)[top_.count - 1].get());
}

Ref<GradientValue> PersistentStack::copy() const {
  return make_ref_counted<PersistentStack>(*this);
}

Status PersistentStack::accumulate(VariantSum& sum, const GradientValue& term) {
  PersistentStack shorter(static_cast<const PersistentStack&>(term));
  if (shorter.dtype_ != dtype_)
    return sum.context().fail("cannot add {} and {}", describe(),
                              shorter.describe());
  if (shorter.size_ > size_) {
    std::swap(shorter.size_, size_);
    std::swap(shorter.top_, top_);
  }
  std::vector<Tensor> sums(size_t(shorter.size_));
  for (Tensor& element : sums) {
    element = pop();
    TAGFLOW_RETURN_IF_ERROR(sum.add(element, shorter.pop()));
  }
  for (; !sums.empty(); sums.pop_back())
    push(sums.back(), 0, sum.context().allocator());
  return {};
}

}  // namespace tagflow::devices
