// Convolutions with oneDNN.
//
// Note [Images of a convolution]
// A primitive of the library runs on the calling thread. We divide the images
// of a batch into parts, which workers share. Primitives need the filter in
// their own order; it is reordered once for all parts. For the gradient of the
// filter, each part computes one from its images, and these are added up in
// order. The number of parts, and with it the rounding, depends on the shapes
// only.
#include <algorithm>
#include <array>
#include <atomic>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

#include "devices/kernels/convolution/library_convolution.h"
#include "devices/kernels/onednn.h"
#include "devices/kernels/part_count.h"
#include "devices/kernels/scratch.h"

namespace tagflow::devices {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
constexpr auto kFloat = dnnl::memory::data_type::f32;

// The computation for a number of images.
struct Primitive {
  dnnl::primitive call;
  Desc in, filter, out, scratchpad;
};

// The computation for one shape.
struct Plan {
  int64_t images = 0;     // of a part; the last one may have fewer
  Primitive whole, rest;  // of that many images, and of the last part
  Desc filter;            // in the caller's order
  dnnl::reorder reorder;  // of the filter; on the way in or out
  double part_cost = 0;   // nanoseconds
  bool works = true;      // the library supports it
};

dnnl::memory memory_at(const Desc& desc, const void* elements) {
  return {desc, onednn_engine(), const_cast<void*>(elements)};
}

// Floats of a temporary tensor for one call.
Result<Tensor> allocate(const KernelContext& context, int64_t elements) {
  const int64_t dims[] = {elements};
  return Tensor::allocate(DataType::kFloat, Shape(dims), context.allocator());
}

class OneDnnConvolution final : public LibraryConvolution {
 public:
  explicit OneDnnConvolution(ConvRole role) : role_(role) {}

  Result<bool> compute(const KernelContext& context, const Convolution& conv,
                       const Elements& elements) override {
    // Preparing a shape takes as long as hundreds of thousands of products.
    constexpr double kLeastWork = 1 << 18;
    if (conv.work() < kLeastWork) return false;
    try {
      const std::shared_ptr<const Plan> plan =
          plans_.find(conv, [&](Plan& made) { fill(made, conv); });
      if (!plan->works) return false;
      return role_ == ConvRole::kToFilter
                 ? to_filter(context, *plan, conv, elements)
                 : by_filter(context, *plan, conv, elements);
    } catch (const std::exception&) {
      return no_memory(context);
    }
  }

 private:
  // The library fails to run only if memory is exhausted.
  static Status no_memory(const KernelContext& context) {
    return error(Code::kResourceExhausted, "[{}] no memory for a convolution",
                 context.node().op());
  }

  // --- Running --------------------------------------------------------------

  static int64_t size_of(const Desc& desc) {
    return int64_t(desc.get_size() / sizeof(float));
  }

  // Calls body(part) for each, in parallel; returns whether none has thrown.
  template <class Body>
  static bool for_parts(const KernelContext& context, const Plan& plan,
                        int64_t parts, Body&& body) {
    std::atomic<bool> failed = false;
    context.parallel_for(parts, plan.part_cost,
                         [&](int64_t begin, int64_t end) {
                           const SingleThreaded guard;
                           for (int64_t part = begin; part < end; ++part) try {
                               body(part);
                             } catch (const std::exception&) {
                               failed = true;
                             }
                         });
    return !failed;
  }

  // Runs a part; its filter's elements are at `filter`.
  void run(const Plan& plan, const Convolution& conv, const Elements& elements,
           int64_t part, const float* filter) const {
    const Geometry& g = conv.geometry;
    const int64_t first = part * plan.images;
    const bool is_whole = first + plan.images <= g.batch;
    const Primitive& with = is_whole ? plan.whole : plan.rest;
    const float* const all_in =
        role_ == ConvRole::kToInput ? elements.made : elements.in;
    const float* const all_out =
        role_ == ConvRole::kForward ? elements.made : elements.out;
    const dnnl::memory in =
        memory_at(with.in, all_in + first * g.in_positions() * g.channels);
    const dnnl::memory out = memory_at(
        with.out, all_out + first * g.out_positions() * conv.out_channels);
    const dnnl::memory weights = memory_at(with.filter, filter);
    const Scratch scratch(with.scratchpad.get_size());
    std::unordered_map<int, dnnl::memory> args = {
        {DNNL_ARG_SCRATCHPAD, memory_at(with.scratchpad, scratch.at(0))}};
    switch (role_) {
      case ConvRole::kForward:
        args.insert({{DNNL_ARG_SRC, in},
                     {DNNL_ARG_WEIGHTS, weights},
                     {DNNL_ARG_DST, out}});
        break;
      case ConvRole::kToInput:
        args.insert({{DNNL_ARG_DIFF_SRC, in},
                     {DNNL_ARG_WEIGHTS, weights},
                     {DNNL_ARG_DIFF_DST, out}});
        break;
      case ConvRole::kToFilter:
        args.insert({{DNNL_ARG_SRC, in},
                     {DNNL_ARG_DIFF_WEIGHTS, weights},
                     {DNNL_ARG_DIFF_DST, out}});
    }
    dnnl::stream stream(onednn_engine());
    with.call.execute(stream, args);
  }

  static int64_t num_parts(const Plan& plan, const Convolution& conv) {
    return (conv.geometry.batch + plan.images - 1) / plan.images;
  }

  static void reorder(const Plan& plan, dnnl::memory from, dnnl::memory to) {
    const SingleThreaded guard;
    dnnl::stream stream(onednn_engine());
    dnnl::reorder(plan.reorder).execute(stream, from, to);
  }

  Result<bool> by_filter(const KernelContext& context, const Plan& plan,
                         const Convolution& conv,
                         const Elements& elements) const {
    const Desc& wanted = plan.whole.filter;
    TAGFLOW_ASSIGN(Tensor ordered, allocate(context, size_of(wanted)));
    auto* filter = ordered.mutable_data<float>();
    reorder(plan, memory_at(plan.filter, elements.filter),
            memory_at(wanted, filter));
    if (!for_parts(context, plan, num_parts(plan, conv), [&](int64_t part) {
          run(plan, conv, elements, part, filter);
        }))
      return no_memory(context);
    return true;
  }

  Result<bool> to_filter(const KernelContext& context, const Plan& plan,
                         const Convolution& conv,
                         const Elements& elements) const {
    const Desc& made = plan.whole.filter;
    const int64_t parts = num_parts(plan, conv), size = size_of(made);
    TAGFLOW_ASSIGN(Tensor all, allocate(context, parts * size));
    auto* sums = all.mutable_data<float>();
    if (!for_parts(context, plan, parts, [&](int64_t part) {
          run(plan, conv, elements, part, sums + part * size);
        }))
      return no_memory(context);
    context.parallel_for(size, 0.1 * double(parts),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t part = 1; part < parts; ++part) {
                             const float* more = sums + part * size;
                             for (int64_t i = begin; i < end; ++i)
                               sums[i] += more[i];
                           }
                         });
    reorder(plan, memory_at(made, sums), memory_at(plan.filter, elements.made));
    return true;
  }

  // --- Plans ----------------------------------------------------------------

  // Throws a dnnl::error if the library does not support it.
  void fill(Plan& plan, const Convolution& conv) const {
    const Geometry& g = conv.geometry;
    // Offsets within the library have 32 bits.
    constexpr double kMostElements = 1 << 30;
    const double filter = double(conv.patch()) * double(conv.out_channels);
    const double images =
        double(g.batch) *
        std::max(double(g.in_positions()) * double(g.channels),
                 double(g.out_positions()) * double(conv.out_channels));
    plan.works = std::max(filter, images) <= kMostElements;
    if (!plan.works) return;
    // Each part of a gradient of the filter has memory for a filter.
    constexpr int64_t kMostFilters = 16;
    int64_t wanted = wanted_parts(conv, filter * sizeof(float));
    if (role_ == ConvRole::kToFilter) wanted = std::min(wanted, kMostFilters);
    // Our own loops can divide a single image, but the library cannot.
    plan.works = g.batch > 1 || wanted == 1;
    if (!plan.works) return;
    const int64_t parts = std::min(wanted, g.batch);
    plan.images = (g.batch + parts - 1) / parts;
    plan.part_cost = nanoseconds(conv) / double(parts);
    plan.filter = described(filter_dims(conv), conv.groups > 1);
    plan.whole = prepare(conv, plan.images, {});
    if (const int64_t rest = g.batch % plan.images; rest != 0)
      plan.rest = prepare(conv, rest, plan.whole.filter);
    const bool is_result = role_ == ConvRole::kToFilter;
    const Desc& from = is_result ? plan.whole.filter : plan.filter;
    const Desc& to = is_result ? plan.filter : plan.whole.filter;
    plan.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(
        onednn_engine(), from, onednn_engine(), to));
  }

  static double nanoseconds(const Convolution& conv) {
    return conv.work() / 80;
  }

  // Each part reads or writes the whole filter, so there are few parts if that
  // is most of the work.
  static int64_t wanted_parts(const Convolution& conv, double filter_bytes) {
    return parts_worth_sharing(nanoseconds(conv), 4 * filter_bytes);
  }
  static bool is_flat(const Geometry& g) {
    return g.in[0] == 1 && g.out[0] == 1 && g.size[0] == 1 && g.pad[0] == 0;
  }

  // The last spatial dimensions: all three, or two if the depth is 1.
  static Dims spatial(const Geometry& g, const Spatial& sizes) {
    return Dims(sizes.begin() + (is_flat(g) ? 1 : 0), sizes.end());
  }
  static Dims with_spatial(Dims first, const Dims& sizes) {
    first.insert(first.end(), sizes.begin(), sizes.end());
    return first;
  }

  static Dims filter_dims(const Convolution& conv) {
    const Dims window = spatial(conv.geometry, conv.geometry.size);
    if (conv.groups == 1)
      return with_spatial({conv.out_channels, conv.group_in()}, window);
    return with_spatial({conv.groups, conv.group_out(), conv.group_in()},
                        window);
  }

  // The filter in the caller's order: taps, inputs of a group, groups, outputs.
  static Desc described(const Dims& dims, bool has_groups) {
    const size_t rank = dims.size();
    if (has_groups) return {dims, kFloat, rank == 5 ? Tag::hwigo : Tag::dhwigo};
    return {dims, kFloat, rank == 4 ? Tag::hwio : Tag::dhwio};
  }

  // `ordered` is the order of the filter, or nothing if the library may choose.
  Primitive prepare(const Convolution& conv, int64_t images,
                    const Desc& ordered) const {
    const Geometry& g = conv.geometry;
    const Tag last = is_flat(g) ? Tag::nhwc : Tag::ndhwc;
    Problem problem;
    Primitive made;
    made.in = {with_spatial({images, g.channels}, spatial(g, g.in)), kFloat,
               last};
    made.out = {with_spatial({images, conv.out_channels}, spatial(g, g.out)),
                kFloat, last};
    problem.filter =
        ordered.is_zero() ? Desc(filter_dims(conv), kFloat, Tag::any) : ordered;
    Spatial behind, gaps;
    for (size_t d = 0; d < 3; ++d) {
      const int64_t extent = (g.size[d] - 1) * g.dilation[d] + 1;
      const int64_t last_end = (g.out[d] - 1) * g.stride[d] + extent;
      behind[d] = std::max<int64_t>(0, last_end - g.in[d] - g.pad[d]);
      gaps[d] = g.dilation[d] - 1;
    }
    problem.strides = spatial(g, g.stride);
    problem.dilations = spatial(g, gaps);
    problem.before = spatial(g, g.pad);
    problem.after = spatial(g, behind);
    choose(problem, made);
    return made;
  }

  struct Problem {
    Desc filter;
    Dims strides, dilations, before, after;
  };

  void choose(const Problem& p, Primitive& made) const {
    const auto how = dnnl::algorithm::convolution_direct;
    const auto& [filter, strides, dilations, before, after] = p;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    // Gradients need the descriptor of their convolution as a hint.
    using Forward = dnnl::convolution_forward;
    const Forward::primitive_desc forward(
        {role_ == ConvRole::kForward ? dnnl::prop_kind::forward_inference
                                     : dnnl::prop_kind::forward_training,
         how, made.in, filter, made.out, strides, dilations, before, after},
        attr, onednn_engine());
    if (role_ == ConvRole::kForward) {
      made.filter = forward.weights_desc();
      keep<Forward>(forward, made);
    } else if (role_ == ConvRole::kToInput) {
      using Backward = dnnl::convolution_backward_data;
      const Backward::primitive_desc chosen(
          {how, made.in, filter, made.out, strides, dilations, before, after},
          attr, onednn_engine(), forward);
      made.filter = chosen.weights_desc();
      keep<Backward>(chosen, made);
    } else {
      using Backward = dnnl::convolution_backward_weights;
      const Backward::primitive_desc chosen(
          {how, made.in, filter, made.out, strides, dilations, before, after},
          attr, onednn_engine(), forward);
      made.filter = chosen.diff_weights_desc();
      keep<Backward>(chosen, made);
    }
  }

  template <class Call, class Chosen>
  static void keep(const Chosen& chosen, Primitive& made) {
    if (std::string_view(chosen.impl_info_str()).starts_with("ref"))
      throw dnnl::error(dnnl_unimplemented, "only a plain loop");
    made.scratchpad = chosen.scratchpad_desc();
    made.call = Call(chosen);
  }

  const ConvRole role_;
  PlanCache<Convolution, Plan> plans_;
};

}  // namespace

std::unique_ptr<LibraryConvolution> LibraryConvolution::make(ConvRole role) {
  return std::make_unique<OneDnnConvolution>(role);
}

}  // namespace tagflow::devices
