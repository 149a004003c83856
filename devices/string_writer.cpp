#include "devices/string_writer.h"

#include "graph/memory_charge.h"
#include "graph/status_exception.h"

namespace tagflow::devices {
namespace {

// Charges so many bytes of one string.
void charge(Buffer& buffer, size_t bytes) {
  if (!buffer.allocator->charge(buffer, bytes))
    throw StatusException(out_of_memory(*buffer.allocator, "a string", bytes));
}

// What was charged for a string that is being made, until it is kept.
class Charged {
 public:
  Charged(Buffer& buffer, size_t bytes) : buffer_(buffer) { add(bytes); }
  Charged(const Charged&) = delete;
  Charged& operator=(const Charged&) = delete;
  ~Charged() { buffer_.allocator->discharge(buffer_, bytes_); }
  void add(size_t bytes) {
    charge(buffer_, bytes);
    bytes_ += bytes;
  }
  // Gives back `bytes` instead.
  void keep_but(size_t bytes) { bytes_ = bytes; }

 private:
  Buffer& buffer_;
  size_t bytes_ = 0;
};

}  // namespace

StringWriter::StringWriter(const Tensor& to)
    : buffer_(to.buffer() != nullptr && to.buffer()->allocator->counts_outside()
                  ? const_cast<Buffer*>(to.buffer())
                  : nullptr) {}

void StringWriter::replace(std::string& to, std::string_view content,
                           size_t size) const {
  Charged charged(*buffer_, size + 1);
  std::string made;
  made.reserve(size);
  // It may have reserved more.
  charged.add(std::max(outside_bytes(made), size + 1) - (size + 1));
  made.append(content);
  charged.keep_but(outside_bytes(to));
  to.swap(made);
}

void StringWriter::exchange_charges(const std::string& to,
                                    const std::string& from) const {
  const size_t before = outside_bytes(to), now = outside_bytes(from);
  if (now > before) {
    charge(*buffer_, now - before);
  } else {
    buffer_->allocator->discharge(*buffer_, before - now);
  }
}

Result<Tensor> copy_strings(const Tensor& strings, Allocator& memory) {
  TAGFLOW_ASSIGN(Tensor copy,
                 Tensor::allocate(DataType::kString, strings.shape(), memory));
  ElementWriter<std::string>(copy).copy(strings.data<std::string>(),
                                        strings.num_elements(),
                                        copy.mutable_data<std::string>());
  return copy;
}

void exchange_strings(Tensor& a, int64_t a_at, Tensor& b, int64_t b_at,
                      int64_t count) noexcept {
  if (count <= 0) return;
  std::string* const of_a = a.mutable_data<std::string>() + a_at;
  std::string* const of_b = b.mutable_data<std::string>() + b_at;
  if (a.buffer()->allocator->counts_outside()) {
    // Unsigned: the sums are right even if a difference is negative.
    size_t more = 0;
    for (int64_t i = 0; i < count; ++i)
      more += outside_bytes(of_b[i]) - outside_bytes(of_a[i]);
    const_cast<Buffer*>(a.buffer())->outside += more;
    const_cast<Buffer*>(b.buffer())->outside -= more;
  }
  std::swap_ranges(of_a, of_a + count, of_b);
}

Status settle_strings(const Tensor& strings) {
  if (strings.buffer() == nullptr) return {};
  auto& buffer = const_cast<Buffer&>(*strings.buffer());
  Allocator& memory = *buffer.allocator;
  if (!memory.counts_outside() || buffer.is_settled) return {};
  size_t bytes = 0;
  const auto* texts = static_cast<const std::string*>(buffer.data);
  for (int64_t i = 0; i < buffer.count; ++i) bytes += outside_bytes(texts[i]);
  const size_t charged = buffer.outside.load(std::memory_order_relaxed);
  if (bytes <= charged) {
    memory.discharge(buffer, charged - bytes);
  } else if (!memory.charge(buffer, bytes - charged)) {
    return out_of_memory(
        memory, fmt::format("the text of {}", strings.describe()), bytes);
  }
  buffer.is_settled = true;
  return {};
}

}  // namespace tagflow::devices
