// Convolutions.
#include <algorithm>

#include "autodiff/rule.h"
#include "autodiff/rules/attributes.h"
#include "autodiff/rules/forward.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {
namespace {

// A convolution y of x with the filter f, and its gradients. All three are
// linear in each of their two tensors, so each gradient of one of them is
// another one of them:
//
//            takes                gradients of what it takes
//   forward  x, f                 to_input(f, g), to_filter(x, g)
//   to_input shape of x, f, dy    to_filter(g, dy), forward(g, f)
//   to_filter x, shape of f, dy   to_input(g, dy), forward(x, g)
struct ConvolutionOps {
  const char* forward;
  const char* to_input;
  const char* to_filter;
};

constexpr ConvolutionOps kConvolutions[] = {
    {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"},
    {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"},
    {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
     "DepthwiseConv2dNativeBackpropFilter"},
};

constexpr std::string_view kConvolutionAttrs[] = {
    "strides",     "padding",   "explicit_paddings",
    "data_format", "dilations", "use_cudnn_on_gpu"};

// The ops of a node's family, with the node's attributes.
class ConvolutionFamily {
 public:
  explicit ConvolutionFamily(const RuleContext& r)
      : s_(r.scope()), attrs_(copied_attrs(r.node(), kConvolutionAttrs)) {
    const std::string& op = r.node().op();
    ops_ = *std::ranges::find_if(kConvolutions, [&](const ConvolutionOps& o) {
      return op == o.forward || op == o.to_input || op == o.to_filter;
    });
  }

  Output forward(const Output& x, const Output& filter) const {
    return s_.op(ops_.forward, {x, filter}, attrs_);
  }
  Output to_input(const Output& x_shape, const Output& filter,
                  const Output& grad) const {
    return s_.op(ops_.to_input, {x_shape, filter, grad}, attrs_);
  }
  Output to_filter(const Output& x, const Output& filter_shape,
                   const Output& grad) const {
    return s_.op(ops_.to_filter, {x, filter_shape, grad}, attrs_);
  }

 private:
  const Scope& s_;
  const AttrMap attrs_;
  ConvolutionOps ops_;
};

void convolution_rule(RuleContext& r) {
  const ConvolutionFamily family(r);
  if (r.wants(0))
    r.set(0, family.to_input(r.input_shape(0), r.input(1), r.grad()));
  if (r.wants(1))
    r.set(1, family.to_filter(r.input(0), r.input_shape(1), r.grad()));
}

void convolution_to_input_rule(RuleContext& r) {
  const ConvolutionFamily family(r);
  if (r.wants(1))
    r.set(1, family.to_filter(r.grad(), r.input_shape(1), r.input(2)));
  if (r.wants(2)) r.set(2, family.forward(r.grad(), r.input(1)));
}

void convolution_to_filter_rule(RuleContext& r) {
  const ConvolutionFamily family(r);
  if (r.wants(0))
    r.set(0, family.to_input(r.input_shape(0), r.grad(), r.input(2)));
  if (r.wants(2)) r.set(2, family.forward(r.input(0), r.grad()));
}

}  // namespace

void add_convolution_rules(RuleTable& table) {
  for (const ConvolutionOps& family : kConvolutions) {
    table.add(family.forward, convolution_rule);
    table.add(family.to_input, convolution_to_input_rule);
    table.add(family.to_filter, convolution_to_filter_rule);
  }
  table.add({"_FusedConv2D", "_FusedDepthwiseConv2dNative"}, fused_rule);
  table.add_forward({"Conv2D", "Conv3D", "DepthwiseConv2dNative"},
                    multilinear<0, 1>);
  table.add_forward({"Conv2DBackpropInput"}, multilinear<1, 2>);
  table.add_forward({"Conv2DBackpropFilter"}, multilinear<0, 2>);
}

}  // namespace tagflow::autodiff
