// StringWriter, ElementWriter: write strings whose bytes count before they are
// taken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "graph/tensor.h"

namespace tagflow::devices {

// The bytes that a string keeps outside of its object.
inline size_t outside_bytes(const std::string& text) {
  const auto* object = reinterpret_cast<const char*>(&text);
  const bool is_inside =
      text.data() >= object && text.data() < object + sizeof text;
  return is_inside ? 0 : text.capacity() + 1;
}

// Writes strings of one tensor, and charges what they keep outside of it: Note
// [Memory outside of buffers] in graph/allocator.h. A method that would exceed
// the limit throws a StatusException before it takes memory; callers are
// kernels, which are guarded. Costs a branch if nothing counts.
//
// Thread-safe, for different strings.
class StringWriter {
 public:
  // REQUIRES: the tensor is of strings, outlives this, and only the caller
  // changes it.
  explicit StringWriter(const Tensor& to);

  // to = from. REQUIRES: `to` is an element; they do not overlap.
  void assign(std::string& to, std::string_view from) const {
    if (buffer_ != nullptr && from.size() > to.capacity())
      replace(to, {}, from.size());
    to.assign(from);
  }
  // As above, for a string that was made already.
  void take(std::string& to, std::string&& from) const {
    if (buffer_ != nullptr) exchange_charges(to, from);
    to.swap(from);
  }
  // Makes room in an element for `size` bytes. REQUIRES: size >= to.size()
  void reserve(std::string& to, size_t size) const {
    if (buffer_ != nullptr && size > to.capacity()) {
      replace(to, to, size);
    } else {
      to.reserve(size);
    }
  }
  // Makes room for `more` bytes behind the content of an element. If it must
  // grow, its capacity at least doubles.
  void extend(std::string& to, size_t more) const {
    if (buffer_ != nullptr && more > to.capacity() - to.size())
      replace(to, to, std::max(to.size() + more, 2 * to.capacity()));
  }
  // to += more. REQUIRES: as for assign().
  void append(std::string& to, std::string_view more) const {
    extend(to, more.size());
    to.append(more);
  }

 private:
  // Replaces an element by another with that content, and room for `size`.
  void replace(std::string& to, std::string_view content, size_t size) const;
  void exchange_charges(const std::string& to, const std::string& from) const;

  Buffer* const buffer_;  // null if nothing counts
};

// Writes elements of any type: plain ones at no cost. Otherwise as a
// StringWriter, of which it is one for strings.
template <class T>
class ElementWriter {
 public:
  explicit ElementWriter(const Tensor&) {}
  void assign(T& to, const T& from) const { to = from; }
  void copy(const T* from, int64_t count, T* to) const {
    std::copy_n(from, count, to);
  }
  void fill(T* to, int64_t count, const T& value) const {
    std::fill_n(to, count, value);
  }
};

template <>
class ElementWriter<std::string> : public StringWriter {
 public:
  using StringWriter::StringWriter;
  void copy(const std::string* from, int64_t count, std::string* to) const {
    for (int64_t i = 0; i < count; ++i) assign(to[i], from[i]);
  }
  void fill(std::string* to, int64_t count, const std::string& value) const {
    for (int64_t i = 0; i < count; ++i) assign(to[i], value);
  }
};

// A copy of the strings in that memory. ResourceExhausted if it has no room for
// the objects of strings; throws as a StringWriter does if it has none for
// text.
Result<Tensor> copy_strings(const Tensor& strings, Allocator& memory);

// Exchanges `count` strings of two tensors, with what is charged for them. It
// takes no memory: so what changes strings of state first writes the new ones
// elsewhere, and an error changes nothing. REQUIRES: nobody else uses the
// buffers, which are of one allocator.
void exchange_strings(Tensor& a, int64_t a_at, Tensor& b, int64_t b_at,
                      int64_t count) noexcept;

// Charges exactly what the strings of the tensor keep outside of it.
// ResourceExhausted if that would exceed the limit. REQUIRES: nobody else holds
// the buffer.
Status settle_strings(const Tensor& strings);

}  // namespace tagflow::devices
