#include "devices/kernels/convolution/conv_loops.h"

#include <algorithm>
#include <atomic>

#include "devices/kernels/product/gemm.h"

namespace tagflow::devices {
namespace {

// The number of positions whose patches are made at a time; their elements fill
// about half a second-level cache.
int64_t block_of(const Convolution& conv) {
  constexpr int64_t kElements = 1 << 17, kLeast = 16;
  const int64_t fitting = std::max(kElements / conv.patch(), kLeast);
  return std::min(fitting, conv.geometry.out_positions());
}

// Block number `unit` of all: one image's positions [first, first + count).
struct Block {
  int64_t image, first, count;
};

class Blocks {
 public:
  explicit Blocks(const Convolution& conv)
      : positions_(conv.geometry.out_positions()),
        length_(block_of(conv)),
        per_image_((positions_ + length_ - 1) / length_),
        total_(conv.geometry.batch * per_image_) {}

  int64_t total() const { return total_; }
  int64_t per_image() const { return per_image_; }
  int64_t length() const { return length_; }
  Block operator[](int64_t unit) const {
    const int64_t first = unit % per_image_ * length_;
    return {unit / per_image_, first, std::min(length_, positions_ - first)};
  }

 private:
  int64_t positions_, length_, per_image_, total_;
};

// Whether the input itself is the matrix of patches.
bool is_pointwise(const Convolution& conv) {
  const Geometry& g = conv.geometry;
  return conv.groups == 1 && g.taps() == 1 && g.in == g.out &&
         g.stride == Spatial{1, 1, 1} && g.pad == Spatial{0, 0, 0};
}

// Writes the patches of a block and a group, one per row.
template <class W>
void make_patches(const Convolution& conv, const W* in, const Block& block,
                  int64_t group, W* patches) {
  const Geometry& g = conv.geometry;
  const int64_t channels = conv.group_in(), patch = conv.patch();
  const W* image =
      in + block.image * g.in_positions() * g.channels + group * channels;
  for (int64_t i = 0; i < block.count; ++i, patches += patch) {
    std::fill_n(patches, patch, W(0));
    g.for_taps(block.first + i, [&](int64_t tap, int64_t at) {
      std::copy_n(image + at * g.channels, channels, patches + tap * channels);
    });
  }
}

// The reverse: adds the patches to their original positions.
template <class W>
void add_patches(const Convolution& conv, const W* patches, const Block& block,
                 int64_t group, W* in_grad) {
  const Geometry& g = conv.geometry;
  const int64_t channels = conv.group_in(), patch = conv.patch();
  W* image =
      in_grad + block.image * g.in_positions() * g.channels + group * channels;
  for (int64_t i = 0; i < block.count; ++i, patches += patch) {
    g.for_taps(block.first + i, [&](int64_t tap, int64_t at) {
      W* to = image + at * g.channels;
      const W* from = patches + tap * channels;
      // Integers wrap around.
      using Sum = std::conditional_t<std::is_integral_v<W>, uint32_t, W>;
      for (int64_t c = 0; c < channels; ++c)
        to[c] = W(Sum(to[c]) + Sum(from[c]));
    });
  }
}

// Runs body(begin, end, scratch) in shards, each with a scratch matrix of
// patches.
template <class W, class Body>
Status run_with_patches(const KernelContext& context, const Convolution& conv,
                        int64_t total, double cost, int64_t rows, Body&& body) {
  std::atomic<bool> exhausted = false;
  const int64_t dims[] = {rows, conv.patch()};
  TAGFLOW_ASSIGN(const Shape shape, Shape::make(dims));
  context.parallel_for(total, cost, [&](int64_t begin, int64_t end) {
    Result<Tensor> scratch =
        Tensor::allocate(kDataTypeOf<W>, shape, context.allocator());
    if (scratch.ok())
      body(begin, end, scratch->template mutable_data<W>());
    else
      exhausted = true;
  });
  if (exhausted)
    return error(Code::kResourceExhausted,
                 "[{}] no memory for patches of {} elements",
                 context.node().op(), shape.num_elements());
  return Status();
}

// Nanoseconds for one of `parts` equal parts.
template <class W>
double part_cost(const Convolution& conv, int64_t parts) {
  return conv.work() / double(parts) / (std::is_same_v<W, float> ? 40 : 10);
}

}  // namespace

template <class W>
Status convolve(const KernelContext& context, const Convolution& conv,
                const W* in, const W* filter, W* out) {
  const Blocks blocks(conv);
  const Geometry& g = conv.geometry;
  const int64_t patch = conv.patch();
  const bool pointwise = is_pointwise(conv);
  return run_with_patches<W>(
      context, conv, blocks.total(), part_cost<W>(conv, blocks.total()),
      pointwise ? 0 : blocks.length(),
      [&](int64_t begin, int64_t end, W* scratch) {
        for (int64_t unit = begin; unit < end; ++unit) {
          context.check_cancelled();
          const Block block = blocks[unit];
          const int64_t row = block.image * g.out_positions() + block.first;
          for (int64_t group = 0; group < conv.groups; ++group) {
            const W* patches = pointwise ? in + row * patch : scratch;
            if (!pointwise) make_patches(conv, in, block, group, scratch);
            const int64_t column = group * conv.group_out();
            gemm<W>(block.count, conv.group_out(), patch, {patches, patch},
                    {filter + column, conv.out_channels},
                    out + row * conv.out_channels + column, conv.out_channels);
          }
        }
      });
}

template <class W>
Status convolve_to_input(const KernelContext& context, const Convolution& conv,
                         const W* filter, const W* out_grad, W* in_grad) {
  const Blocks blocks(conv);
  const Geometry& g = conv.geometry;
  const int64_t patch = conv.patch(), outs = conv.out_channels;
  // [output channels, patch], since not every gemm() takes a transpose.
  const int64_t dims[] = {outs, patch};
  TAGFLOW_ASSIGN(Tensor turned, Tensor::allocate(kDataTypeOf<W>, Shape(dims),
                                                 context.allocator()));
  W* to = turned.mutable_data<W>();
  for (int64_t i = 0; i < patch; ++i)
    for (int64_t j = 0; j < outs; ++j) to[j * patch + i] = filter[i * outs + j];

  const int64_t image = g.in_positions() * g.channels;
  return run_with_patches<W>(
      context, conv, g.batch, part_cost<W>(conv, g.batch), blocks.length(),
      [&](int64_t begin, int64_t end, W* scratch) {
        std::fill(in_grad + begin * image, in_grad + end * image, W(0));
        for (int64_t unit = begin * blocks.per_image();
             unit < end * blocks.per_image(); ++unit) {
          context.check_cancelled();
          const Block block = blocks[unit];
          const int64_t row = block.image * g.out_positions() + block.first;
          for (int64_t group = 0; group < conv.groups; ++group) {
            const int64_t column = group * conv.group_out();
            gemm<W>(block.count, patch, conv.group_out(),
                    {out_grad + row * outs + column, outs},
                    {to + column * patch, patch}, scratch, patch);
            add_patches(conv, scratch, block, group, in_grad);
          }
        }
      });
}

template <class W>
Status convolve_to_filter(const KernelContext& context, const Convolution& conv,
                          const W* in, const W* out_grad, W* filter_grad) {
  const Blocks blocks(conv);
  const Geometry& g = conv.geometry;
  const int64_t patch = conv.patch(), outs = conv.out_channels;
  // Each sum covers some of the blocks, and the first one becomes the result.
  // Their number depends on the shapes only, so that the rounding does not
  // depend on workers.
  const int64_t parts = std::min<int64_t>(blocks.total(), 8);
  const int64_t size = patch * outs;
  const int64_t dims[] = {parts - 1, patch, outs};
  TAGFLOW_ASSIGN(const Shape shape, Shape::make(dims));
  TAGFLOW_ASSIGN(Tensor others,
                 Tensor::allocate(kDataTypeOf<W>, shape, context.allocator()));
  W* rest = others.mutable_data<W>();
  TAGFLOW_RETURN_IF_ERROR(run_with_patches<W>(
      context, conv, parts, part_cost<W>(conv, parts), blocks.length(),
      [&](int64_t begin, int64_t end, W* scratch) {
        for (int64_t part = begin; part < end; ++part) {
          W* sum = part == 0 ? filter_grad : rest + (part - 1) * size;
          std::fill_n(sum, size, W(0));
          const int64_t last = blocks.total() * (part + 1) / parts;
          for (int64_t unit = blocks.total() * part / parts; unit < last;
               ++unit) {
            context.check_cancelled();
            const Block block = blocks[unit];
            const int64_t row = block.image * g.out_positions() + block.first;
            for (int64_t group = 0; group < conv.groups; ++group) {
              make_patches(conv, in, block, group, scratch);
              const int64_t column = group * conv.group_out();
              gemm<W>(patch, conv.group_out(), block.count,
                      {scratch, patch, true},
                      {out_grad + row * outs + column, outs}, sum + column,
                      outs, true);
            }
          }
        }
      }));
  for (int64_t part = 1; part < parts; ++part, rest += size)
    for (int64_t i = 0; i < size; ++i) filter_grad[i] += rest[i];
  return Status();
}

#define TAGFLOW_CONVOLVE(T)                                                    \
  template Status convolve(const KernelContext&, const Convolution&, const T*, \
                           const T*, T*);                                      \
  template Status convolve_to_input(const KernelContext&, const Convolution&,  \
                                    const T*, const T*, T*);
TAGFLOW_CONVOLVE(float)
TAGFLOW_CONVOLVE(double)
TAGFLOW_CONVOLVE(int32_t)
#undef TAGFLOW_CONVOLVE
template Status convolve_to_filter(const KernelContext&, const Convolution&,
                                   const float*, const float*, float*);
template Status convolve_to_filter(const KernelContext&, const Convolution&,
                                   const double*, const double*, double*);

}  // namespace tagflow::devices
