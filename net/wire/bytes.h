// Writer, Reader: numbers, texts and counts as bytes that another process
// reads. docs/wire.md has the format.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "graph/status.h"

namespace tagflow::net {

static_assert(std::endian::native == std::endian::little,
              "numbers travel as they are in memory");

// Appends to a buffer of its own. The first error stays: whoever takes the
// bytes asks for status() once, at the end. Thread-compatible.
class Writer {
 public:
  Writer() = default;
  // Begins with `space` bytes of zeros, which the caller fills in later.
  explicit Writer(size_t space) : bytes_(space, '\0') {}

  // The number's own size, little-endian.
  template <class T>
  void fixed(T value) {
    static_assert(std::is_integral_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  // Seven bits per byte, the lowest first (LEB128): 1 to 10 bytes.
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += char(uint8_t(value) | 0x80);
    bytes_ += char(value);
  }
  // The bytes alone, whose number the reader knows.
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  // Their number as a varint, and the bytes.
  void text(std::string_view bytes) {
    varint(bytes.size());
    raw(bytes);
  }

  // What was written cannot be sent. REQUIRES: !status.ok()
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const Status& status() const { return status_; }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
  Status status_;
};

// Reads what a Writer wrote, from bytes that a peer may have made up. The first
// error stays: what is read after it is zero or empty, so a message is read
// field by field, and finish() says whether all of it was there. Each number
// has one form only, so that equal messages are equal bytes.
//
// A count that a peer names is checked twice before memory is taken for it:
// against the bytes that are left, and against a budget, since an element may
// need more memory than it has bytes. Thread-compatible.
class Reader {
 public:
  static constexpr uint64_t kBudget = uint64_t{64} << 20;

  // `what` names the message in errors. Both texts must outlive this. `budget`
  // is how many bytes of memory all counts together may ask for.
  Reader(std::string_view bytes, std::string_view what,
         uint64_t budget = kBudget)
      : bytes_(bytes), what_(what), budget_(budget) {}

  template <class T>
  T fixed() {
    static_assert(std::is_integral_v<T>);
    const std::string_view from = raw(sizeof(T));
    if (from.empty()) return 0;
    T value;
    std::memcpy(&value, from.data(), sizeof(value));
    return value;
  }
  uint64_t varint();
  // A varint of at most `most`; `name` is what errors call it.
  uint64_t varint_to(uint64_t most, std::string_view name);
  // A byte that is 0 or 1.
  bool flag();
  // So many bytes, or none after an error. They live as long as the input.
  std::string_view raw(uint64_t count);
  // Bytes behind their number.
  std::string_view text();
  // How many elements follow. Each has `least_bytes` or more in the input, and
  // takes `memory` bytes. REQUIRES: least_bytes >= 1
  uint64_t count(uint64_t least_bytes, uint64_t memory);
  // Takes part of the budget. False after an error, or if it is used up.
  bool charge(uint64_t elements, uint64_t memory_each);

  uint64_t left() const { return bytes_.size() - at_; }
  // DataLoss "[net|WHAT] byte 3 of 12: MESSAGE".
  void fail(std::string_view message);
  // An error that has a text of its own. REQUIRES: !status.ok()
  void fail(Status status);
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  // The error, also if bytes are left.
  Status finish();

 private:
  std::string_view bytes_;
  std::string_view what_;
  uint64_t budget_;
  size_t at_ = 0;
  Status status_;
};

}  // namespace tagflow::net
