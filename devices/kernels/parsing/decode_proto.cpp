// DecodeProtoV2: fields of protobuf messages as tensors.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <limits>
#include <optional>

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

// Reads a number, and stores it as element `at` of `to`, if that is not null.
using ReadNumber = bool (*)(pb::io::CodedInputStream& from, void* to,
                            int64_t at);

template <WireFormatLite::FieldType kType, class Wire, class Out = Wire>
bool read_number(pb::io::CodedInputStream& from, void* to, int64_t at) {
  Wire value{};
  if (!WireFormatLite::ReadPrimitive<Wire, kType>(&from, &value)) return false;
  if (to != nullptr) static_cast<Out*>(to)[at] = Out(value);
  return true;
}

// `Wider` is the other type that the numbers may be stored as.
template <WireFormatLite::FieldType kType, class Wire, class Wider>
ReadNumber reader_as(DataType dtype) {
  return dtype == kDataTypeOf<Wider> ? read_number<kType, Wire, Wider>
                                     : read_number<kType, Wire>;
}

// Null for strings, messages and groups. REQUIRES: the types are compatible.
ReadNumber reader_of(Field::Type type, DataType dtype) {
  using W = WireFormatLite;
  switch (type) {
    case Field::TYPE_DOUBLE:
      return read_number<W::TYPE_DOUBLE, double>;
    case Field::TYPE_FLOAT:
      return reader_as<W::TYPE_FLOAT, float, double>(dtype);
    case Field::TYPE_INT64:
      return read_number<W::TYPE_INT64, int64_t>;
    case Field::TYPE_SINT64:
      return read_number<W::TYPE_SINT64, int64_t>;
    case Field::TYPE_SFIXED64:
      return read_number<W::TYPE_SFIXED64, int64_t>;
    case Field::TYPE_UINT64:
      return read_number<W::TYPE_UINT64, uint64_t>;
    case Field::TYPE_FIXED64:
      return read_number<W::TYPE_FIXED64, uint64_t>;
    case Field::TYPE_INT32:
      return reader_as<W::TYPE_INT32, int32_t, int64_t>(dtype);
    case Field::TYPE_SINT32:
      return reader_as<W::TYPE_SINT32, int32_t, int64_t>(dtype);
    case Field::TYPE_SFIXED32:
      return reader_as<W::TYPE_SFIXED32, int32_t, int64_t>(dtype);
    case Field::TYPE_UINT32:
      return reader_as<W::TYPE_UINT32, uint32_t, uint64_t>(dtype);
    case Field::TYPE_FIXED32:
      return reader_as<W::TYPE_FIXED32, uint32_t, uint64_t>(dtype);
    case Field::TYPE_BOOL:
      return read_number<W::TYPE_BOOL, bool>;
    case Field::TYPE_ENUM:
      return read_number<W::TYPE_ENUM, int>;
    default:
      return nullptr;
  }
}

// The value of elements that a message lacks.
template <class T>
T default_of(const Field& field) {
  if constexpr (std::is_same_v<T, std::string>) {
    return field.cpp_type() == Field::CPPTYPE_STRING
               ? field.default_value_string()
               : std::string();
  } else {
    switch (field.cpp_type()) {
      case Field::CPPTYPE_INT32:
        return T(field.default_value_int32());
      case Field::CPPTYPE_INT64:
        return T(field.default_value_int64());
      case Field::CPPTYPE_UINT32:
        return T(field.default_value_uint32());
      case Field::CPPTYPE_UINT64:
        return T(field.default_value_uint64());
      case Field::CPPTYPE_DOUBLE:
        return T(field.default_value_double());
      case Field::CPPTYPE_FLOAT:
        return T(field.default_value_float());
      case Field::CPPTYPE_BOOL:
        return T(field.default_value_bool());
      case Field::CPPTYPE_ENUM:
        return T(field.default_value_enum()->number());
      default:
        return T();
    }
  }
}

// One of field_names.
struct DecodedField {
  const Field* field;
  int index;  // among field_names
  ReadNumber read;
  WireFormatLite::WireType wire_type;

  DecodedField(const Field* descriptor, int i, DataType dtype)
      : field(descriptor),
        index(i),
        read(reader_of(descriptor->type(), dtype)),
        wire_type(WireFormatLite::WireTypeForFieldType(
            WireFormatLite::FieldType(descriptor->type()))) {}
};

// Goes through a message once, for `Sink`, which is told of each value. What is
// of another wire type than its field counts as unknown, and is skipped.
template <class Sink>
class Scan {
 public:
  Scan(std::string_view message, std::span<const DecodedField> fields,
       Sink& sink)
      : message_(message),
        from_(reinterpret_cast<const uint8_t*>(message.data()),
              int(message.size())),
        fields_(fields),
        sink_(sink) {}

  // False: the message is damaged.
  bool run() {
    for (;;) {
      const int begin = from_.CurrentPosition();
      const uint32_t tag = from_.ReadTag();
      if (tag == 0) return from_.ConsumedEntireMessage();
      if (!read_field(begin, tag)) return false;
    }
  }

 private:
  const DecodedField* find(int number) const {
    const auto found = std::ranges::lower_bound(
        fields_, number, {},
        [](const DecodedField& each) { return each.field->number(); });
    return found != fields_.end() && found->field->number() == number ? &*found
                                                                      : nullptr;
  }

  bool read_field(int begin, uint32_t tag) {
    const DecodedField* const field =
        find(WireFormatLite::GetTagFieldNumber(tag));
    const auto wire_type = WireFormatLite::GetTagWireType(tag);
    constexpr auto kBytes = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (field != nullptr && field->read != nullptr && wire_type == kBytes)
      return read_packed(*field);
    if (field == nullptr || wire_type != field->wire_type)
      return WireFormatLite::SkipField(&from_, tag);
    if (field->read != nullptr) return sink_.number(*field, from_);
    if (wire_type == kBytes) return read_bytes(*field);
    // A group, with its tags.
    return WireFormatLite::SkipField(&from_, tag) &&
           sink_.bytes(*field, message_.substr(
                                   size_t(begin),
                                   size_t(from_.CurrentPosition() - begin)));
  }

  bool read_bytes(const DecodedField& field) {
    int size = 0;
    if (!from_.ReadVarintSizeAsInt(&size)) return false;
    const auto at = size_t(from_.CurrentPosition());
    if (size_t(size) > message_.size() - at) return false;
    return from_.Skip(size) &&
           sink_.bytes(field, message_.substr(at, size_t(size)));
  }

  bool read_packed(const DecodedField& field) {
    int size = 0;
    if (!from_.ReadVarintSizeAsInt(&size)) return false;
    if (size_t(size) > message_.size() - size_t(from_.CurrentPosition()))
      return false;
    const auto limit = from_.PushLimit(size);
    sink_.begin_packed(field);
    while (from_.BytesUntilLimit() > 0)
      if (!sink_.packed_number(field, from_)) return false;
    from_.PopLimit(limit);
    return true;
  }

  const std::string_view message_;
  pb::io::CodedInputStream from_;
  const std::span<const DecodedField> fields_;
  Sink& sink_;
};

// Counts the values of a message.
class Counter {
 public:
  explicit Counter(int32_t* counts) : counts_(counts) {}

  bool number(const DecodedField& field, pb::io::CodedInputStream& from) {
    count(field);
    return field.read(from, nullptr, 0);
  }
  void begin_packed(const DecodedField&) {}
  bool packed_number(const DecodedField& field,
                     pb::io::CodedInputStream& from) {
    return number(field, from);
  }
  bool bytes(const DecodedField& field, std::string_view) {
    count(field);
    return true;
  }

 private:
  void count(const DecodedField& field) {
    int32_t& count = counts_[field.index];
    count = field.field->is_repeated() ? count + 1 : 1;
  }
  int32_t* const counts_;
};

// Stores the values of a message as rows of the outputs.
class Storer {
 public:
  // A row of an output, of which `filled` elements are set.
  struct Row {
    void* elements;
    const StringWriter* strings;  // null for numbers
    int64_t filled = 0;
  };

  explicit Storer(std::span<Row> rows) : rows_(rows) {}

  bool number(const DecodedField& field, pb::io::CodedInputStream& from) {
    Row& row = rows_[size_t(field.index)];
    return field.read(from, row.elements, place(field, row));
  }
  // The last of several values of a field that is not repeated counts. If it is
  // packed, which only repeated fields should be, it counts for nothing in
  // TensorFlow, and must not follow another.
  void begin_packed(const DecodedField& field) {
    is_lost_ = !field.field->is_repeated();
  }
  bool packed_number(const DecodedField& field,
                     pb::io::CodedInputStream& from) {
    if (!is_lost_) return number(field, from);
    return rows_[size_t(field.index)].filled == 0 &&
           field.read(from, nullptr, 0);
  }
  bool bytes(const DecodedField& field, std::string_view value) {
    Row& row = rows_[size_t(field.index)];
    auto* const to = static_cast<std::string*>(row.elements);
    row.strings->assign(to[place(field, row)], value);
    return true;
  }

 private:
  static int64_t place(const DecodedField& field, Row& row) {
    if (field.field->is_repeated()) return row.filled++;
    row.filled = 1;
    return 0;
  }

  const std::span<Row> rows_;
  bool is_lost_ = false;
};

class DecodeProtoKernel final : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    const auto format = attr_of<std::string>(info, "message_format");
    if (format != "binary" && format != "text")
      return invalid_argument(
          "message_format must be \"binary\" or \"text\", not {:?}", format);
    return std::unique_ptr<Kernel>(new DecodeProtoKernel(info, format));
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const NodeSchema::Fields* found,
                   schema_.find(context, /*takes_extensions=*/true));
    TAGFLOW_ASSIGN(const std::vector<DecodedField> fields,
                   fields_of(context, *found));
    const Tensor& input = context.input(0);
    if (input.num_elements() == 0)
      return context.fail("there must be a message at least, but bytes is {}",
                          input.describe());
    TAGFLOW_ASSIGN(const Messages messages,
                   messages_of(context, *found->schema));
    const size_t width = found->fields.size();
    Shape shape = input.shape();
    shape.add_dim(int64_t(width));
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * sizes, context.allocate_output(0, shape));
    auto* const counts = sizes->mutable_data<int32_t>();
    std::fill_n(counts, sizes->num_elements(), 0);
    for (size_t i = 0; i < messages.views.size(); ++i) {
      context.check_cancelled();
      Counter counter(counts + i * width);
      if (!Scan(messages.views[i], std::span(fields), counter).run())
        return damaged(context, *found, i);
    }
    return store(context, *found, fields, messages, counts);
  }

 private:
  struct Messages {
    std::vector<std::string> own;
    std::vector<std::string_view> views;  // of `own`, or of the input
  };

  DecodeProtoKernel(const KernelInfo& info, std::string_view format)
      : BytesKernel(info, Work::kInputs, 5),
        schema_(info),
        is_text_(format == "text"),
        sanitizes_(attr_of<bool>(info, "sanitize")) {}

  static Status damaged(const KernelContext& context,
                        const NodeSchema::Fields& found, size_t message) {
    return error(Code::kDataLoss,
                 "[{}] message {} is not a message of type {}: its bytes are "
                 "cut off, damaged, or of another kind",
                 context.node().op(), message,
                 found.schema->message().full_name());
  }

  // By their numbers.
  static Result<std::vector<DecodedField>> fields_of(
      const KernelContext& context, const NodeSchema::Fields& found) {
    const auto types = std::span(context.node().output_dtypes()).subspan(1);
    for (size_t i = 0; i < found.fields.size(); ++i) {
      const Field* const field = found.fields[i];
      if (!is_compatible(field->type(), types[i]))
        return context.fail("field {} is of type {}, which cannot become {}",
                            field->full_name(), field->type_name(),
                            dtype_name(types[i]));
    }
    std::vector<DecodedField> fields;
    for (const size_t i : found.order)
      fields.emplace_back(found.fields[i], int(i), types[i]);
    return fields;
  }

  Result<Messages> messages_of(const KernelContext& context,
                               const ProtoSchema& schema) const {
    Messages messages;
    Allocator& memory = context.allocator();
    size_t i = 0;
    for (const std::string& text : context.input(0).flat<std::string>()) {
      context.check_cancelled();
      if (is_text_ || sanitizes_) {
        auto parsed = is_text_ ? schema.parse_text(memory, text)
                               : schema.parse_binary(memory, text);
        if (!parsed.ok())
          return std::move(parsed).status().with_prefix(
              fmt::format("[{}] message {} ", context.node().op(), i));
        messages.own.push_back(*std::move(parsed));
      } else if (text.size() > size_t(std::numeric_limits<int32_t>::max())) {
        return context.fail("message {} has {} bytes, more than 2 GiB", i,
                            text.size());
      } else {
        messages.views.emplace_back(text);
      }
      ++i;
    }
    if (!messages.own.empty())
      messages.views.assign(messages.own.begin(), messages.own.end());
    return messages;
  }

  static Status store(KernelContext& context, const NodeSchema::Fields& found,
                      std::span<const DecodedField> fields,
                      const Messages& messages, const int32_t* counts) {
    const size_t width = found.fields.size();
    std::vector<Tensor*> outputs;
    std::vector<StringWriter> writers;
    std::vector<int64_t> widths;
    for (size_t f = 0; f < width; ++f) {
      int64_t most = 1;
      for (size_t i = 0; i < messages.views.size(); ++i)
        most = std::max<int64_t>(most, counts[i * width + f]);
      Shape shape = context.input(0).shape();
      shape.add_dim(most);
      TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
      TAGFLOW_ASSIGN(outputs.emplace_back(),
                     context.allocate_output(int(f) + 1, shape));
      widths.push_back(most);
    }
    for (Tensor* output : outputs) writers.emplace_back(*output);
    for (size_t i = 0; i < messages.views.size(); ++i) {
      context.check_cancelled();
      std::vector<Storer::Row> rows;
      for (size_t f = 0; f < width; ++f)
        rows.push_back(row_of(*outputs[f], writers[f], i, widths[f]));
      Storer storer(rows);
      if (!Scan(messages.views[i], fields, storer).run())
        return damaged(context, found, i);
      for (size_t f = 0; f < width; ++f)
        fill_up(*found.fields[f], outputs[f]->dtype(), rows[f], widths[f]);
    }
    return {};
  }

  static Storer::Row row_of(Tensor& output, const StringWriter& writer,
                            size_t message, int64_t width) {
    Storer::Row row{nullptr, nullptr};
    visit_dtype(output.dtype(), [&]<class T>(TypeTag<T>) {
      row.elements = output.mutable_data<T>() + int64_t(message) * width;
      if constexpr (std::is_same_v<T, std::string>) row.strings = &writer;
    });
    return row;
  }

  static void fill_up(const Field& field, DataType dtype,
                      const Storer::Row& row, int64_t width) {
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
        const T value = default_of<T>(field);
        auto* const elements = static_cast<T*>(row.elements);
        for (int64_t at = row.filled; at < width; ++at)
          if constexpr (std::is_same_v<T, std::string>)
            row.strings->assign(elements[at], value);
          else
            elements[at] = value;
      }
    });
  }

  const NodeSchema schema_;
  const bool is_text_, sanitizes_;
};

}  // namespace

void register_decode_proto_kernels(KernelRegistry& registry) {
  registry.add<DecodeProtoKernel>("DecodeProtoV2");
}

}  // namespace tagflow::devices
