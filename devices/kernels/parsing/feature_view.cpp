#include "devices/kernels/parsing/feature_view.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "devices/kernels/parsing/wire.h"

namespace tagflow::devices {

namespace {

// The field of a list that has its values.
constexpr uint32_t kValue = 1;

int64_t count_varints(std::string_view packed) {
  if (packed.empty()) return 0;
  if (packed.back() & 0x80) return -1;
  return std::ranges::count_if(packed, [](char byte) { return byte >= 0; });
}

}  // namespace

bool FeatureView::read(std::string_view message, FeatureView& view) {
  view = {};
  WireReader reader(message);
  while (reader.next()) {
    const uint32_t number = reader.number();
    if (number > 3 || !reader.is_bytes(number) || number == view.kind_)
      continue;
    view.kind_ = number;
    view.message_ = reader.rest();
  }
  return reader.ok();
}

template <class Visit>
bool FeatureView::for_each_list(const Visit& visit) const {
  WireReader reader(message_);
  while (reader.next())
    if (reader.is_bytes(kind_) && !visit(reader.bytes())) return false;
  return reader.ok();
}

int64_t FeatureView::count() const {
  int64_t total = 0;
  const bool ok = for_each_list([&](std::string_view list) {
    WireReader values(list);
    while (values.next()) {
      if (values.number() != kValue) continue;
      int64_t count = 0;
      switch (type()) {
        case DataType::kString:
          count = values.type() == WireType::kBytes;
          break;
        case DataType::kFloat:
          if (values.type() == WireType::kBytes) {
            if (values.bytes().size() % sizeof(float) != 0) return false;
            count = int64_t(values.bytes().size() / sizeof(float));
          } else {
            count = values.type() == WireType::kFixed32;
          }
          break;
        default:
          count = values.type() == WireType::kBytes
                      ? count_varints(values.bytes())
                      : values.type() == WireType::kVarint;
      }
      if (count < 0) return false;
      total += count;
    }
    return values.ok();
  });
  return ok ? total : -1;
}

namespace {

// Each adds the values of one field to those before, which are `count`.
bool copy_field(const WireReader& field, std::string* to, int64_t room,
                const StringWriter& writer, int64_t& count) {
  if (field.type() != WireType::kBytes) return true;
  if (count < room) writer.assign(to[count], field.bytes());
  ++count;
  return true;
}

bool copy_field(const WireReader& field, float* to, int64_t room,
                const ElementWriter<float>&, int64_t& count) {
  if (field.type() != WireType::kBytes && field.type() != WireType::kFixed32)
    return true;
  const std::string_view bytes = field.bytes();
  if (bytes.size() % sizeof(float) != 0) return false;
  const auto found = int64_t(bytes.size() / sizeof(float));
  const int64_t taken = std::clamp<int64_t>(room - count, 0, found);
  if (taken > 0)
    std::memcpy(to + count, bytes.data(), size_t(taken) * sizeof(float));
  count += found;
  return true;
}

bool copy_field(const WireReader& field, int64_t* to, int64_t room,
                const ElementWriter<int64_t>&, int64_t& count) {
  if (field.type() == WireType::kVarint) {
    if (count < room) to[count] = int64_t(field.varint());
    ++count;
    return true;
  }
  if (field.type() != WireType::kBytes) return true;
  const char* at = field.bytes().data();
  const char* const end = at + field.bytes().size();
  while (at != end) {
    uint64_t value;
    if (!read_varint(at, end, value)) return false;
    if (count < room) to[count] = int64_t(value);
    ++count;
  }
  return true;
}

}  // namespace

template <class T>
int64_t FeatureView::copy(T* to, int64_t room,
                          const ElementWriter<T>& writer) const {
  int64_t count = 0;
  const bool ok = for_each_list([&](std::string_view list) {
    WireReader values(list);
    while (values.next())
      if (values.number() == kValue &&
          !copy_field(values, to, room, writer, count))
        return false;
    return values.ok();
  });
  return ok ? count : -1;
}

template int64_t FeatureView::copy(std::string*, int64_t,
                                   const ElementWriter<std::string>&) const;
template int64_t FeatureView::copy(float*, int64_t,
                                   const ElementWriter<float>&) const;
template int64_t FeatureView::copy(int64_t*, int64_t,
                                   const ElementWriter<int64_t>&) const;

}  // namespace tagflow::devices
