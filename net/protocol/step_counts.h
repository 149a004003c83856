// StepCounts: how many steps have begun and ended, and how.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "graph/status.h"

namespace tagflow::net {

// Each step that begins ends once, with its code: kOk, or why it failed. Counts
// twice per step, and costs no lock. Thread-safe.
class StepCounts {
 public:
  static constexpr size_t kCodes = size_t(Code::kDeadlock) + 1;

  // Of about one moment: while steps end, those that run may be off by them.
  struct Numbers {
    uint64_t begun = 0;
    std::array<uint64_t, kCodes> ended{};  // by code

    uint64_t finished() const { return ended[size_t(Code::kOk)]; }
    uint64_t running() const {
      uint64_t over = 0;
      for (const uint64_t count : ended) over += count;
      return begun - std::min(begun, over);
    }
  };

  void on_begin() { begun_.fetch_add(1, std::memory_order_relaxed); }
  void on_end(Code code) {
    const size_t index =
        size_t(code) < kCodes ? size_t(code) : size_t(Code::kUnknown);
    ended_[index].fetch_add(1, std::memory_order_relaxed);
  }
  Numbers numbers() const {
    Numbers numbers;
    for (size_t i = 0; i < kCodes; ++i)
      numbers.ended[i] = ended_[i].load(std::memory_order_relaxed);
    numbers.begun = begun_.load(std::memory_order_relaxed);
    return numbers;
  }

 private:
  std::atomic<uint64_t> begun_{0};
  std::array<std::atomic<uint64_t>, kCodes> ended_{};
};

}  // namespace tagflow::net
