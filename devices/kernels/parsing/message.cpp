#include "devices/kernels/parsing/message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>

#include "graph/file/tensor_proto.h"
#include "graph/proto/tensor.pb.h"

namespace tagflow::devices {
namespace {

constexpr int64_t kMostMessageBytes = std::numeric_limits<int32_t>::max();

void write_content(const Tensor& strings, std::string* content) {
  google::protobuf::io::StringOutputStream stream(content);
  google::protobuf::io::CodedOutputStream to(&stream);
  for (const std::string& text : strings.flat<std::string>())
    to.WriteVarint64(text.size());
  for (const std::string& text : strings.flat<std::string>())
    to.WriteRaw(text.data(), int(text.size()));
}

// Of strings, with their lengths; too large if one alone is.
int64_t content_bytes(const Tensor& strings) {
  constexpr int64_t kLength = 10;
  int64_t bytes = 0;
  for (const std::string& text : strings.flat<std::string>()) {
    bytes += int64_t(text.size()) + kLength;
    if (bytes > kMostMessageBytes) break;
  }
  return bytes;
}

Status too_large(const KernelContext& context, const Tensor& tensor) {
  return context.fail("{} is too large for a message", tensor.describe());
}

}  // namespace

Result<Tensor> parse_tensor(const KernelContext& context,
                            const std::string& bytes, int64_t* repeated) {
  tensorflow::TensorProto proto;
  if (int64_t(bytes.size()) > kMostMessageBytes ||
      !proto.ParseFromString(bytes))
    return context.fail("{} bytes are not a TensorProto", bytes.size());
  // A value takes at most so much memory for each of its bytes.
  constexpr int64_t kMostPerByte = 64;
  int64_t budget = kMostPerByte * int64_t(bytes.size()) + *repeated;
  auto read = graph::tensor_from_proto(proto, &budget, repeated);
  if (read.ok()) return read;
  if (read.status().code() == Code::kResourceExhausted)
    return read.status().with_prefix(fmt::format("[{}] ", context.node().op()));
  return context.fail("the TensorProto has no tensor: {}",
                      read.status().message());
}

Result<std::string> tensor_message(const KernelContext& context,
                                   const Tensor& tensor, StringForm form) {
  const bool is_text = tensor.dtype() == DataType::kString;
  tensorflow::TensorProto proto;
  if (is_text && form == StringForm::kContent) {
    if (content_bytes(tensor) > kMostMessageBytes)
      return too_large(context, tensor);
    proto.set_dtype(tensorflow::DataType(tensor.dtype()));
    graph::shape_to_proto(tensor.shape(), proto.mutable_tensor_shape());
    write_content(tensor, proto.mutable_tensor_content());
  } else if (is_text || !is_plain(tensor.dtype())) {
    TAGFLOW_RETURN_IF_ERROR(
        graph::tensor_to_proto(tensor, &proto)
            .with_prefix(fmt::format("[{}] ", context.node().op())));
  } else {
    proto.set_dtype(tensorflow::DataType(tensor.dtype()));
    graph::shape_to_proto(tensor.shape(), proto.mutable_tensor_shape());
    proto.set_tensor_content(tensor.raw(), tensor.bytes());
  }
  std::string bytes;
  if (proto.ByteSizeLong() > size_t(kMostMessageBytes) ||
      !proto.SerializeToString(&bytes))
    return too_large(context, tensor);
  return bytes;
}

}  // namespace tagflow::devices
