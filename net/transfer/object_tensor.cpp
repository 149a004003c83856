#include "net/transfer/object_tensor.h"

#include <algorithm>
#include <utility>

#include "graph/fault.h"
#include "net/wire/tensor.h"

namespace tagflow::net {

BulkLink::Object object_of(ObjectId id, const Tensor& tensor) {
  const TensorInfo info = info_of(tensor);
  const Begin begin{id, ObjectKind::kTensor, info.bytes, info};
  if (is_plain(info.dtype)) {
    // Small elements are in the tensor itself.
    const auto owner = std::make_shared<const Tensor>(tensor);
    const auto* bytes = static_cast<const char*>(owner->raw());
    return {begin, {bytes, size_t(info.bytes)}, owner};
  }
  Writer writer;
  write_elements(writer, tensor);
  const auto owner =
      std::make_shared<const std::string>(std::move(writer.bytes()));
  return {begin, *owner, owner};
}

Result<std::shared_ptr<TensorInput>> TensorInput::begin(const Begin& begin) {
  return guarded("net", [&]() -> Result<std::shared_ptr<TensorInput>> {
    if (begin.kind != ObjectKind::kTensor)
      return error(Code::kDataLoss, "[net] an object is not a tensor");
    if (begin.bytes > kLargestObject)
      return error(Code::kResourceExhausted,
                   "[net] a tensor of {} bytes is larger than the limit of {}",
                   begin.bytes, kLargestObject);
    const auto input = std::make_shared<TensorInput>();
    input->info_ = begin.tensor;
    if (is_plain(begin.tensor.dtype)) {
      TAGFLOW_ASSIGN(input->tensor_,
                     Tensor::allocate(begin.tensor.dtype, begin.tensor.shape));
    } else {
      input->bytes_.resize(begin.bytes);
    }
    return input;
  });
}

BulkLink::Destination TensorInput::destination(
    const std::shared_ptr<TensorInput>& input) {
  if (!is_plain(input->info_.dtype))
    return {{input->bytes_.data(), input->bytes_.size()}, input};
  return {{static_cast<char*>(input->tensor_.mutable_raw()),
           size_t(input->info_.bytes)},
          input};
}

Result<Tensor> TensorInput::finish() {
  return guarded("net", [&]() -> Result<Tensor> {
    if (is_plain(info_.dtype)) {
      TAGFLOW_RETURN_IF_ERROR(check_elements(tensor_));
      return std::move(tensor_);
    }
    Reader reader(bytes_, "tensor", kLargestObject);
    Tensor tensor = read_elements(reader, info_);
    TAGFLOW_RETURN_IF_ERROR(reader.finish());
    return tensor;
  });
}

Result<BulkLink::Destination> TensorInputs::begin(const Begin& begin) {
  {
    const std::lock_guard lock(mutex_);
    TAGFLOW_RETURN_IF_ERROR(closed_);
    // Taken as over, the link would still write to it.
    if (arrived_.contains(uint64_t(begin.object)) ||
        sizes_.contains(uint64_t(begin.object)))
      return error(Code::kDataLoss, "[net] object {} begins twice",
                   uint64_t(begin.object));
    if (sizes_.size() >= kMostTensors)
      return error(Code::kResourceExhausted,
                   "[net] {} tensors wait already, the limit", kMostTensors);
    if (begin.bytes > kMostBytes - bytes_)
      return error(Code::kResourceExhausted,
                   "[net] tensors of {} bytes wait already; {} more are above "
                   "the limit of {}",
                   bytes_, begin.bytes, kMostBytes);
    bytes_ += begin.bytes;
    sizes_.emplace(uint64_t(begin.object), begin.bytes);
  }
  auto input = TensorInput::begin(begin);
  if (!input.ok()) {
    // Whoever takes it is told.
    end(begin.object, input.status());
    return input.status();
  }
  const std::lock_guard lock(mutex_);
  arrived_[uint64_t(begin.object)].input = *input;
  return TensorInput::destination(*input);
}

void TensorInputs::end(ObjectId object, const Status& status) {
  std::vector<std::pair<Then, Result<std::vector<Tensor>>>> ready;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    Arrived& arrived = arrived_[uint64_t(object)];
    arrived.is_over = true;
    arrived.status = status;
    std::erase_if(waiting_, [&](Waiting& waiting) {
      if (!is_ready(waiting)) return false;
      ready.emplace_back(std::move(waiting.then), collect(waiting));
      return true;
    });
  }
  for (auto& [then, tensors] : ready) then(std::move(tensors));
}

void TensorInputs::take(std::vector<ObjectId> objects, Then then) {
  Waiting waiting{std::move(objects), std::move(then)};
  std::unique_lock lock(mutex_);
  if (closed_.ok() && !is_ready(waiting)) {
    waiting_.push_back(std::move(waiting));
    return;
  }
  Result<std::vector<Tensor>> tensors =
      closed_.ok() ? collect(waiting) : Result<std::vector<Tensor>>(closed_);
  lock.unlock();
  waiting.then(std::move(tensors));
}

bool TensorInputs::is_ready(const Waiting& waiting) const {
  return std::ranges::all_of(waiting.objects, [this](ObjectId object) {
    const auto found = arrived_.find(uint64_t(object));
    return found != arrived_.end() && found->second.is_over;
  });
}

// REQUIRES: they are ready, and the lock is held
Result<std::vector<Tensor>> TensorInputs::collect(const Waiting& waiting) {
  std::vector<Tensor> tensors;
  Status failure;
  for (const ObjectId object : waiting.objects) {
    auto node = arrived_.extract(uint64_t(object));
    if (const auto size = sizes_.find(uint64_t(object)); size != sizes_.end()) {
      bytes_ -= size->second;
      sizes_.erase(size);
    }
    if (!failure.ok()) continue;
    if (node.empty()) {
      failure = error(Code::kDataLoss, "[net] a tensor is named twice");
    } else if (!node.mapped().status.ok()) {
      failure = node.mapped().status;
    } else {
      Result<Tensor> tensor = node.mapped().input->finish();
      if (tensor.ok()) {
        tensors.push_back(std::move(*tensor));
      } else {
        failure = tensor.status();
      }
    }
  }
  if (!failure.ok()) return failure;
  return tensors;
}

void TensorInputs::close(const Status& status) {
  std::vector<Waiting> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = status;
    waiting = std::move(waiting_);
    arrived_.clear();
  }
  for (Waiting& each : waiting) each.then(status);
}

}  // namespace tagflow::net
