// ProtoSchema: a type of protobuf messages that a node names, which the program
// need not know.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "devices/kernel.h"

namespace tagflow::devices {

// Immutable, and thread-safe.
class ProtoSchema {
 public:
  // `source` says where descriptors come from:
  //   "", "local://"     the messages of this program: those of TensorFlow that
  //                      it reads and writes, and descriptor.proto
  //   "bytes://..."      a serialized FileDescriptorSet follows
  //   another            the path of a file that has one
  // InvalidArgument if there is no such message there; PermissionDenied if the
  // session may not read the file.
  static Result<std::unique_ptr<ProtoSchema>> make(
      const KernelContext& context, const std::string& source,
      const std::string& message_type);

  const google::protobuf::Descriptor& message() const { return *message_; }
  // Of the message, or, by its full name, an extension of it. InvalidArgument
  // if it has none.
  Result<const google::protobuf::FieldDescriptor*> field(
      const KernelContext& context, const std::string& name) const;

  // The bytes of a message that was parsed: all its fields in their order.
  // DataLoss, with "has ...", if it is not of this type, or lacks a field that
  // it must have. ResourceExhausted if the limit of `memory` does not allow
  // what the parser takes meanwhile.
  Result<std::string> parse_binary(Allocator& memory,
                                   std::string_view bytes) const;
  Result<std::string> parse_text(Allocator& memory,
                                 std::string_view text) const;

 private:
  ProtoSchema() = default;
  // The bytes of the largest of the messages that one may have inside, empty.
  size_t widest() const;
  // Counts so many of these.
  Status make_room(Allocator& memory, size_t messages,
                   MemoryCharge& charge) const;
  Status load(const KernelContext& context, const std::string& source);
  Result<std::string> bytes_of(const google::protobuf::Message& message) const;

  std::unique_ptr<google::protobuf::DescriptorPool> own_pool_;  // may be null
  const google::protobuf::DescriptorPool* pool_ = nullptr;
  const google::protobuf::Descriptor* message_ = nullptr;
  std::unique_ptr<google::protobuf::DynamicMessageFactory> factory_;
  mutable std::once_flag once_;  // for widest_
  mutable size_t widest_ = 0;
};

// The schema and the fields that a node's attributes name. The first run reads
// them, since only a run may read files. Thread-safe.
class NodeSchema {
 public:
  explicit NodeSchema(const KernelInfo& info);

  struct Fields {
    std::unique_ptr<const ProtoSchema> schema;
    // In the order of field_names.
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    // Their places, by their numbers; of one number, in that order.
    std::vector<size_t> order;
  };
  // `takes_extensions`: field_names may have some.
  Result<const Fields*> find(const KernelContext& context,
                             bool takes_extensions) const;

 private:
  const std::string source_, message_type_;
  const std::vector<std::string> names_;
  mutable std::mutex mutex_;  // guards the below
  mutable std::unique_ptr<const Fields> found_;
};

// Whether values of the field fit into tensors of that type.
bool is_compatible(google::protobuf::FieldDescriptor::Type type,
                   DataType dtype);

}  // namespace tagflow::devices
