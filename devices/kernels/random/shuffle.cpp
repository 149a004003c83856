// RandomShuffle, StatelessShuffle.
#include <numeric>
#include <utility>
#include <vector>

#include "devices/copy.h"
#include "devices/kernels/random/stream.h"

namespace tagflow::devices {

namespace {

// Words of a stream, one by one.
class Words {
 public:
  explicit Words(const Philox& stream) : stream_(stream) {}
  uint32_t next() {
    if (at_ == block_.size()) {
      block_ = stream_.next();
      at_ = 0;
    }
    return block_[at_++];
  }

 private:
  Philox stream_;
  Philox::Block block_{};
  size_t at_ = block_.size();
};

// Fisher-Yates: each place in turn takes one of the remaining elements. It is
// sequential, but cheap compared to moving the elements. The remainder prefers
// small numbers, by a part in 2^32 / size; above 2^32 two words are used.
std::vector<int64_t> permutation(const KernelContext& context,
                                 const Philox& stream, int64_t size) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  Words words(stream);
  for (int64_t i = 0; i < size - 1; ++i) {
    context.check_cancelled();
    const auto left = uint64_t(size - i);
    uint64_t word = words.next();
    if (left > 0xffffffff) word |= uint64_t{words.next()} << 32;
    std::swap(order[size_t(i)], order[size_t(i) + size_t(word % left)]);
  }
  return order;
}

// Moves the slices of dimension 0.
class ShuffleKernel final : public RandomKernel {
 public:
  ShuffleKernel(const KernelInfo& info, RandomSource source)
      : RandomKernel(info, 30), source_(source) {}

  Status compute(KernelContext& context) const override {
    const Tensor& value = context.input(0);
    TAGFLOW_ASSIGN(const Philox stream, random_stream(context, source_, 1));
    if (value.num_elements() <= 1 || value.dim(0) <= 1) {
      context.set_output(0, value);
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, value.shape()));
    const std::vector<int64_t> order =
        permutation(context, stream, value.dim(0));
    const int64_t slice = value.num_elements() / value.dim(0);
    context.parallel_for(
        value.dim(0),
        2 + 0.1 * double(slice) * double(dtype_size(value.dtype())),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            copy_elements(value, order[size_t(i)] * slice, *output, i * slice,
                          slice);
        });
    return {};
  }

 private:
  double elements(const KernelContext& context) const override {
    return double(context.input(0).num_elements());
  }

  RandomSource source_;
};

}  // namespace

void register_random_shuffle_kernels(KernelRegistry& registry) {
  registry.add<ShuffleKernel>("RandomShuffle", {}, RandomSource::kNode);
  registry.add<ShuffleKernel>("StatelessShuffle", {}, RandomSource::kKey);
}

}  // namespace tagflow::devices
