// Convolutions and their gradients.
#include "graph/op_registry.h"
#include "graph/ops/convolution_window.h"
#include "graph/ops/product_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

// The output of a convolution of input 0 with the filter of input 1, whose
// dimensions are the spatial ones, input channels, output channels. Those of
// a depthwise filter are multiplied.
Status conv_shape(ShapeContext& c, int rank, bool depthwise) {
  TAGFLOW_ASSIGN(const WindowAttrs window, window_attrs(c.node(), rank));
  TAGFLOW_ASSIGN(const PartialShape in, c.with_rank(0, rank));
  TAGFLOW_ASSIGN(const PartialShape filter, c.with_rank(1, rank));
  PartialShape out = PartialShape::of_rank(rank);
  out.set_dim(0, in.dim(0));
  for (int i = 0; i < window.spatial_count(); ++i) {
    const int at = window.spatial_dim(i);
    if (!in.dim_known(at) || !filter.dim_known(i)) continue;
    Result<int64_t> count = inferred_count(window.spatial(i, filter.dim(i)),
                                           in.dim(at), window.padding);
    if (!count.ok()) return c.fail(count.status().message());
    out.set_dim(at, *count);
  }
  const int64_t channels = in.dim(window.channel_dim());
  const int64_t filter_in = filter.dim(rank - 2);
  const int64_t filter_out = filter.dim(rank - 1);
  if (channels != PartialShape::kUnknown &&
      filter_in != PartialShape::kUnknown) {
    const bool fits = depthwise || rank == 5
                          ? channels == filter_in
                          : filter_in > 0 && channels % filter_in == 0;
    if (!fits)
      return c.fail(fmt::format("a filter {} does not fit the channels of {}",
                                filter.to_string(), in.to_string()));
  }
  int64_t out_channels = filter_out;
  if (depthwise) {
    out_channels = PartialShape::kUnknown;
    if (filter_in != PartialShape::kUnknown &&
        filter_out != PartialShape::kUnknown)
      out_channels = checked_multiply(filter_in, filter_out)
                         .value_or(PartialShape::kUnknown);
  }
  out.set_dim(window.channel_dim(), out_channels);
  c.set_output(0, std::move(out));
  return Status();
}

// The output has the shape given by input `sizes`.
Status shape_from_input(ShapeContext& c, int sizes, int rank) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(sizes, 1).status());
  TAGFLOW_ASSIGN(const PartialShape shape, c.constant_as_shape(sizes));
  if (shape.has_rank() && shape.rank() == rank)
    c.set_output(0, shape);
  else
    c.set_output(0, PartialShape::of_rank(rank));
  return Status();
}

OpDefBuilder conv(const std::string& name, const char* types, int rank) {
  OpDefBuilder builder(name);
  builder.attrs({types, "strides: list(int)"})
      .work(name.starts_with("Depthwise") ? Work::kDepthwise
                                          : Work::kConvolution);
  if (rank == 4) {
    if (name.starts_with("Conv2D"))
      builder.attr("use_cudnn_on_gpu: bool = true");
    builder.attrs({"padding: {'SAME', 'VALID', 'EXPLICIT'}",
                   "explicit_paddings: list(int) = []",
                   "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
                   "dilations: list(int) = [1, 1, 1, 1]"});
  } else {
    builder.attrs({"padding: {'SAME', 'VALID'}",
                   "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
                   "dilations: list(int) = [1, 1, 1, 1, 1]"});
  }
  return builder;
}

// A convolution and both of its gradients.
void add_family(OpRegistry& registry, const std::string& name,
                const std::string& suffix, const char* types,
                const char* filter_types, int rank) {
  const bool depthwise = name == "DepthwiseConv2dNative";
  registry.add(conv(name, types, rank)
                   .inputs({"input: T", "filter: T"})
                   .output("output: T")
                   .shape([rank, depthwise](ShapeContext& c) {
                     return conv_shape(c, rank, depthwise);
                   }));
  OpDefBuilder to_input =
      conv(name + "BackpropInput" + suffix, types, rank)
          .inputs({rank == 5 ? "input_sizes: Tshape" : "input_sizes: int32",
                   "filter: T", "out_backprop: T"})
          .output("output: T")
          .shape([rank](ShapeContext& c) {
            TAGFLOW_RETURN_IF_ERROR(window_attrs(c.node(), rank).status());
            return shape_from_input(c, 0, rank);
          });
  if (rank == 5) to_input.attr("Tshape: {int32, int64} = int32");
  registry.add(std::move(to_input));
  registry.add(
      conv(name + "BackpropFilter" + suffix, filter_types, rank)
          .inputs({"input: T", "filter_sizes: int32", "out_backprop: T"})
          .output("output: T")
          .shape([rank](ShapeContext& c) {
            TAGFLOW_RETURN_IF_ERROR(window_attrs(c.node(), rank).status());
            return shape_from_input(c, 1, rank);
          }));
}

}  // namespace

void register_convolution_ops(OpRegistry& registry) {
  const char* floats = "T: {half, bfloat16, float, double}";
  const char* floats_int32 = "T: {half, bfloat16, float, double, int32}";
  add_family(registry, "Conv2D", "", floats_int32, floats, 4);
  add_family(registry, "DepthwiseConv2dNative", "", floats, floats, 4);
  add_family(registry, "Conv3D", "V2", floats, floats, 5);
  for (const char* op : {"Conv2D", "DepthwiseConv2dNative"})
    add_layer(registry, op);
}

}  // namespace tagflow::graph
