#include "devices/kernels/convolution/conv_base.h"

#include "graph/dtype_visit.h"

namespace tagflow::devices {

ConvRole conv_role(const KernelInfo& info) {
  const std::string& op = info.node().op();
  if (op.find("BackpropInput") != std::string::npos) return ConvRole::kToInput;
  if (op.find("BackpropFilter") != std::string::npos)
    return ConvRole::kToFilter;
  return ConvRole::kForward;
}

Result<graph::WindowAttrs> conv_attrs(const KernelInfo& info) {
  const int rank = info.node().op().starts_with("Conv3D") ? 5 : 4;
  TAGFLOW_ASSIGN(graph::WindowAttrs window,
                 graph::window_attrs(info.node(), rank));
  for (const auto* list : {&window.stride, &window.dilation})
    if ((*list)[0] != 1 || (*list)[size_t(window.channel_dim())] != 1)
      return error(list == &window.stride ? Code::kUnimplemented
                                          : Code::kInvalidArgument,
                   "[{}] node \"{}\": {} over the batch or the channels",
                   info.node().op(), info.name(),
                   list == &window.stride ? "strides" : "dilations");
  return window;
}

double ConvKernelBase::cost(const KernelContext& context) const {
  // Every output element is a sum over a filter without its output channels;
  // the tensors with positions are the first and the last input.
  const bool forward = role_ == ConvRole::kForward;
  const Tensor& positions = context.input(forward ? 0 : 2);
  const Tensor& filter = context.input(1);
  double taps = 9;
  if (role_ != ConvRole::kToFilter && filter.rank() == window_.rank &&
      filter.dim(window_.rank - 1) > 0)
    taps = double(filter.num_elements());
  const double channels = positions.rank() == window_.rank
                              ? double(positions.dim(window_.channel_dim()))
                              : 1;
  return 500 +
         double(positions.num_elements()) / std::max(1.0, channels) * taps / 20;
}

Result<Shape> ConvKernelBase::shape_of_sizes(const KernelContext& context,
                                             const Tensor& sizes, int rank) {
  if (sizes.rank() != 1 || sizes.dim(0) != rank)
    return context.fail("the sizes are {}, not a vector of {}",
                        sizes.describe(), rank);
  Shape::Dims dims;
  detail::visit_among<int32_t, int64_t>(sizes.dtype(),
                                        [&]<class T>(TypeTag<T>) {
                                          for (T size : sizes.flat<T>())
                                            dims.push_back(size);
                                        });
  Result<Shape> shape = Shape::make({dims.data(), dims.size()});
  if (!shape.ok()) return context.fail("{}", shape.status().message());
  return shape;
}

Result<Shape> ConvKernelBase::input_shape(const KernelContext& context,
                                          const Shape& filter) const {
  if (role_ != ConvRole::kToInput) return context.input(0).shape();
  const Tensor& sizes = context.input(0);
  // Spatial sizes alone are completed from the other inputs.
  if (sizes.rank() == 1 && sizes.dim(0) == window_.spatial_count()) {
    TAGFLOW_ASSIGN(const Shape spatial,
                   shape_of_sizes(context, sizes, window_.spatial_count()));
    Spatial positions{1, 1, 1};
    for (int i = 0; i < spatial.rank(); ++i)
      positions[size_t(i + 3 - spatial.rank())] = spatial.dim(i);
    return make_shape(window_, context.input(2).dim(0), positions,
                      filter.dim(window_.rank - 2));
  }
  return shape_of_sizes(context, sizes, window_.rank);
}

Result<ConvKernelBase::Shapes> ConvKernelBase::shapes(
    const KernelContext& context) const {
  const int rank = window_.rank;
  Shapes shapes;
  for (int i = 0; i < context.num_inputs(); ++i) {
    const bool is_sizes = i == 0 ? role_ == ConvRole::kToInput
                                 : i == 1 && role_ == ConvRole::kToFilter;
    if (!is_sizes && context.input(i).rank() != rank)
      return context.fail("input {} is {}, not of {} dimensions", i,
                          context.input(i).describe(), rank);
  }
  if (role_ == ConvRole::kToFilter) {
    TAGFLOW_ASSIGN(shapes.filter,
                   shape_of_sizes(context, context.input(1), rank));
  } else {
    shapes.filter = context.input(1).shape();
  }
  TAGFLOW_ASSIGN(shapes.input, input_shape(context, shapes.filter));
  Spatial size{1, 1, 1};
  for (int i = 0; i < rank - 2; ++i)
    size[size_t(i + 5 - rank)] = shapes.filter.dim(i);
  TAGFLOW_ASSIGN(shapes.geometry,
                 make_geometry(context, window_, shapes.input, size));
  TAGFLOW_ASSIGN(
      const int64_t channels,
      output_channels(context, shapes.filter, shapes.geometry.channels));
  TAGFLOW_ASSIGN(shapes.output, make_shape(window_, shapes.geometry.batch,
                                           shapes.geometry.out, channels));
  if (role_ != ConvRole::kForward &&
      !(context.input(2).shape() == shapes.output))
    return context.fail(
        "out_backprop is {}, but an input {} and a filter {} make {}",
        context.input(2).describe(), shapes.input.to_string(),
        shapes.filter.to_string(), shapes.output.to_string());
  return shapes;
}

}  // namespace tagflow::devices
