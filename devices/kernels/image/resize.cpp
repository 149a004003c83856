// Resizes images by nearest neighbours or bilinear interpolation; the gradients
// scatter instead of gathering.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <span>

#include "devices/kernel_registry.h"
#include "devices/kernels/convolution/geometry.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {
namespace {

// The mapping of positions of a result to positions of a source, along one
// dimension.
struct Scale {
  bool align_corners = false;
  bool half_pixel_centers = false;

  float factor(int64_t in, int64_t out) const {
    return align_corners && in > 1 && out > 1 ? float(in - 1) / float(out - 1)
                                              : float(in) / float(out);
  }
};

// Result position i is `weight` of the way from `low` to `high`.
struct Between {
  int64_t low, high;
  float weight;
};

// A Between or a number for each position of a result, which may be many.
template <class P>
struct Table {
  Tensor holder;
  std::span<const P> positions;
};

template <class P, class Fill>
Result<Table<P>> make_table(const KernelContext& context, int64_t size,
                            Fill&& fill) {
  static_assert(sizeof(P) % sizeof(int64_t) == 0);
  const int64_t dims[] = {size, int64_t(sizeof(P) / sizeof(int64_t))};
  Table<P> table;
  TAGFLOW_ASSIGN(table.holder, Tensor::allocate(DataType::kInt64, Shape(dims),
                                                context.allocator()));
  P* to = static_cast<P*>(table.holder.mutable_raw());
  for (int64_t i = 0; i < size; ++i) new (to + i) P(fill(i));
  table.positions = {to, size_t(size)};
  return table;
}

Result<Table<Between>> interpolate(const KernelContext& context,
                                   const Scale& scale, int64_t in,
                                   int64_t out) {
  const float factor = scale.factor(in, out);
  return make_table<Between>(context, out, [&](int64_t i) {
    // Compiled so that the product is rounded, as in TensorFlow.
    const float center = scale.half_pixel_centers ? 0.5f : 0.0f;
    const float at = (float(i) + center) * factor - center;
    const float floor = std::floor(at);
    Between b;
    b.low = std::clamp<int64_t>(int64_t(floor), 0, in - 1);
    b.high = std::clamp<int64_t>(int64_t(std::ceil(at)), 0, in - 1);
    b.weight = at - floor;
    return b;
  });
}

Result<Table<int64_t>> nearest(const KernelContext& context, const Scale& scale,
                               int64_t in, int64_t out) {
  const float factor = scale.factor(in, out);
  return make_table<int64_t>(context, out, [&](int64_t i) {
    const float center = scale.half_pixel_centers ? 0.5f : 0.0f;
    const float at = (float(i) + center) * factor;
    const float rounded = scale.align_corners ? std::round(at) : std::floor(at);
    return std::clamp<int64_t>(int64_t(rounded), 0, in - 1);
  });
}

class ResizeBase : public Kernel {
 public:
  double cost(const KernelContext& context) const override {
    return 500 + double(context.input(0).num_elements()) * 10;
  }

 protected:
  explicit ResizeBase(Scale scale) : scale_(scale) {}

  template <class K>
  static Result<std::unique_ptr<Kernel>> make_kernel(const KernelInfo& info) {
    Scale scale;
    TAGFLOW_ASSIGN(scale.align_corners, info.attr<bool>("align_corners"));
    TAGFLOW_ASSIGN(scale.half_pixel_centers,
                   info.attr<bool>("half_pixel_centers"));
    if (scale.align_corners && scale.half_pixel_centers)
      return invalid_argument(
          "[{}] node \"{}\": align_corners excludes half_pixel_centers",
          info.node().op(), info.name());
    return std::unique_ptr<Kernel>(std::make_unique<K>(scale));
  }

  static Status check_rank(const KernelContext& context, int input) {
    const Tensor& images = context.input(input);
    if (images.rank() != 4)
      return context.fail("input {} is {}, not of 4 dimensions", input,
                          images.describe());
    return Status();
  }

  static Status check_images(const KernelContext& context, int input) {
    TAGFLOW_RETURN_IF_ERROR(check_rank(context, input));
    const Tensor& images = context.input(input);
    if (images.dim(1) == 0 || images.dim(2) == 0)
      return context.fail("input {} is {}, without a pixel", input,
                          images.describe());
    return Status();
  }

  static Status check_channels(const KernelContext& context) {
    const Tensor& images = context.input(0);
    if (images.dim(3) > 0) return Status();
    return context.fail("input 0 is {}, without a channel", images.describe());
  }

  // [batch, size[0], size[1], channels], the size from input 1.
  static Result<Shape> sized(const KernelContext& context) {
    const Tensor& size = context.input(1);
    if (size.rank() != 1 || size.dim(0) != 2)
      return context.fail("the size is {}, not a vector of 2", size.describe());
    const int32_t* sides = size.data<int32_t>();
    if (sides[0] <= 0 || sides[1] <= 0)
      return context.fail("the size {} x {} is not positive", sides[0],
                          sides[1]);
    const Tensor& images = context.input(0);
    const int64_t dims[] = {images.dim(0), sides[0], sides[1], images.dim(3)};
    Result<Shape> shape = Shape::make(dims);
    if (!shape.ok()) return context.fail("{}", shape.status().message());
    return shape;
  }

  const Scale& scale() const { return scale_; }

 private:
  Scale scale_;
};

template <class S>
float mix(S a, S b, float weight) {
  return float(a) + (float(b) - float(a)) * weight;
}

// The rows of all images, and where the pixels of a result's row lie in one.
template <class T>
struct Rows {
  const T* pixels;
  int64_t width, channels;
  std::span<const Between> xs;

  // The numbers [first, first + size) of a row that is resized along x.
  void resize(int64_t row, int64_t first, int64_t size, float* to) const {
    switch (channels) {
      case 1:
        return resize_pixels<1>(row, first, size, to);
      case 3:
        return resize_pixels<3>(row, first, size, to);
      case 4:
        return resize_pixels<4>(row, first, size, to);
    }
    const T* const from = pixels + row * width * channels;
    for (int64_t i = first; i < first + size; ++i) {
      const Between& x = xs[size_t(i / channels)];
      const int64_t c = i % channels;
      *to++ = mix(from[x.low * channels + c], from[x.high * channels + c],
                  x.weight);
    }
  }

 private:
  // Whole pixels of C channels. The part of the source's row that they need is
  // converted at once, if it is short: then a pixel is one vector.
  template <int C>
  void resize_pixels(int64_t row, int64_t first, int64_t size,
                     float* to) const {
    const auto some = xs.subspan(size_t(first / C), size_t(size / C));
    const T* const from = pixels + row * width * C;
    const int64_t begin = some.front().low;
    const int64_t span = (some.back().high - begin + 1) * C;
    if (C < 3 || span > std::min(kMostConverted, 4 * size)) {
      for (const Between& x : some) {
        const T* const low = from + x.low * C;
        const T* const high = from + x.high * C;
        for (int c = 0; c < C; ++c) *to++ = mix(low[c], high[c], x.weight);
      }
      return;
    }
    // A vector of the last pixel ends behind it.
    std::array<float, kMostConverted + 4> line;
    for (int64_t i = 0; i < span; ++i)
      line[size_t(i)] = float(from[begin * C + i]);
    for (const Between& x : some) {
      const Four low = four_at(&line[size_t((x.low - begin) * C)]);
      const Four high = four_at(&line[size_t((x.high - begin) * C)]);
      const Four mixed = low + (high - low) * x.weight;
      std::memcpy(to, &mixed, sizeof(mixed));
      to += C;
    }
  }

  static constexpr int64_t kMostConverted = 4096;  // numbers
  using Four = float __attribute__((vector_size(4 * sizeof(float))));
  static Four four_at(const float* numbers) {
    Four four;
    std::memcpy(&four, numbers, sizeof(four));
    return four;
  }
};

// How many numbers of a row are resized at a time.
constexpr int64_t kBlock = 1024;

// A block of the rows of a result. It keeps the two rows of the images that it
// has resized last, since rows of the result that follow one another share
// them.
template <class T>
class BlockOfRows {
 public:
  // REQUIRES: size <= kBlock
  BlockOfRows(const Rows<T>& rows, int64_t first, int64_t size)
      : rows_(rows), first_(first), size_(size) {}

  void blend(int64_t low, int64_t high, float weight, float* to) {
    const float* const a = resized(low, high);
    const float* const b = resized(high, low);
    for (int64_t i = 0; i < size_; ++i) to[i] = mix(a[i], b[i], weight);
  }

 private:
  struct Held {
    int64_t row = -1;
    // A vector of the last pixel may end behind it.
    std::array<float, kBlock + 4> numbers;
  };

  // In the place of a row other than `kept`.
  const float* resized(int64_t row, int64_t kept) {
    for (const Held& held : held_)
      if (held.row == row) return held.numbers.data();
    Held& held = held_[held_[0].row == kept ? 1 : 0];
    held.row = row;
    rows_.resize(row, first_, size_, held.numbers.data());
    return held.numbers.data();
  }

  const Rows<T>& rows_;
  const int64_t first_, size_;
  std::array<Held, 2> held_;
};

template <class T>
class ResizeBilinearKernel : public ResizeBase {
 public:
  explicit ResizeBilinearKernel(Scale scale) : ResizeBase(scale) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    return make_kernel<ResizeBilinearKernel>(info);
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(check_images(context, 0));
    const Tensor& images = context.input(0);
    TAGFLOW_RETURN_IF_ERROR(check_channels(context));
    TAGFLOW_ASSIGN(const Shape shape, sized(context));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    if (out->num_elements() == 0) return Status();
    const int64_t height = images.dim(1), width = images.dim(2);
    const int64_t channels = images.dim(3);
    TAGFLOW_ASSIGN(const auto ys,
                   interpolate(context, scale(), height, shape.dim(1)));
    TAGFLOW_ASSIGN(const auto xs,
                   interpolate(context, scale(), width, shape.dim(2)));
    const Rows<T> rows{images.data<T>(), width, channels, xs.positions};
    float* to = out->mutable_data<float>();
    const int64_t row_size = shape.dim(2) * channels;
    context.parallel_for(
        shape.dim(0) * shape.dim(1), double(row_size) * 3,
        [&](int64_t begin, int64_t end) {
          // In blocks of whole pixels, if a pixel fits into one.
          const int64_t most =
              channels <= kBlock ? kBlock / channels * channels : kBlock;
          for (int64_t first = 0; first < row_size; first += most) {
            BlockOfRows<T> block(rows, first, std::min(most, row_size - first));
            for (int64_t row = begin; row < end; ++row) {
              const Between& y = ys.positions[size_t(row % shape.dim(1))];
              const int64_t image = row / shape.dim(1) * height;
              block.blend(image + y.low, image + y.high, y.weight,
                          to + row * row_size + first);
            }
          }
        });
    return Status();
  }
};

class ResizeBilinearGradKernel : public ResizeBase {
 public:
  explicit ResizeBilinearGradKernel(Scale scale) : ResizeBase(scale) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    return make_kernel<ResizeBilinearGradKernel>(info);
  }

  Status compute(KernelContext& context) const override {
    for (int i : {0, 1}) TAGFLOW_RETURN_IF_ERROR(check_images(context, i));
    const Tensor& grads = context.input(0);
    const Tensor& image = context.input(1);
    if (grads.dim(0) != image.dim(0) || grads.dim(3) != image.dim(3))
      return context.fail("the gradient {} is not one of images {}",
                          grads.describe(), image.describe());
    TAGFLOW_ASSIGN(Tensor sums,
                   context.allocate_temp(DataType::kDouble, image.shape()));
    double* to = sums.mutable_data<double>();
    std::fill_n(to, sums.num_elements(), 0.0);
    if (image.num_elements() == 0) return finish(context, sums);
    TAGFLOW_ASSIGN(const auto ys,
                   interpolate(context, scale(), image.dim(1), grads.dim(1)));
    TAGFLOW_ASSIGN(const auto xs,
                   interpolate(context, scale(), image.dim(2), grads.dim(2)));
    const int64_t channels = image.dim(3);
    const float* from = grads.data<float>();
    for (int64_t n = 0; n < image.dim(0); ++n)
      for (const Between& y : ys.positions)
        for (const Between& x : xs.positions) {
          context.check_cancelled();
          // The parts are floats, as in TensorFlow, even for doubles.
          const auto add = [&](int64_t row, int64_t column, float y_part,
                               float x_part) {
            double* pixel =
                to +
                ((n * image.dim(1) + row) * image.dim(2) + column) * channels;
            for (int64_t c = 0; c < channels; ++c)
              pixel[c] += double(from[c] * y_part * x_part);
          };
          add(y.low, x.low, 1 - y.weight, 1 - x.weight);
          add(y.low, x.high, 1 - y.weight, x.weight);
          add(y.high, x.low, y.weight, 1 - x.weight);
          add(y.high, x.high, y.weight, x.weight);
          from += channels;
        }
    return finish(context, sums);
  }

 private:
  static Status finish(KernelContext& context, const Tensor& sums) {
    TAGFLOW_ASSIGN(Tensor typed,
                   convert(context, sums, context.input(1).dtype()));
    context.set_output(0, std::move(typed));
    return Status();
  }
};

// Gathers pixels, or, as a gradient, adds them to their sources.
template <class T>
class ResizeNearestKernel : public ResizeBase {
 public:
  explicit ResizeNearestKernel(Scale scale) : ResizeBase(scale) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    return make_kernel<ResizeNearestKernel>(info);
  }

  Status compute(KernelContext& context) const override {
    const bool is_grad = context.node().op() == "ResizeNearestNeighborGrad";
    if (is_grad) {
      TAGFLOW_RETURN_IF_ERROR(check_rank(context, 0));
    } else {
      TAGFLOW_RETURN_IF_ERROR(check_images(context, 0));
      TAGFLOW_RETURN_IF_ERROR(check_channels(context));
    }
    TAGFLOW_ASSIGN(const Shape shape, sized(context));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    if (out->num_elements() == 0) return Status();
    const Shape images = context.input(0).shape();
    // As in TensorFlow, the gradient of an image without result pixels is
    // zeros.
    if (is_grad && images.num_elements() == 0) {
      std::fill_n(out->mutable_data<T>(), out->num_elements(), T(0));
      return Status();
    }
    const Shape& small = is_grad ? shape : images;  // the original
    const Shape& large = is_grad ? images : shape;  // the resized
    TAGFLOW_ASSIGN(const auto ys,
                   nearest(context, scale(), small.dim(1), large.dim(1)));
    TAGFLOW_ASSIGN(const auto xs,
                   nearest(context, scale(), small.dim(2), large.dim(2)));
    const int64_t channels = images.dim(3);
    const T* from = context.input(0).data<T>();
    T* to = out->mutable_data<T>();
    if (is_grad) std::fill_n(to, out->num_elements(), T(0));
    for (int64_t n = 0; n < images.dim(0); ++n)
      for (int64_t y : ys.positions)
        for (int64_t x : xs.positions) {
          context.check_cancelled();
          const int64_t at =
              ((n * small.dim(1) + y) * small.dim(2) + x) * channels;
          if (is_grad) {
            for (int64_t c = 0; c < channels; ++c)
              to[at + c] = T(to[at + c] + from[c]);
            from += channels;
          } else {
            to = std::copy_n(from + at, channels, to);
          }
        }
    return Status();
  }
};

}  // namespace

void register_resize_kernels(KernelRegistry& registry) {
  for_each<int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, Half, float,
           double, BFloat16>([&]<class T>(TypeTag<T>) {
    const DataType type = kDataTypeOf<T>;
    registry.add<ResizeBilinearKernel<T>>("ResizeBilinear", {{"T", {type}}});
    for (const char* op :
         {"ResizeNearestNeighbor", "ResizeNearestNeighborGrad"})
      registry.add<ResizeNearestKernel<T>>(op, {{"T", {type}}});
  });
  registry.add<ResizeBilinearGradKernel>("ResizeBilinearGrad");
}

}  // namespace tagflow::devices
