// Conv2D, Conv3D and their gradients.
#include <algorithm>

#include "devices/kernel_registry.h"
#include "devices/kernels/convolution/conv_base.h"
#include "devices/kernels/convolution/conv_loops.h"
#include "devices/kernels/convolution/library_convolution.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {
namespace {

class ConvKernel : public ConvKernelBase {
 public:
  ConvKernel(graph::WindowAttrs window, ConvRole role)
      : ConvKernelBase(std::move(window), role),
        library_(LibraryConvolution::make(role)) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(graph::WindowAttrs window, conv_attrs(info));
    return std::unique_ptr<Kernel>(
        std::make_unique<ConvKernel>(std::move(window), conv_role(info)));
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Shapes all, shapes(context));
    // As in TensorFlow, which in two dimensions checks this only if there is
    // something to compute.
    if (role() == ConvRole::kForward && all.filter.num_elements() == 0 &&
        (window().rank == 5 || all.output.num_elements() > 0))
      return context.fail("the filter {} is empty", all.filter.to_string());
    Convolution conv;
    conv.geometry = all.geometry;
    const int rank = window().rank;
    conv.out_channels = all.filter.dim(rank - 1);
    conv.groups = all.geometry.channels / all.filter.dim(rank - 2);
    Status status;
    detail::visit_among<float, double, int32_t>(
        working_type(context.node().output_dtypes()[0]),
        [&]<class W>(TypeTag<W>) { status = run<W>(context, all, conv); });
    return status;
  }

 protected:
  Result<int64_t> output_channels(const KernelContext& context,
                                  const Shape& filter,
                                  int64_t channels) const override {
    const int rank = window().rank;
    const int64_t in = filter.dim(rank - 2), out = filter.dim(rank - 1);
    const bool may_group = rank == 4 && in > 0 && channels > 0;
    const bool fits =
        in > 0 && (channels == in || (may_group && channels % in == 0 &&
                                      out % (channels / in) == 0));
    if (!fits)
      return context.fail("a filter {} does not fit {} input channels",
                          filter.to_string(), channels);
    return out;
  }

 private:
  // An input in the type and order that the loops read.
  template <class W>
  Result<Tensor> prepared(const KernelContext& context, int i) const {
    const bool is_filter = i == 1;
    Tensor last = context.input(i);
    if (!is_filter) {
      TAGFLOW_ASSIGN(last, to_channels_last(context, window(), last));
    }
    return convert(context, last, kDataTypeOf<W>);
  }

  template <class W>
  Status run(KernelContext& context, const Shapes& all,
             const Convolution& conv) const {
    const Shape& shape = role() == ConvRole::kForward    ? all.output
                         : role() == ConvRole::kToFilter ? all.filter
                                                         : all.input;
    TAGFLOW_ASSIGN(Tensor result, context.allocate_temp(kDataTypeOf<W>, shape));
    W* out = result.mutable_data<W>();
    if (all.input.num_elements() == 0 || all.output.num_elements() == 0) {
      std::fill_n(out, result.num_elements(), W(0));
    } else {
      TAGFLOW_RETURN_IF_ERROR(run_loops<W>(context, conv, out));
    }
    if (role() != ConvRole::kToFilter)
      return set_output_from(context, window(), shape, result);
    TAGFLOW_ASSIGN(Tensor typed,
                   convert(context, result, context.node().output_dtypes()[0]));
    context.set_output(0, std::move(typed));
    return Status();
  }

  template <class W>
  Status run_loops(const KernelContext& context, const Convolution& conv,
                   W* made) const {
    // Of the role's three tensors two are read, and one is written.
    Tensor in, filter, out;
    if (role() != ConvRole::kToInput) {
      TAGFLOW_ASSIGN(in, prepared<W>(context, 0));
    }
    if (role() != ConvRole::kToFilter) {
      TAGFLOW_ASSIGN(filter, prepared<W>(context, 1));
    }
    if (role() != ConvRole::kForward) {
      TAGFLOW_ASSIGN(out, prepared<W>(context, 2));
    }
    if constexpr (std::is_same_v<W, float>) {
      TAGFLOW_ASSIGN(const bool done,
                     run_library(context, conv, in, filter, out, made));
      if (done) return {};
    }
    switch (role()) {
      case ConvRole::kForward:
        return convolve(context, conv, in.data<W>(), filter.data<W>(), made);
      case ConvRole::kToInput:
        return convolve_to_input(context, conv, filter.data<W>(), out.data<W>(),
                                 made);
      case ConvRole::kToFilter:
        if constexpr (std::is_floating_point_v<W>)
          return convolve_to_filter(context, conv, in.data<W>(), out.data<W>(),
                                    made);
    }
    return error(Code::kUnimplemented, "[{}] no gradient of integers",
                 context.node().op());
  }

  // False if the loops must do it.
  Result<bool> run_library(const KernelContext& context,
                           const Convolution& conv, const Tensor& in,
                           const Tensor& filter, const Tensor& out,
                           float* made) const {
    if (library_ == nullptr) return false;
    LibraryConvolution::Elements elements{.made = made};
    if (role() != ConvRole::kToInput) elements.in = in.data<float>();
    if (role() != ConvRole::kToFilter) elements.filter = filter.data<float>();
    if (role() != ConvRole::kForward) elements.out = out.data<float>();
    return library_->compute(context, conv, elements);
  }

  const std::unique_ptr<LibraryConvolution> library_;
};

}  // namespace

void register_conv_kernels(KernelRegistry& registry) {
  std::vector<DataType> types = {DataType::kFloat, DataType::kDouble,
                                 DataType::kHalf, DataType::kBFloat16};
  for (const char* op : {"Conv2DBackpropFilter", "Conv3D",
                         "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"})
    registry.add<ConvKernel>(op, {{"T", types}});
  types.push_back(DataType::kInt32);
  for (const char* op : {"Conv2D", "Conv2DBackpropInput"})
    registry.add<ConvKernel>(op, {{"T", types}});
}

}  // namespace tagflow::devices
