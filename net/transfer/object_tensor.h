// Tensors as objects of the bulk link.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/tensor.h"
#include "net/link/bulk_link.h"

namespace tagflow::net {

// Larger tensors are objects; smaller ones are in messages. In bytes.
inline constexpr uint64_t kLargestInline = uint64_t{16} << 10;
// The largest object that is accepted, in bytes.
inline constexpr uint64_t kLargestObject = uint64_t{1} << 33;

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

 private:
  TensorInfo info_;
  Tensor tensor_;      // of a plain dtype
  std::string bytes_;  // of strings
};

// Tensors that a message refers to, which may come before or after it.
// Thread-safe.
class TensorInputs {
 public:
  using Then = std::function<void(Result<std::vector<Tensor>>)>;
  // Bytes of tensors that no message has asked for yet.
  static constexpr uint64_t kMostBytes = kLargestObject;
  static constexpr size_t kMostTensors = size_t{1} << 16;

  // For the handlers of a bulk link.
  Result<BulkLink::Destination> begin(const Begin& begin);
  void end(ObjectId object, const Status& status);
  // Calls `then` when these tensors are there, with the tensors in this order,
  // or with the first error: at once, or on the thread of the bulk link.
  // REQUIRES: each object is taken once.
  void take(std::vector<ObjectId> objects, Then then);
  // No more tensors come: who waits is told why.
  void close(const Status& status);

 private:
  struct Waiting {
    std::vector<ObjectId> objects;
    Then then;
  };
  struct Arrived {
    std::shared_ptr<TensorInput> input;
    bool is_over = false;
    Status status;
  };
  bool is_ready(const Waiting& waiting) const;
  Result<std::vector<Tensor>> collect(const Waiting& waiting);

  std::mutex mutex_;  // guards the below
  std::unordered_map<uint64_t, Arrived> arrived_;
  uint64_t bytes_ = 0;  // of those that are not over, or not taken
  std::unordered_map<uint64_t, uint64_t> sizes_;
  std::vector<Waiting> waiting_;
  Status closed_;
};

}  // namespace tagflow::net
