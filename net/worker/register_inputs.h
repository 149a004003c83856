// RegisterInputs: registrations that come over the bulk link.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "net/link/bulk_link.h"

namespace tagflow::net {

// All together take so many bytes at most, from the begin of each until nobody
// holds its bytes. Thread-safe.
class RegisterInputs {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{1} << 31;

  // The bytes of one. It may outlive the inputs.
  class Bytes;

  explicit RegisterInputs(uint64_t most_bytes = kMostBytes)
      : most_bytes_(most_bytes) {}

  // Takes the memory for one, which is not written. ResourceExhausted if it
  // would be too much; DataLoss for an object that has begun. May throw
  // std::bad_alloc.
  Result<BulkLink::Destination> begin(const Begin& begin);
  // Its bytes, which are all there if the link says so; null if the object has
  // not begun here.
  std::shared_ptr<const Bytes> end(ObjectId object);

 private:
  using Count = std::atomic<uint64_t>;

  const uint64_t most_bytes_;
  const std::shared_ptr<Count> held_ = std::make_shared<Count>(0);  // bytes
  std::mutex mutex_;  // guards the below
  std::map<uint64_t, std::shared_ptr<Bytes>> begun_;
};

class RegisterInputs::Bytes {
 public:
  Bytes(std::shared_ptr<Count> held, size_t size);
  ~Bytes();
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  char* data() { return data_.get(); }
  std::string_view view() const { return {data_.get(), size_}; }

 private:
  const std::shared_ptr<Count> held_;
  const size_t size_;
  const std::unique_ptr<char[]> data_;
};

}  // namespace tagflow::net
