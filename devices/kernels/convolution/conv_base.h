// The common part of the kernels of all convolutions: attributes, checks, and
// the types in which they compute.
#pragma once

#include <cstdint>

#include "devices/kernels/convolution/geometry.h"

namespace tagflow::devices {

// The part of a convolution that a kernel computes.
enum class ConvRole : uint8_t { kForward, kToInput, kToFilter };

class ConvKernelBase : public Kernel {
 public:
  double cost(const KernelContext& context) const override;

 protected:
  // The three shapes of a convolution.
  struct Shapes {
    Shape input, filter, output;
    Geometry geometry;
  };

 public:
  ConvKernelBase(graph::WindowAttrs window, ConvRole role)
      : window_(std::move(window)), role_(role) {}

 protected:
  // From the role's inputs, tensors or sizes; the output shape is computed from
  // the others and, for a gradient, compared with that of out_backprop.
  // InvalidArgument if they do not match.
  Result<Shapes> shapes(const KernelContext& context) const;
  // The output channels of a filter of this shape for so many input channels;
  // InvalidArgument if the filter does not fit them.
  virtual Result<int64_t> output_channels(const KernelContext& context,
                                          const Shape& filter,
                                          int64_t channels) const = 0;

  // The shape in an integer vector. InvalidArgument if it is not a shape of
  // `rank` dimensions.
  static Result<Shape> shape_of_sizes(const KernelContext& context,
                                      const Tensor& sizes, int rank);
  // The type in which elements of a type are multiplied.
  static DataType working_type(DataType dtype) {
    return dtype == DataType::kHalf || dtype == DataType::kBFloat16
               ? DataType::kFloat
               : dtype;
  }

  const graph::WindowAttrs& window() const { return window_; }
  ConvRole role() const { return role_; }

 private:
  Result<Shape> input_shape(const KernelContext& context,
                            const Shape& filter) const;

  graph::WindowAttrs window_;
  ConvRole role_;
};

// The attributes of a convolution. Unimplemented if it strides or dilates
// over the batch or the channels.
Result<graph::WindowAttrs> conv_attrs(const KernelInfo& info);
ConvRole conv_role(const KernelInfo& info);

}  // namespace tagflow::devices
