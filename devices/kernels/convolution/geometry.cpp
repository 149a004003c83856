#include "devices/kernels/convolution/geometry.h"

#include "graph/dtype_visit.h"

namespace tagflow::devices {
namespace {

// Spatial dimension i of `count` is number i + 3 - count of Spatial.
int spatial_slot(const graph::WindowAttrs& window, int i) {
  return i + 3 - window.spatial_count();
}

// [batch, rows, columns] to [batch, columns, rows].
template <class T>
void transpose(const T* in, int64_t batch, int64_t rows, int64_t columns,
               T* out) {
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        out[j * rows + i] = in[i * columns + j];
    in += rows * columns;
    out += rows * columns;
  }
}

}  // namespace

Result<Geometry> make_geometry(const KernelContext& context,
                               const graph::WindowAttrs& window,
                               const Shape& input, const Spatial& size) {
  Geometry geometry;
  geometry.batch = input.dim(0);
  geometry.channels = input.dim(window.channel_dim());
  for (int i = 0; i < window.spatial_count(); ++i) {
    const auto slot = size_t(spatial_slot(window, i));
    const graph::WindowDim dim = window.spatial(i, size[slot]);
    geometry.in[slot] = input.dim(window.spatial_dim(i));
    geometry.size[slot] = dim.size;
    geometry.stride[slot] = dim.stride;
    geometry.dilation[slot] = dim.dilation;
    Result<graph::Positions> positions =
        graph::slide(dim, geometry.in[slot], window.padding);
    if (!positions.ok())
      return context.fail("{}", positions.status().message());
    geometry.out[slot] = positions->count;
    geometry.pad[slot] = positions->pad_before;
  }
  const auto area = checked_multiply(geometry.size[0], geometry.size[1]);
  if (!area || !checked_multiply(*area, geometry.size[2]))
    return context.fail("a window of {} x {} x {} is too large",
                        geometry.size[0], geometry.size[1], geometry.size[2]);
  // Also for an empty tensor, whose sizes may be any.
  for (const Spatial& positions : {geometry.in, geometry.out}) {
    std::optional<int64_t> count = std::max<int64_t>(1, geometry.channels);
    for (const int64_t dim : positions)
      if (count) count = checked_multiply(*count, dim);
    if (!count)
      return context.fail("{} x {} x {} positions of {} channels are too many",
                          positions[0], positions[1], positions[2],
                          geometry.channels);
  }
  return geometry;
}

Result<Geometry> make_pool_geometry(const KernelContext& context,
                                    const graph::WindowAttrs& window,
                                    const Shape& input) {
  Spatial size{1, 1, 1};
  for (int i = 0; i < window.spatial_count(); ++i)
    size[size_t(spatial_slot(window, i))] =
        window.size[size_t(window.spatial_dim(i))];
  return make_geometry(context, window, input, size);
}

Result<Shape> make_shape(const graph::WindowAttrs& window, int64_t batch,
                         const Spatial& positions, int64_t channels) {
  std::array<int64_t, 5> dims{};
  dims[0] = batch;
  dims[size_t(window.channel_dim())] = channels;
  for (int i = 0; i < window.spatial_count(); ++i)
    dims[size_t(window.spatial_dim(i))] =
        positions[size_t(spatial_slot(window, i))];
  return Shape::make({dims.data(), size_t(window.rank)});
}

Result<Tensor> to_channels_last(const KernelContext& context,
                                const graph::WindowAttrs& window,
                                const Tensor& tensor) {
  if (!window.channels_first) return tensor;
  Shape shape = tensor.shape();
  shape.remove_dim(1);
  shape.add_dim(tensor.dim(1));
  TAGFLOW_ASSIGN(Tensor last,
                 Tensor::allocate(tensor.dtype(), shape, context.allocator()));
  if (tensor.num_elements() == 0) return last;
  const int64_t batch = tensor.dim(0), channels = tensor.dim(1);
  const int64_t positions = tensor.num_elements() / (batch * channels);
  visit_size(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    transpose(static_cast<const T*>(tensor.raw()), batch, channels, positions,
              static_cast<T*>(last.mutable_raw()));
  });
  return last;
}

void from_channels_last(const graph::WindowAttrs& window, const Tensor& last,
                        Tensor& out) {
  if (last.num_elements() == 0) return;
  const int64_t batch = out.dim(0);
  const int64_t channels = out.dim(window.channel_dim());
  const int64_t positions = out.num_elements() / (batch * channels);
  visit_size(out.dtype(), [&]<class T>(TypeTag<T>) {
    transpose(static_cast<const T*>(last.raw()), batch, positions, channels,
              static_cast<T*>(out.mutable_raw()));
  });
}

Result<Tensor> convert(const KernelContext& context, const Tensor& tensor,
                       DataType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  TAGFLOW_ASSIGN(Tensor converted,
                 Tensor::allocate(dtype, tensor.shape(), context.allocator()));
  visit_floating(tensor.dtype(), [&]<class From>(TypeTag<From>) {
    visit_floating(dtype, [&]<class To>(TypeTag<To>) {
      const From* from = tensor.data<From>();
      To* to = converted.mutable_data<To>();
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        if constexpr (std::is_same_v<From, double>)
          to[i] = static_cast<To>(from[i]);
        else
          to[i] = static_cast<To>(static_cast<float>(from[i]));
      }
    });
  });
  return converted;
}

Status set_output_from(KernelContext& context, const graph::WindowAttrs& window,
                       const Shape& shape, const Tensor& last) {
  TAGFLOW_ASSIGN(Tensor typed,
                 convert(context, last, context.node().output_dtypes()[0]));
  if (!window.channels_first) {
    TAGFLOW_ASSIGN(Tensor shaped, typed.reshaped(shape));
    context.set_output(0, std::move(shaped));
    return Status();
  }
  TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
  from_channels_last(window, typed, *out);
  return Status();
}

}  // namespace tagflow::devices
