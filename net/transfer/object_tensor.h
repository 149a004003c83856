// Tensors as objects of the bulk link.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "graph/tensor.h"
#include "net/link/bulk_link.h"
#include "net/link/silence.h"

namespace tagflow::net {

// Larger tensors are objects; smaller ones are in messages. In bytes.
inline constexpr uint64_t kLargestInline = uint64_t{16} << 10;
// The largest object that is accepted, in bytes.
inline constexpr uint64_t kLargestObject = uint64_t{1} << 33;

// What the elements of a tensor take here: those of strings, and their bytes.
// Thread-safe.
uint64_t memory_of(const Tensor& tensor);

// The tensor as an object, which shares its elements. REQUIRES:
// check_sendable() accepts its dtype. May throw std::bad_alloc. Thread-safe.
BulkLink::Object object_of(ObjectId id, const Tensor& tensor);

// A tensor that comes as an object. Thread-compatible.
class TensorInput {
 public:
  // Takes the memory for it. ResourceExhausted if there is none, or if the
  // object is larger than kLargestObject; DataLoss if it is not a tensor.
  static Result<std::shared_ptr<TensorInput>> begin(const Begin& begin);
  // Where the elements go, which keeps the input alive.
  static BulkLink::Destination destination(
      const std::shared_ptr<TensorInput>& input);
  // The tensor, when all bytes are there. DataLoss if they are not elements.
  Result<Tensor> finish();
  // Whether finish() looks at so many bytes that others would wait.
  bool is_slow() const;

 private:
  TensorInfo info_;
  Tensor tensor_;                  // of a plain dtype
  std::unique_ptr<char[]> bytes_;  // of strings
};

// Tensors that a message refers to, which may come before or after it.
//
// A sender sends the message first, so nearly every object is named when it
// begins. One that no message has named for `patience` belongs to a fault of
// the peer: it is forgotten when another one begins. A tensor that is refused
// for a limit, or forgotten, is an error of the message that names it.
//
// Bytes become strings on a thread of its own, and bools are checked there, if
// they are many: the thread of a link has other links to serve. Thread-safe.
class TensorInputs {
 public:
  using Then = std::function<void(Result<std::vector<Tensor>>)>;
  using Clock = std::chrono::steady_clock;
  // Bytes of memory, and tensors, that no `then` has been given yet.
  static constexpr uint64_t kMostBytes = kLargestObject;
  static constexpr size_t kMostTensors = size_t{1} << 16;
  // Messages whose tensors have not come.
  static constexpr size_t kMostWaiting = 8192;
  // Longer than a message takes to a process that is busy.
  static constexpr std::chrono::seconds kPatience{30 * kSlowness};

  explicit TensorInputs(Clock::duration patience = kPatience,
                        uint64_t most_bytes = kMostBytes)
      : patience_(patience), most_bytes_(most_bytes) {}
  ~TensorInputs() { join(); }
  TensorInputs(const TensorInputs&) = delete;
  TensorInputs& operator=(const TensorInputs&) = delete;

  // For the handlers of a bulk link.
  Result<BulkLink::Destination> begin(const Begin& begin);
  void end(ObjectId object, const Status& status);
  // Calls `then` when these tensors are there, with the tensors in this order,
  // or with the first error: at once, or on the thread of the bulk link or of
  // the inputs. REQUIRES: each object is taken once.
  void take(std::vector<ObjectId> objects, Then then);
  // No more tensors come: who waits is told why.
  void close(const Status& status);
  // Returns when the thread of the inputs has called the last `then`. Whoever
  // these need calls it before it goes. REQUIRES: another thread calls it
  void join();

 private:
  struct Waiting {
    std::vector<ObjectId> objects;
    Then then;
  };
  // Whose tensors are there.
  struct Ready {
    Then then;
    std::vector<std::shared_ptr<TensorInput>> inputs;
    uint64_t bytes = 0;  // that count until `then` is called
    Status failure;
  };
  struct Arrived {
    uint64_t bytes = 0;  // that count
    Clock::time_point begun;
    std::shared_ptr<TensorInput> input;
    bool is_over = false;
    Status status;
  };
  // REQUIRES for these four: the lock is held.
  // Adds an object that begins; an error if it is refused.
  Status add(const Begin& begin);
  void forget_old(Clock::time_point now);
  bool is_ready(const Waiting& waiting) const;
  // REQUIRES: they are ready
  Ready collect(Waiting& waiting);

  // Has the `then` of each called, now or on the own thread.
  void deliver(std::vector<Ready> ready);
  void call(Ready ready);
  void work();

  const Clock::duration patience_;
  const uint64_t most_bytes_;
  std::mutex mutex_;  // guards the below
  std::unordered_map<uint64_t, Arrived> arrived_;
  uint64_t bytes_ = 0;  // of all that arrived, until they are given out
  // Objects up to this one that have not arrived will not: so those that are
  // not kept take no memory.
  uint64_t gone_ = 0;
  Clock::time_point next_look_;  // for what is to be forgotten
  std::vector<Waiting> waiting_;
  Status closed_;
  std::condition_variable changed_;
  std::deque<Ready> slow_;  // for the thread
  bool is_joined_ = false;
  std::thread thread_;  // runs from the first slow one on
};

}  // namespace tagflow::net
