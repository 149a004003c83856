#include "tests/failing_new.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

// How many more calls until the last one that fails; none does at 0 and below.
std::atomic<int64_t> g_left{0};
// How many fail.
std::atomic<int64_t> g_count{1};
std::atomic<bool> g_failed{false};

bool fails_now() {
  if (g_left.load(std::memory_order_relaxed) <= 0) [[likely]]
    return false;
  const int64_t left = g_left.fetch_sub(1, std::memory_order_acq_rel);
  if (left <= 0 || left > g_count.load(std::memory_order_relaxed)) return false;
  g_failed.store(true, std::memory_order_release);
  return true;
}

// What a block of the plain operator new is off the stricter alignment by, in
// a run that asks for it: alignment that nobody promised is not there then.
constexpr size_t kOff = 16;
constexpr size_t kStrict = 64;

// Asked of the environment once, by the first call, which may come before any
// constructor has run.
bool misaligns() {
  static const bool asked = std::getenv("TAGFLOW_MISALIGNED_NEW") != nullptr;
  return asked;
}

// By malloc, which the sanitizers know.
void* take(size_t size) {
  if (fails_now()) return nullptr;
  if (!misaligns()) return std::malloc(size == 0 ? 1 : size);
  void* block = nullptr;
  if (size > SIZE_MAX - kOff ||
      posix_memalign(&block, kStrict, size + kOff) != 0)
    return nullptr;
  return static_cast<char*>(block) + kOff;
}

// Gives back what take(size_t) gave.
void give_back(void* block) {
  if (misaligns() && block != nullptr) block = static_cast<char*>(block) - kOff;
  std::free(block);
}

void* take(size_t size, std::align_val_t alignment) {
  void* block = nullptr;
  if (fails_now() ||
      posix_memalign(&block, size_t(alignment), size == 0 ? 1 : size) != 0)
    return nullptr;
  return block;
}

void* checked(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

void* operator new(size_t size) { return checked(take(size)); }
void* operator new[](size_t size) { return checked(take(size)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return take(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return take(size);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return checked(take(size, alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return checked(take(size, alignment));
}
void* operator new(size_t size, std::align_val_t alignment,
                   const std::nothrow_t&) noexcept {
  return take(size, alignment);
}
void* operator new[](size_t size, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return take(size, alignment);
}

void operator delete(void* block) noexcept { give_back(block); }
void operator delete[](void* block) noexcept { give_back(block); }
void operator delete(void* block, size_t) noexcept { give_back(block); }
void operator delete[](void* block, size_t) noexcept { give_back(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept {
  give_back(block);
}
void operator delete[](void* block, const std::nothrow_t&) noexcept {
  give_back(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete(void* block, size_t, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, size_t, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete(void* block, std::align_val_t,
                     const std::nothrow_t&) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::align_val_t,
                       const std::nothrow_t&) noexcept {
  std::free(block);
}

namespace tagflow {

FailAllocation::FailAllocation(int64_t k, int64_t count) {
  g_failed.store(false, std::memory_order_relaxed);
  g_count.store(count, std::memory_order_relaxed);
  g_left.store(k + count - 1, std::memory_order_release);
}

FailAllocation::~FailAllocation() { stop(); }

bool FailAllocation::failed() const {
  return failed_ || g_failed.load(std::memory_order_acquire);
}

void FailAllocation::stop() {
  failed_ = failed();
  g_left.store(0, std::memory_order_release);
}

}  // namespace tagflow
