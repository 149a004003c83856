// What the kernels of all convolutions have in common: attributes, checks,
// the types in which they work.
#pragma once

#include "devices/cpu/nn/geometry.h"

namespace tagflow::devices {

// The inputs and outputs of a convolution, and which of them a kernel makes.
enum class ConvRole { kForward, kToInput, kToFilter };

class ConvKernelBase : public Kernel {
 public:
  double cost(const KernelContext& context) const override;

 protected:
  // The three shapes that belong together.
  struct Shapes {
    Shape input, filter, output;
    Geometry geometry;
  };

 public:
  ConvKernelBase(graph::WindowAttrs window, ConvRole role)
      : window_(std::move(window)), role_(role) {}

 protected:
  // From the role's inputs, tensors or sizes; output is computed from the
  // others and, for a gradient, compared with that of out_backprop.
  // InvalidArgument where they do not belong together.
  Result<Shapes> shapes(const KernelContext& context) const;
  // What a filter of this shape makes of so many input channels;
  // InvalidArgument where it cannot be applied to them.
  virtual Result<int64_t> output_channels(const KernelContext& context,
                                          const Shape& filter,
                                          int64_t channels) const = 0;

  // The shape that an integer vector holds. InvalidArgument where it is none
  // of `rank` dimensions.
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

// The attributes of a convolution. Unimplemented where it strides or dilates
// over the batch or the channels.
Result<graph::WindowAttrs> conv_attrs(const KernelInfo& info);
ConvRole conv_role(const KernelInfo& info);

}  // namespace tagflow::devices
