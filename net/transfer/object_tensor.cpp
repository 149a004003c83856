#include "net/transfer/object_tensor.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "graph/fault.h"
#include "net/wire/tensor.h"

namespace tagflow::net {

uint64_t memory_of(const Tensor& tensor) {
  uint64_t bytes = tensor.bytes();
  if (tensor.dtype() != DataType::kString) return bytes;
  for (const std::string& text : tensor.flat<std::string>())
    bytes += text.size();
  return bytes;
}

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
      // Not written: a peer may announce much, and send nothing.
      input->bytes_ = std::make_unique_for_overwrite<char[]>(begin.bytes);
    }
    return input;
  });
}

BulkLink::Destination TensorInput::destination(
    const std::shared_ptr<TensorInput>& input) {
  if (!is_plain(input->info_.dtype))
    return {{input->bytes_.get(), size_t(input->info_.bytes)}, input};
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
    const std::string_view bytes(bytes_.get(), size_t(info_.bytes));
    Reader reader(bytes, "tensor", kLargestObject);
    Tensor tensor = read_elements(reader, info_);
    TAGFLOW_RETURN_IF_ERROR(reader.finish());
    return tensor;
  });
}

bool TensorInput::is_slow() const {
  // A byte may become a string.
  constexpr uint64_t kMostStrings = uint64_t{64} << 10;
  constexpr uint64_t kMostBools = uint64_t{1} << 20;
  if (!is_plain(info_.dtype)) return info_.bytes > kMostStrings;
  return info_.dtype == DataType::kBool && info_.bytes > kMostBools;
}

namespace {

// What a tensor takes until it is given out: strings are there twice.
// REQUIRES: begin.bytes is not close to 2^64
uint64_t memory_of(const Begin& begin) {
  if (begin.kind != ObjectKind::kTensor || is_plain(begin.tensor.dtype))
    return begin.bytes;
  return begin.bytes +
         uint64_t(begin.tensor.shape.num_elements()) * sizeof(std::string);
}

}  // namespace

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
  // Not more elements than bytes: so this does not overflow.
  const uint64_t bytes =
      begin.bytes > most_bytes_ ? begin.bytes : memory_of(begin);
  if (bytes > most_bytes_ - bytes_)
    return error(Code::kResourceExhausted,
                 "[net] tensors of {} bytes wait already; {} more are above "
                 "the limit of {}",
                 bytes_, bytes, most_bytes_);
  added.bytes = bytes;
  bytes_ += bytes;
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
  std::vector<Ready> ready;
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
      ready.push_back(collect(waiting));
      return true;
    });
  }
  deliver(std::move(ready));
}

void TensorInputs::take(std::vector<ObjectId> objects, Then then) {
  Waiting waiting{std::move(objects), std::move(then)};
  std::unique_lock lock(mutex_);
  Status refused = closed_;
  if (refused.ok() && is_ready(waiting)) {
    std::vector<Ready> ready;
    ready.push_back(collect(waiting));
    lock.unlock();
    return deliver(std::move(ready));
  }
  if (refused.ok() && waiting_.size() >= kMostWaiting)
    refused = error(Code::kResourceExhausted,
                    "[net] {} messages wait for their tensors, the limit",
                    waiting_.size());
  if (refused.ok()) return waiting_.push_back(std::move(waiting));
  lock.unlock();
  waiting.then(std::move(refused));
}

bool TensorInputs::is_ready(const Waiting& waiting) const {
  return std::ranges::all_of(waiting.objects, [this](ObjectId object) {
    const auto found = arrived_.find(uint64_t(object));
    return found == arrived_.end() ? uint64_t(object) <= gone_
                                   : found->second.is_over;
  });
}

TensorInputs::Ready TensorInputs::collect(Waiting& waiting) {
  Ready ready{.then = std::move(waiting.then)};
  for (const ObjectId object : waiting.objects) {
    auto node = arrived_.extract(uint64_t(object));
    if (!node.empty()) ready.bytes += node.mapped().bytes;
    if (!ready.failure.ok()) continue;
    if (node.empty()) {
      ready.failure =
          uint64_t(object) <= gone_
              ? error(Code::kResourceExhausted,
                      "[net] a tensor was not kept: too many waited, or the "
                      "message that names it came too late")
              : error(Code::kDataLoss, "[net] a tensor is named twice");
    } else if (!node.mapped().status.ok()) {
      ready.failure = node.mapped().status;
    } else {
      ready.inputs.push_back(std::move(node.mapped().input));
    }
  }
  return ready;
}

void TensorInputs::deliver(std::vector<Ready> all) {
  for (Ready& ready : all) {
    const bool is_slow =
        ready.failure.ok() &&
        std::ranges::any_of(ready.inputs, &TensorInput::is_slow);
    if (!is_slow) {
      call(std::move(ready));
      continue;
    }
    std::unique_lock lock(mutex_);
    const auto started = guarded([&] {
      if (!is_joined_ && !thread_.joinable())
        thread_ = std::thread([this] { work(); });
    });
    // Without a thread, others wait.
    if (is_joined_ || !started.ok()) {
      lock.unlock();
      call(std::move(ready));
      continue;
    }
    slow_.push_back(std::move(ready));
    changed_.notify_all();
  }
}

void TensorInputs::call(Ready ready) {
  std::vector<Tensor> tensors;
  for (const auto& input : ready.inputs) {
    if (!ready.failure.ok()) break;
    Result<Tensor> tensor = input->finish();
    if (tensor.ok()) {
      tensors.push_back(std::move(*tensor));
    } else {
      ready.failure = tensor.status();
    }
  }
  ready.inputs.clear();
  {
    const std::lock_guard lock(mutex_);
    bytes_ -= ready.bytes;
  }
  if (!ready.failure.ok()) return ready.then(std::move(ready.failure));
  ready.then(std::move(tensors));
}

void TensorInputs::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_joined_ || !slow_.empty(); });
    if (slow_.empty()) return;
    Ready ready = std::move(slow_.front());
    slow_.pop_front();
    // Nobody waits any more for what takes long.
    if (!closed_.ok()) ready.failure = closed_;
    lock.unlock();
    static_cast<void>(guarded([&] { call(std::move(ready)); }));
    lock.lock();
  }
}

void TensorInputs::close(const Status& status) {
  std::vector<Waiting> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = status;
    waiting = std::move(waiting_);
    for (const auto& [object, arrived] : arrived_) bytes_ -= arrived.bytes;
    arrived_.clear();
  }
  for (Waiting& each : waiting) each.then(status);
}

void TensorInputs::join() {
  {
    const std::lock_guard lock(mutex_);
    is_joined_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace tagflow::net
