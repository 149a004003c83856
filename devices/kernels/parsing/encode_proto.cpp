// EncodeProto: protobuf messages out of tensors, one for each field.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <limits>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/parsing/proto_schema.h"
#include "devices/string_writer.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

namespace pb = google::protobuf;
using pb::internal::WireFormatLite;
using Field = pb::FieldDescriptor;

// Writes a number without a tag.
template <class T>
void write_number(Field::Type type, T value, pb::io::CodedOutputStream* to) {
  using W = WireFormatLite;
  switch (type) {
    case Field::TYPE_DOUBLE:
      return W::WriteDoubleNoTag(double(value), to);
    case Field::TYPE_FLOAT:
      return W::WriteFloatNoTag(float(value), to);
    case Field::TYPE_INT64:
      return W::WriteInt64NoTag(int64_t(value), to);
    case Field::TYPE_SINT64:
      return W::WriteSInt64NoTag(int64_t(value), to);
    case Field::TYPE_SFIXED64:
      return W::WriteSFixed64NoTag(int64_t(value), to);
    case Field::TYPE_UINT64:
      return W::WriteUInt64NoTag(uint64_t(value), to);
    case Field::TYPE_FIXED64:
      return W::WriteFixed64NoTag(uint64_t(value), to);
    case Field::TYPE_INT32:
      return W::WriteInt32NoTag(int32_t(value), to);
    case Field::TYPE_SINT32:
      return W::WriteSInt32NoTag(int32_t(value), to);
    case Field::TYPE_SFIXED32:
      return W::WriteSFixed32NoTag(int32_t(value), to);
    case Field::TYPE_UINT32:
      return W::WriteUInt32NoTag(uint32_t(value), to);
    case Field::TYPE_FIXED32:
      return W::WriteFixed32NoTag(uint32_t(value), to);
    case Field::TYPE_BOOL:
      return W::WriteBoolNoTag(bool(value), to);
    case Field::TYPE_ENUM:
      return W::WriteEnumNoTag(int(value), to);
    default:
      return;
  }
}

// Writes strings of bytes, messages, and the insides of groups.
void write_bytes(const Field& field, std::string_view value,
                 pb::io::CodedOutputStream* to) {
  const int number = field.number();
  if (field.type() == Field::TYPE_GROUP) {
    WireFormatLite::WriteTag(number, WireFormatLite::WIRETYPE_START_GROUP, to);
    to->WriteRaw(value.data(), int(value.size()));
    WireFormatLite::WriteTag(number, WireFormatLite::WIRETYPE_END_GROUP, to);
    return;
  }
  WireFormatLite::WriteTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED,
                           to);
  to->WriteVarint32(uint32_t(value.size()));
  to->WriteRaw(value.data(), int(value.size()));
}

template <class T>
void write_numbers(const Field& field, std::span<const T> values,
                   pb::io::CodedOutputStream* to) {
  const int number = field.number();
  if (!field.is_packed()) {
    const auto wire_type = WireFormatLite::WireTypeForFieldType(
        WireFormatLite::FieldType(field.type()));
    for (const T& value : values) {
      WireFormatLite::WriteTag(number, wire_type, to);
      write_number(field.type(), value, to);
    }
    return;
  }
  if (values.empty()) return;
  std::string packed;
  {
    pb::io::StringOutputStream stream(&packed);
    pb::io::CodedOutputStream inner(&stream);
    for (const T& value : values) write_number(field.type(), value, &inner);
  }
  write_bytes(field, packed, to);
}

// Elements of a tensor, which are values of a field.
struct Values {
  const Field& field;
  const Tensor& tensor;
  int64_t begin, count;

  void write(pb::io::CodedOutputStream* to) const {
    visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
      const auto values =
          tensor.flat<T>().subspan(size_t(begin), size_t(count));
      if constexpr (std::is_same_v<T, std::string>) {
        for (const std::string& value : values) write_bytes(field, value, to);
      } else if constexpr (std::is_arithmetic_v<T>) {
        write_numbers<T>(field, values, to);
      }
    });
  }
  // As many bytes as they take at most.
  int64_t most_bytes() const {
    constexpr int64_t kMostAround = 20;  // tags, a length, or a number
    int64_t bytes = count * kMostAround;
    if (tensor.dtype() == DataType::kString)
      for (const std::string& value :
           tensor.flat<std::string>().subspan(size_t(begin), size_t(count)))
        bytes += int64_t(value.size());
    return bytes;
  }
};

class EncodeProtoKernel final : public BytesKernel {
 public:
  explicit EncodeProtoKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 5), schema_(info) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const NodeSchema::Fields* found,
                   schema_.find(context, /*takes_extensions=*/false));
    const auto& fields = found->fields;
    TAGFLOW_ASSIGN(const Shape batch, batch_of(context, fields));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, batch));
    const StringWriter writer(*output);
    auto* const messages = output->mutable_data<std::string>();
    for (int64_t i = 0; i < output->num_elements(); ++i) {
      context.check_cancelled();
      TAGFLOW_ASSIGN(std::string message,
                     encode(context, fields, found->order, i));
      writer.take(messages[i], std::move(message));
    }
    return {};
  }

 private:
  using Fields = std::vector<const Field*>;

  // The shape of the messages.
  static Result<Shape> batch_of(const KernelContext& context,
                                const Fields& fields) {
    const Tensor& sizes = context.input(0);
    if (size_t(context.num_inputs()) != fields.size() + 1)
      return context.fail("{} field_names for {} values", fields.size(),
                          context.num_inputs() - 1);
    Shape batch;
    for (size_t f = 0; f < fields.size(); ++f) {
      const Tensor& values = context.input(int(f) + 1);
      if (!is_compatible(fields[f]->type(), values.dtype()))
        return context.fail("field {} is of type {}, which {} cannot become",
                            fields[f]->full_name(), fields[f]->type_name(),
                            dtype_name(values.dtype()));
      if (values.rank() < 2)
        return context.fail(
            "values of field {} must have at least two dimensions, not {}",
            fields[f]->full_name(), values.describe());
      Shape shape = values.shape();
      shape.remove_dim(shape.rank() - 1);
      if (f == 0)
        batch = shape;
      else if (shape != batch)
        return context.fail(
            "values must match up to the last dimension, but those of field "
            "{} are {}, not of shape {} and a last dimension",
            fields[f]->full_name(), values.describe(), batch.to_string());
    }
    Shape wanted = batch;
    wanted.add_dim(int64_t(fields.size()));
    if (sizes.shape() == wanted) return batch;
    return context.fail("sizes must be of shape {}, not {}", wanted.to_string(),
                        sizes.describe());
  }

  static Result<std::string> encode(const KernelContext& context,
                                    const Fields& fields,
                                    std::span<const size_t> order,
                                    int64_t message) {
    const auto* const sizes =
        context.input(0).data<int32_t>() + message * int64_t(fields.size());
    std::vector<Values> all;
    int64_t bytes = 0;
    for (const size_t f : order) {
      const Tensor& tensor = context.input(int(f) + 1);
      const int64_t width = tensor.dim(tensor.rank() - 1);
      // As in TensorFlow, a negative size counts as none.
      const int64_t count = std::max(sizes[f], 0);
      if (count > width)
        return context.fail(
            "message {} has {} values of field {}, more than the {} that are "
            "there",
            message, count, fields[f]->full_name(), width);
      all.push_back({*fields[f], tensor, message * width, count});
      bytes += all.back().most_bytes();
    }
    if (bytes > std::numeric_limits<int32_t>::max())
      return error(Code::kResourceExhausted,
                   "[{}] message {} would have 2 GiB or more",
                   context.node().op(), message);
    std::string encoded;
    pb::io::StringOutputStream stream(&encoded);
    pb::io::CodedOutputStream to(&stream);
    for (const Values& values : all) values.write(&to);
    to.Trim();
    return encoded;
  }

  const NodeSchema schema_;
};

}  // namespace

void register_encode_proto_kernels(KernelRegistry& registry) {
  registry.add<EncodeProtoKernel>("EncodeProto");
}

}  // namespace tagflow::devices
