#include "net/transfer/object_tensor.h"

#include <algorithm>
#include <unordered_set>
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
  Status refused;
  {
    const std::lock_guard lock(mutex_);
    TAGFLOW_RETURN_IF_ERROR(closed_);
    // Taken as over, the link would still write to it.
    if (arrived_.contains(uint64_t(begin.object)))
      return error(Code::kDataLoss, "[net] object {} begins twice",
                   uint64_t(begin.object));
    forget_old(Clock::now());
    refused = add(begin);
  }
  if (refused.ok()) {
    auto input = TensorInput::begin(begin);
    if (input.ok()) {
      const std::lock_guard lock(mutex_);
      // It may have been closed meanwhile.
      if (const auto found = arrived_.find(uint64_t(begin.object));
          found != arrived_.end())
        found->second.input = *input;
      return TensorInput::destination(*input);
    }
    refused = input.status();
  }
  // The link tells nobody.
  end(begin.object, refused);
  return refused;
}

Status TensorInputs::add(const Begin& begin) {
  if (arrived_.size() >= kMostTensors) {
    gone_ = std::max(gone_, uint64_t(begin.object));
    return error(Code::kResourceExhausted,
                 "[net] {} tensors wait already, the limit", kMostTensors);
  }
  Arrived& added = arrived_[uint64_t(begin.object)];
  added.begun = Clock::now();
  if (begin.bytes > most_bytes_ - bytes_)
    return error(Code::kResourceExhausted,
                 "[net] tensors of {} bytes wait already; {} more are above "
                 "the limit of {}",
                 bytes_, begin.bytes, most_bytes_);
  added.bytes = begin.bytes;
  bytes_ += begin.bytes;
  return {};
}

void TensorInputs::forget_old(Clock::time_point now) {
  if (now < next_look_) return;
  next_look_ = now + patience_;
  std::unordered_set<uint64_t> named;
  for (const Waiting& waiting : waiting_)
    for (const ObjectId object : waiting.objects)
      named.insert(uint64_t(object));
  std::erase_if(arrived_, [&](const auto& entry) {
    const auto& [object, arrived] = entry;
    if (now < arrived.begun + patience_ || named.contains(object)) return false;
    bytes_ -= arrived.bytes;
    gone_ = std::max(gone_, object);
    return true;
  });
}

void TensorInputs::end(ObjectId object, const Status& status) {
  std::vector<std::pair<Then, Result<std::vector<Tensor>>>> ready;
  {
    const std::lock_guard lock(mutex_);
    // Unless it was not kept.
    if (const auto found = arrived_.find(uint64_t(object));
        found != arrived_.end()) {
      found->second.is_over = true;
      found->second.status = status;
    }
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
    return found == arrived_.end() ? uint64_t(object) <= gone_
                                   : found->second.is_over;
  });
}

Result<std::vector<Tensor>> TensorInputs::collect(const Waiting& waiting) {
  std::vector<Tensor> tensors;
  Status failure;
  for (const ObjectId object : waiting.objects) {
    auto node = arrived_.extract(uint64_t(object));
    if (!node.empty()) bytes_ -= node.mapped().bytes;
    if (!failure.ok()) continue;
    if (node.empty()) {
      failure = uint64_t(object) <= gone_
                    ? error(Code::kResourceExhausted,
                            "[net] a tensor was not kept: too many waited, or "
                            "the message that names it came too late")
                    : error(Code::kDataLoss, "[net] a tensor is named twice");
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
