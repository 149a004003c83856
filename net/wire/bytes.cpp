#include "net/wire/bytes.h"

namespace tagflow::net {

uint64_t Reader::varint() {
  constexpr int kMaxBits = 64;
  uint64_t value = 0;
  for (int shift = 0; shift < kMaxBits; shift += 7) {
    const std::string_view next = raw(1);
    if (next.empty()) return 0;
    const auto byte = uint8_t(next.front());
    if (shift == kMaxBits - 1 && byte > 1) break;
    value |= uint64_t(byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    // A zero at the end would be another form of the same number.
    if (byte == 0 && shift > 0) break;
    return value;
  }
  fail("a number is too long");
  return 0;
}

uint64_t Reader::varint_to(uint64_t most, std::string_view name) {
  const uint64_t value = varint();
  if (value <= most) return value;
  fail(fmt::format("{} is {}, more than {}", name, value, most));
  return 0;
}

bool Reader::flag() {
  const auto value = fixed<uint8_t>();
  if (value > 1) fail(fmt::format("a flag is {}, neither 0 nor 1", value));
  return value == 1;
}

std::string_view Reader::raw(uint64_t count) {
  if (!ok()) return {};
  if (count > left()) {
    fail(fmt::format("{} bytes are missing", count - left()));
    return {};
  }
  const std::string_view found = bytes_.substr(at_, size_t(count));
  at_ += size_t(count);
  return found;
}

std::string_view Reader::text() {
  const uint64_t size = varint();
  return raw(size);
}

uint64_t Reader::count(uint64_t least_bytes, uint64_t memory) {
  const uint64_t count = varint();
  if (count > left() / least_bytes) {
    fail(fmt::format("{} elements are more than {} bytes can hold", count,
                     left()));
    return 0;
  }
  return charge(count, memory) ? count : 0;
}

bool Reader::charge(uint64_t elements, uint64_t memory_each) {
  if (!ok()) return false;
  if (memory_each != 0 && elements > budget_ / memory_each) {
    fail(fmt::format("{} elements of {} bytes exceed the budget", elements,
                     memory_each));
    return false;
  }
  budget_ -= elements * memory_each;
  return true;
}

void Reader::fail(std::string_view message) {
  if (ok())
    status_ = error(Code::kDataLoss, "[net|{}] byte {} of {}: {}", what_, at_,
                    bytes_.size(), message);
}

void Reader::fail(Status status) {
  if (ok()) status_ = std::move(status);
}

Status Reader::finish() {
  if (left() != 0) fail(fmt::format("{} bytes are left over", left()));
  return status_;
}

}  // namespace tagflow::net
