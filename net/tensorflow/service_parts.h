// What the sessions of a session service have in common.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "graph/status.h"
#include "graph/status_text.h"
#include "net/tensorflow/clerks.h"
#include "net/tensorflow/session_limits.h"
#include "net/tensorflow/trace_shelf.h"

namespace tagflow::net {

// Bytes that are in use, and how many there may be. Thread-safe.
class ByteCount {
 public:
  explicit ByteCount(uint64_t most) : most_(most) {}

  // A share of them, given back when it ends. Movable.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : count_(std::exchange(other.count_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(count_, other.count_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (count_ != nullptr) count_->used_ -= bytes_;
    }

   private:
    friend class ByteCount;
    Share(ByteCount& count, uint64_t bytes) : count_(&count), bytes_(bytes) {}
    ByteCount* count_ = nullptr;
    uint64_t bytes_ = 0;
  };

  // ResourceExhausted if there are too many then. The count outlives the share.
  Result<Share> take(uint64_t bytes) {
    uint64_t used = used_;
    do {
      // What take_anyway() took may be beyond the limit.
      if (used > most_ || bytes > most_ - used)
        return error(Code::kResourceExhausted,
                     "[service] {} more bytes are too much: the limit of all "
                     "sessions is {}",
                     bytes, most_);
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return Share(*this, bytes);
  }
  // The same without a limit, for what is there already.
  Share take_anyway(uint64_t bytes) {
    used_ += bytes;
    return Share(*this, bytes);
  }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t most() const { return most_; }

 private:
  const uint64_t most_;
  std::atomic<uint64_t> used_{0};
};

// Owned by the sessions, too: a run may end after its service has. Thread-safe.
struct ServiceParts {
  ServiceParts(const SessionLimits& of_service,
               std::function<void(const std::string&)> warning)
      : limits(of_service),
        bytes(of_service.bytes),
        traces(of_service.traces),
        on_warning(std::move(warning)) {}

  // Says it, if it was not said before. A client may have written parts of it.
  void warn_once(std::string_view whole) {
    constexpr size_t kMost = 1000;  // texts that are remembered
    const std::string text = shorten_message(whole);
    {
      const std::lock_guard lock(warning);
      if (warned.size() >= kMost || !warned.insert(text).second) return;
    }
    if (on_warning) on_warning(text);
  }

  const SessionLimits limits;
  ByteCount bytes;
  std::atomic<size_t> runs{0};
  TraceShelf traces;
  const std::function<void(const std::string&)> on_warning;
  std::mutex warning;              // guards the next
  std::set<std::string> warned;    // texts
  std::unique_ptr<Clerks> clerks;  // ends first
};

}  // namespace tagflow::net
