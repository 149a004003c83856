#include "devices/kernels/parsing/proto_schema.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "devices/files/files.h"
#include "devices/files/host_access.h"
#include "devices/kernel_inputs.h"
#include "devices/kernels/parsing/proto_nesting.h"
#include "graph/ops/parsing_proto.h"

namespace tagflow::devices {

namespace {

namespace pb = google::protobuf;

constexpr size_t kMostBytes = std::numeric_limits<int32_t>::max();
constexpr uint64_t kMostDescriptorBytes = uint64_t(1) << 26;
// The library recurses along chains of types and of files; so many fit into
// half of a stack of 1 MiB.
constexpr size_t kMostTypes = 1024, kMostFiles = 4096;

// Keeps the first error, which the library would print.
class FirstError final : public pb::DescriptorPool::ErrorCollector,
                         public pb::io::ErrorCollector {
 public:
  void AddError(const std::string& file, const std::string& element,
                const pb::Message*, ErrorLocation,
                const std::string& message) override {
    if (text_.empty())
      text_ = fmt::format("\"{}\", {}: {}", file, element, message);
  }
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty())
      text_ =
          fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
  void AddWarning(const std::string&, const std::string&, const pb::Message*,
                  ErrorLocation, const std::string&) override {}
  void AddWarning(int, int, const std::string&) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

bool parse_partial(std::string_view bytes, pb::Message* message) {
  if (bytes.size() > kMostBytes) return false;
  pb::io::CodedInputStream from(reinterpret_cast<const uint8_t*>(bytes.data()),
                                int(bytes.size()));
  from.SetRecursionLimit(kMostNesting);
  return message->MergePartialFromCodedStream(&from) &&
         from.ConsumedEntireMessage();
}

Result<std::string> read_file(const KernelContext& context,
                              const std::string& name) {
  TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
  TAGFLOW_ASSIGN(const std::string path, host->path_to_read(name));
  auto bytes = checkpoint::read_whole(checkpoint::local_files(), path,
                                      kMostDescriptorBytes);
  if (bytes.ok()) return bytes;
  return context.fail("descriptor_source: {}", bytes.status().message());
}

template <class Types>
size_t number_of(const Types& types) {
  size_t number = size_t(types.size());
  for (const pb::DescriptorProto& type : types)
    number += number_of(type.nested_type());
  return number;
}

// Options that are still text, which the library would parse however deep it
// is nested. A finished descriptor has none. Recurses as deep as the parser
// that made the message.
bool has_text_of_options(const pb::Message& message) {
  if (message.GetDescriptor() == pb::UninterpretedOption::descriptor())
    return true;
  const pb::Reflection& reflection = *message.GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (has_text_of_options(reflection.GetMessage(message, field)))
        return true;
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      if (has_text_of_options(reflection.GetRepeatedMessage(message, field, i)))
        return true;
  }
  return false;
}

// Refuses descriptors with which the library would overflow the stack.
Status check_set(const KernelContext& context,
                 const pb::FileDescriptorSet& set) {
  if (size_t(set.file_size()) > kMostFiles)
    return context.fail("descriptor_source: {} files are more than {}",
                        set.file_size(), kMostFiles);
  size_t types = 0;
  for (const pb::FileDescriptorProto& file : set.file())
    types += number_of(file.message_type());
  if (types > kMostTypes)
    return context.fail("descriptor_source: {} message types are more than {}",
                        types, kMostTypes);
  if (has_text_of_options(set))
    return context.fail("descriptor_source: there are uninterpreted options");
  return {};
}

}  // namespace

Status ProtoSchema::load(const KernelContext& context,
                         const std::string& source) {
  if (graph::is_local_source(source)) {
    pool_ = pb::DescriptorPool::generated_pool();
    // Tables are made when a file is first used: here, of all that is known.
    (void)pb::FileDescriptorSet::descriptor();
    return {};
  }
  const bool is_file = graph::is_file_source(source);
  std::string bytes;
  if (is_file) {
    TAGFLOW_ASSIGN(bytes, read_file(context, source));
  } else {
    bytes = source.substr(graph::kBytesSource.size());
    if (bytes.size() > kMostDescriptorBytes)
      return context.fail("descriptor_source: {} bytes are more than {}",
                          bytes.size(), kMostDescriptorBytes);
  }
  // The largest of a descriptor's messages.
  constexpr size_t kWidest =
      std::max(sizeof(pb::FileDescriptorProto), sizeof(pb::FileOptions));
  MemoryCharge charge;
  TAGFLOW_RETURN_IF_ERROR(context.count(
      charge,
      kWidest * most_messages(bytes, *pb::FileDescriptorSet::descriptor()),
      [] { return "a parser of the descriptor"; }));
  pb::FileDescriptorSet set;
  if (!parse_partial(bytes, &set) || !set.IsInitialized())
    return context.fail(
        "descriptor_source: {} are not a FileDescriptorSet",
        is_file ? fmt::format("the {} bytes of \"{}\"", bytes.size(), source)
                : fmt::format("{} bytes", bytes.size()));
  TAGFLOW_RETURN_IF_ERROR(check_set(context, set));
  own_pool_ = std::make_unique<pb::DescriptorPool>();
  pool_ = own_pool_.get();
  for (const pb::FileDescriptorProto& each : set.file()) {
    FirstError errors;
    if (own_pool_->BuildFileCollectingErrors(each, &errors) == nullptr)
      return context.fail("descriptor_source: {}", errors.text());
  }
  return {};
}

Result<std::unique_ptr<ProtoSchema>> ProtoSchema::make(
    const KernelContext& context, const std::string& source,
    const std::string& message_type) {
  std::unique_ptr<ProtoSchema> schema(new ProtoSchema);
  TAGFLOW_RETURN_IF_ERROR(schema->load(context, source));
  schema->message_ = schema->pool_->FindMessageTypeByName(message_type);
  if (schema->message_ == nullptr)
    return context.fail("there is no message type \"{}\" in descriptor_source",
                        message_type);
  schema->factory_ = std::make_unique<pb::DynamicMessageFactory>(schema->pool_);
  return schema;
}

Result<const pb::FieldDescriptor*> ProtoSchema::field(
    const KernelContext& context, const std::string& name) const {
  const pb::FieldDescriptor* field = message_->FindFieldByName(name);
  if (field == nullptr) field = pool_->FindExtensionByName(name);
  if (field != nullptr && field->containing_type() == message_) return field;
  return context.fail("message type {} has no field \"{}\"",
                      message_->full_name(), name);
}

Result<std::string> ProtoSchema::bytes_of(const pb::Message& message) const {
  if (!message.IsInitialized())
    return error(Code::kDataLoss, "has not all required fields of {}: no {}",
                 message_->full_name(), message.InitializationErrorString());
  std::string bytes;
  if (message.ByteSizeLong() > kMostBytes)
    return error(Code::kResourceExhausted, "has more than 2 GiB");
  pb::io::StringOutputStream stream(&bytes);
  pb::io::CodedOutputStream to(&stream);
  to.SetSerializationDeterministic(true);
  message.SerializeWithCachedSizes(&to);
  to.Trim();
  return bytes;
}

size_t ProtoSchema::widest() const {
  std::call_once(once_, [this] {
    std::set<const pb::Descriptor*> known{message_};
    std::vector<const pb::Descriptor*> next{message_};
    const auto add = [&](const pb::FieldDescriptor* field) {
      const pb::Descriptor* const type = field->message_type();
      if (type != nullptr && known.insert(type).second) next.push_back(type);
    };
    while (!next.empty()) {
      const pb::Descriptor* const type = next.back();
      next.pop_back();
      const size_t bytes = factory_->GetPrototype(type)->SpaceUsedLong();
      widest_ = std::max(widest_, bytes);
      for (int i = 0; i < type->field_count(); ++i) add(type->field(i));
      std::vector<const pb::FieldDescriptor*> extensions;
      pool_->FindAllExtensions(type, &extensions);
      std::ranges::for_each(extensions, add);
    }
  });
  return widest_;
}

Status ProtoSchema::make_room(Allocator& memory, size_t messages,
                              MemoryCharge& charge) const {
  const size_t bytes = messages * widest();
  if (charge.set(memory, bytes)) return {};
  return out_of_memory(memory, fmt::format("a parser of {} messages", messages),
                       bytes)
      .with_prefix("cannot be read: ");
}

Result<std::string> ProtoSchema::parse_binary(Allocator& memory,
                                              std::string_view bytes) const {
  MemoryCharge charge;
  if (bytes.size() <= kMostBytes)
    TAGFLOW_RETURN_IF_ERROR(
        make_room(memory, most_messages(bytes, *message_), charge));
  const std::unique_ptr<pb::Message> message(
      factory_->GetPrototype(message_)->New());
  if (!parse_partial(bytes, message.get()))
    return error(Code::kDataLoss, "has {} bytes that are not of type {}",
                 bytes.size(), message_->full_name());
  return bytes_of(*message);
}

Result<std::string> ProtoSchema::parse_text(Allocator& memory,
                                            std::string_view text) const {
  const auto opens = [](char c) { return c == '{' || c == '<'; };
  MemoryCharge charge;
  TAGFLOW_RETURN_IF_ERROR(make_room(
      memory, 1 + size_t(std::ranges::count_if(text, opens)), charge));
  const std::unique_ptr<pb::Message> message(
      factory_->GetPrototype(message_)->New());
  FirstError errors;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(kMostNesting);
  parser.AllowPartialMessage(true);
  bool is_read = text.size() <= kMostBytes;
  if (is_read) {
    pb::io::ArrayInputStream stream(text.data(), int(text.size()));
    is_read = parser.Parse(&stream, message.get());
  }
  if (!is_read)
    return error(Code::kDataLoss, "has no text of type {}: {}",
                 message_->full_name(), errors.text());
  return bytes_of(*message);
}

// --- Of a node --------------------------------------------------------------

NodeSchema::NodeSchema(const KernelInfo& info)
    : source_(attr_of<std::string>(info, "descriptor_source")),
      message_type_(attr_of<std::string>(info, "message_type")),
      names_(attr_of<std::vector<std::string>>(info, "field_names")) {}

Result<const NodeSchema::Fields*> NodeSchema::find(
    const KernelContext& context, bool takes_extensions) const {
  {
    const std::lock_guard lock(mutex_);
    if (found_ != nullptr) return found_.get();
  }
  // Without the lock, under which others would wait for a file.
  auto fields = std::make_unique<Fields>();
  TAGFLOW_ASSIGN(fields->schema,
                 ProtoSchema::make(context, source_, message_type_));
  for (const std::string& name : names_) {
    TAGFLOW_ASSIGN(const pb::FieldDescriptor* field,
                   fields->schema->field(context, name));
    if (field->is_extension() && !takes_extensions)
      return context.fail("field \"{}\" of message type {} is an extension",
                          name, message_type_);
    fields->order.push_back(fields->fields.size());
    fields->fields.push_back(field);
  }
  std::ranges::stable_sort(
      fields->order, {}, [&](size_t i) { return fields->fields[i]->number(); });
  const std::lock_guard lock(mutex_);
  if (found_ == nullptr) found_ = std::move(fields);
  return found_.get();
}

bool is_compatible(pb::FieldDescriptor::Type type, DataType dtype) {
  using Field = pb::FieldDescriptor;
  switch (type) {
    case Field::TYPE_DOUBLE:
      return dtype == DataType::kDouble;
    case Field::TYPE_FLOAT:
      return dtype == DataType::kFloat || dtype == DataType::kDouble;
    case Field::TYPE_INT64:
    case Field::TYPE_SINT64:
    case Field::TYPE_SFIXED64:
      return dtype == DataType::kInt64;
    case Field::TYPE_UINT64:
    case Field::TYPE_FIXED64:
      return dtype == DataType::kUInt64;
    case Field::TYPE_INT32:
    case Field::TYPE_SINT32:
    case Field::TYPE_SFIXED32:
      return dtype == DataType::kInt32 || dtype == DataType::kInt64;
    case Field::TYPE_UINT32:
    case Field::TYPE_FIXED32:
      return dtype == DataType::kUInt32 || dtype == DataType::kUInt64;
    case Field::TYPE_BOOL:
      return dtype == DataType::kBool;
    case Field::TYPE_ENUM:
      return dtype == DataType::kInt32;
    case Field::TYPE_STRING:
    case Field::TYPE_BYTES:
    case Field::TYPE_MESSAGE:
    case Field::TYPE_GROUP:
      return dtype == DataType::kString;
  }
  return false;
}

}  // namespace tagflow::devices
