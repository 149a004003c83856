#include "devices/state/saved_contents.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "devices/copy.h"
#include "graph/file/tensor_proto.h"
#include "graph/proto/tensor.pb.h"

namespace tagflow::devices {
namespace {

constexpr size_t kKeyTexts = 3;  // kind, container, name

Result<std::string> pack(const Tensor& tensor) {
  if (!tensor.valid()) return std::string();
  tensorflow::TensorProto proto;
  TAGFLOW_RETURN_IF_ERROR(graph::tensor_to_proto(tensor, &proto));
  std::string bytes;
  if (proto.ByteSizeLong() <= size_t(std::numeric_limits<int32_t>::max()) &&
      proto.SerializeToString(&bytes))
    return bytes;
  return error(Code::kResourceExhausted,
               "{} is too large to be saved as part of a state",
               tensor.describe());
}

Result<Tensor> unpack(const KernelContext& context, const std::string& bytes) {
  if (bytes.empty()) return Tensor();
  tensorflow::TensorProto proto;
  if (bytes.size() > size_t(std::numeric_limits<int32_t>::max()) ||
      !proto.ParseFromString(bytes))
    return damaged_contents(context);
  // pack() leaves no value out; a string takes more memory than its byte.
  constexpr int64_t kMostPerByte = 64;
  int64_t budget = kMostPerByte * int64_t(bytes.size());
  int64_t repeated = 0;
  auto read = graph::tensor_from_proto(proto, &budget, &repeated);
  if (!read.ok()) return damaged_contents(context);
  TAGFLOW_ASSIGN(Tensor tensor, Tensor::allocate(read->dtype(), read->shape(),
                                                 context.allocator()));
  copy_elements(*read, 0, tensor, 0, tensor.num_elements());
  return tensor;
}

}  // namespace

Status damaged_contents(const KernelContext& context) {
  return error(Code::kDataLoss,
               "[{}] node \"{}\": what was saved of the state is damaged",
               context.node().op(), context.node().name());
}

Result<std::vector<int64_t>> ContentsReader::numbers(size_t least) {
  TAGFLOW_ASSIGN(const auto one, tensors(1));
  if (one[0].dtype() != DataType::kInt64 || one[0].rank() != 1 ||
      size_t(one[0].num_elements()) < least)
    return damaged_contents(context_);
  const auto values = one[0].flat<int64_t>();
  return std::vector<int64_t>(values.begin(), values.end());
}

Result<std::span<const Tensor>> ContentsReader::tensors(size_t count) {
  if (count > left_.size()) return damaged_contents(context_);
  const auto first = left_.first(count);
  left_ = left_.subspan(count);
  return first;
}

Status ContentsReader::end() const {
  return left_.empty() ? Status() : damaged_contents(context_);
}

Tensor numbers_tensor(std::span<const int64_t> numbers) {
  return Tensor::of<int64_t>({int64_t(numbers.size())}, numbers);
}

Result<Tensor> pack_contents(const ResourceKey& key,
                             std::span<const Tensor> contents) {
  std::vector<std::string> texts = {key.kind, key.container, key.name};
  for (const Tensor& tensor : contents) {
    TAGFLOW_ASSIGN(texts.emplace_back(), pack(tensor));
  }
  return Tensor::of<std::string>({int64_t(texts.size())}, texts);
}

Result<ResourceKey> packed_key(const Tensor& packed) {
  if (packed.dtype() != DataType::kString || packed.rank() != 1 ||
      packed.num_elements() < int64_t(kKeyTexts))
    return error(Code::kDataLoss, "{} is not the contents of a state",
                 packed.describe());
  const std::string* const texts = packed.data<std::string>();
  return ResourceKey{texts[1], texts[0], texts[2]};
}

Result<std::vector<Tensor>> unpack_contents(const KernelContext& context,
                                            const Tensor& packed) {
  TAGFLOW_RETURN_IF_ERROR(packed_key(packed).status());
  std::vector<Tensor> contents;
  for (const std::string& bytes :
       packed.flat<std::string>().subspan(kKeyTexts)) {
    TAGFLOW_ASSIGN(contents.emplace_back(), unpack(context, bytes));
  }
  return contents;
}

}  // namespace tagflow::devices
