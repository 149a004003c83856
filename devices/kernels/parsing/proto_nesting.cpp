#include "devices/kernels/parsing/proto_nesting.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace tagflow::devices {

namespace {

namespace pb = google::protobuf;
using pb::internal::WireFormatLite;
using Field = pb::FieldDescriptor;

class MessageCount {
 public:
  explicit MessageCount(std::string_view bytes)
      : from_(reinterpret_cast<const uint8_t*>(bytes.data()),
              int(bytes.size())) {
    from_.SetRecursionLimit(kMostNesting);
  }

  // Counts the messages inside of one, up to an end, or the end of the group of
  // that number. False if it is damaged, or a set, whose messages are of types
  // that are written beside them.
  bool run(const pb::Descriptor& type, int group) {
    if (type.options().message_set_wire_format()) return false;
    for (;;) {
      const uint32_t tag = from_.ReadTag();
      if (tag == 0) return group == 0 && from_.ConsumedEntireMessage();
      const auto wire_type = WireFormatLite::GetTagWireType(tag);
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      if (wire_type == WireFormatLite::WIRETYPE_END_GROUP)
        return group != 0 && number == group;
      const Field* const field = find(type, number);
      const bool is_inside =
          field != nullptr && field->cpp_type() == Field::CPPTYPE_MESSAGE &&
          wire_type == WireFormatLite::WireTypeForFieldType(
                           WireFormatLite::FieldType(field->type()));
      if (!(is_inside ? enter(*field) : WireFormatLite::SkipField(&from_, tag)))
        return false;
    }
  }
  size_t count() const { return count_; }

 private:
  static const Field* find(const pb::Descriptor& type, int number) {
    const Field* const field = type.FindFieldByNumber(number);
    return field != nullptr
               ? field
               : type.file()->pool()->FindExtensionByNumber(&type, number);
  }

  bool enter(const Field& field) {
    ++count_;
    const pb::Descriptor& type = *field.message_type();
    if (!from_.IncrementRecursionDepth()) return false;
    bool is_whole = false;
    if (field.type() == Field::TYPE_GROUP) {
      is_whole = run(type, field.number());
    } else {
      int size = 0;
      if (!from_.ReadVarintSizeAsInt(&size)) return false;
      const auto limit = from_.PushLimit(size);
      is_whole = run(type, 0) && from_.BytesUntilLimit() == 0;
      from_.PopLimit(limit);
    }
    from_.DecrementRecursionDepth();
    return is_whole;
  }

  pb::io::CodedInputStream from_;
  size_t count_ = 1;
};

}  // namespace

size_t most_messages(std::string_view bytes, const pb::Descriptor& type) {
  MessageCount count(bytes);
  if (count.run(type, 0)) return count.count();
  // A message takes two bytes at least.
  return 1 + bytes.size() / 2;
}

}  // namespace tagflow::devices
