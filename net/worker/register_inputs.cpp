#include "net/worker/register_inputs.h"

#include <utility>

namespace tagflow::net {

RegisterInputs::Bytes::Bytes(std::shared_ptr<Count> held, size_t size)
    : held_(std::move(held)),
      size_(size),
      data_(std::make_unique_for_overwrite<char[]>(size)) {
  *held_ += size_;
}

RegisterInputs::Bytes::~Bytes() { *held_ -= size_; }

Result<BulkLink::Destination> RegisterInputs::begin(const Begin& begin) {
  const std::lock_guard lock(mutex_);
  const uint64_t others = *held_;
  if (others > most_bytes_ || begin.bytes > most_bytes_ - others)
    return error(Code::kResourceExhausted,
                 "[net] registrations of {} bytes are here; {} more are above "
                 "the limit of {}",
                 others, begin.bytes, most_bytes_);
  if (begun_.contains(uint64_t(begin.object)))
    return error(Code::kDataLoss, "[net] object {} begins twice",
                 uint64_t(begin.object));
  auto bytes = std::make_shared<Bytes>(held_, size_t(begin.bytes));
  begun_.emplace(uint64_t(begin.object), bytes);
  return BulkLink::Destination{{bytes->data(), size_t(begin.bytes)}, bytes};
}

std::shared_ptr<const RegisterInputs::Bytes> RegisterInputs::end(
    ObjectId object) {
  const std::lock_guard lock(mutex_);
  const auto node = begun_.extract(uint64_t(object));
  return node.empty() ? nullptr : std::move(node.mapped());
}

}  // namespace tagflow::net
