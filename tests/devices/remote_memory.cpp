#include "tests/devices/remote_memory.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "devices/training_rules.h"

namespace tagflow::devices {
namespace {

size_t pages_of(const Buffer& buffer) {
  constexpr size_t kPage = 4096;
  return (buffer.bytes / kPage + 1) * kPage;
}

// Calls f(TypeTag<T>) for the numbers that such a memory computes with.
template <class F>
bool visit_number(DataType dtype, F&& f) {
  return tagflow::detail::visit_among<float, double, Half, BFloat16, int32_t,
                                      int64_t>(dtype, f);
}

// The type in which a rule computes.
template <class T>
using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
struct TrainOne {
  const DenseTraining& training;
  bool found = false;

  template <template <class> class Rule>
  void add(const char* name) {
    if (training.rule != name) return;
    found = true;
    using R = Real<T>;
    const Rule<R> rule(training.scalars.data(), training.option);
    const T* gradient = static_cast<const T*>(training.gradient->raw());
    REQUIRE(training.before.size() == size_t(Rule<R>::kStates));
    for (int64_t i = 0; i < training.gradient->num_elements(); ++i) {
      R s[DenseTraining::kMostStates] = {};
      for (size_t k = 0; k < training.before.size(); ++k)
        s[k] = R(static_cast<const T*>(training.before[k]->raw())[i]);
      if constexpr (Rule<R>::kStates == 1) rule(R(gradient[i]), s[0]);
      if constexpr (Rule<R>::kStates == 2) rule(R(gradient[i]), s[0], s[1]);
      if constexpr (Rule<R>::kStates == 3)
        rule(R(gradient[i]), s[0], s[1], s[2]);
      if constexpr (Rule<R>::kStates == 4)
        rule(R(gradient[i]), s[0], s[1], s[2], s[3]);
      for (size_t k = 0; k < training.after.size(); ++k)
        static_cast<T*>(training.after[k]->mutable_raw())[i] = T(s[k]);
    }
  }
};

}  // namespace

// The memory may be used while this is there.
class RemoteMemory::Opened {
 public:
  explicit Opened(RemoteMemory& memory) : memory_(memory) {
    memory_.protect(PROT_READ | PROT_WRITE);
  }
  ~Opened() { memory_.protect(PROT_NONE); }

 private:
  RemoteMemory& memory_;
};

RemoteMemory::~RemoteMemory() { CHECK(buffers_.empty()); }

void RemoteMemory::protect(int protection) {
  for (Buffer* buffer : buffers_)
    REQUIRE(mprotect(buffer->data, pages_of(*buffer), protection) == 0);
}

Buffer* RemoteMemory::allocate(DataType dtype, int64_t count) {
  if (!is_plain(dtype)) return host_allocator().allocate(dtype, count);
  auto* buffer = new Buffer;
  buffer->dtype = dtype;
  buffer->count = count;
  buffer->bytes = size_t(count) * dtype_size(dtype);
  buffer->allocator = this;
  buffer->data = mmap(nullptr, pages_of(*buffer), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(buffer->data != MAP_FAILED);
  buffers_.insert(buffer);
  return buffer;
}

void RemoteMemory::deallocate(Buffer* buffer) {
  buffers_.erase(buffer);
  munmap(buffer->data, pages_of(*buffer));
  delete buffer;
}

Tensor RemoteMemory::send(const Tensor& tensor) {
  Tensor copy = *Tensor::allocate(tensor.dtype(), tensor.shape(), *this);
  const Opened opened(*this);
  std::memcpy(copy.mutable_raw(), tensor.raw(), tensor.bytes());
  return copy;
}

Tensor RemoteMemory::fetch(const Tensor& tensor) {
  if (!holds(tensor)) return tensor;
  Tensor copy = Tensor::make(tensor.dtype(), tensor.shape());
  const Opened opened(*this);
  std::memcpy(copy.mutable_raw(), tensor.raw(), tensor.bytes());
  return copy;
}

void RemoteMemory::move(const StridedCopy& copy, const Tensor& from,
                        Tensor& to) {
  ++num_calls_;
  REQUIRE(holds(to));
  const Opened opened(*this);
  const size_t size = dtype_size(to.dtype());
  const auto* source = static_cast<const std::byte*>(from.raw());
  auto* target = static_cast<std::byte*>(to.mutable_raw());
  int64_t total = 1;
  for (const CopyLoop& loop : copy.loops) total *= loop.count;
  for (int64_t k = 0; k < total; ++k) {
    int64_t in = copy.from, out = copy.to, index = k;
    for (size_t i = copy.loops.size(); i-- > 0;) {
      const CopyLoop& loop = copy.loops[i];
      in += index % loop.count * loop.from_stride;
      out += index % loop.count * loop.to_stride;
      index /= loop.count;
    }
    std::memcpy(target + size_t(out) * size, source + size_t(in) * size, size);
  }
}

void RemoteMemory::clear(Tensor& to) {
  ++num_calls_;
  REQUIRE(holds(to));
  const Opened opened(*this);
  std::memset(to.mutable_raw(), 0, to.bytes());
}

Status RemoteMemory::multiply(const KernelContext& context, const ProductBatch&,
                              const Tensor&, const Tensor&, Tensor&) {
  return error(Code::kUnimplemented, "[{}] no products here",
               context.node().op());
}

Status RemoteMemory::add(const KernelContext& context, const Tensor& a,
                         const Tensor& b, bool subtracts, Tensor& out) {
  ++num_calls_;
  REQUIRE(holds(out));
  const Opened opened(*this);
  const bool done = visit_number(out.dtype(), [&]<class T>(TypeTag<T>) {
    const T* x = static_cast<const T*>(a.raw());
    const T* y = static_cast<const T*>(b.raw());
    T* sum = static_cast<T*>(out.mutable_raw());
    for (int64_t i = 0; i < out.num_elements(); ++i)
      sum[i] = subtracts ? T(x[i] - y[i]) : T(x[i] + y[i]);
  });
  if (done) return {};
  return error(Code::kUnimplemented, "[{}] no sums of {}", context.node().op(),
               dtype_name(out.dtype()));
}

Status RemoteMemory::train(const KernelContext& context,
                           const DenseTraining& training) {
  ++num_calls_;
  for (const Tensor* after : training.after) REQUIRE(holds(*after));
  const Opened opened(*this);
  bool found = false;
  visit_floating(training.gradient->dtype(), [&]<class T>(TypeTag<T>) {
    TrainOne<T> train{training};
    rules::visit_all(train);
    found = train.found;
  });
  if (found) return {};
  return error(Code::kUnimplemented, "[{}] no rule {}", context.node().op(),
               training.rule);
}

}  // namespace tagflow::devices
