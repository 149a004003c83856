// Convolutions with constant weights, with oneDNN, part by part: Note [Parts of
// a convolution] in devices/kernels/convolution/parts.cpp.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "devices/kernels/convolution/parts.h"
#include "devices/kernels/onednn.h"
#include "devices/kernels/scratch.h"

namespace tagflow::devices {
namespace {

using Desc = dnnl::memory::desc;
using Format = dnnl::memory::format_tag;
constexpr auto kFloat = dnnl::memory::data_type::f32;

struct Prepared {
  dnnl::convolution_forward primitive;
  Desc weights, in, bias, out, scratchpad;
};

struct Part : ConvolutionPart {
  const Prepared* prepared = nullptr;
};

// The computation for one shape.
struct Plan {
  std::map<ConvolutionPiece, Prepared> prepared;
  std::vector<Part> parts;
  double part_cost = 0;  // nanoseconds
  bool works = true;     // the library supports it
};

// A view of floats owned by somebody else.
dnnl::memory memory_at(const Desc& desc, const float* elements) {
  return {desc, onednn_engine(), const_cast<float*>(elements)};
}

// The weights in the orders that primitives have requested. Thread-safe.
class OrderedWeights {
 public:
  OrderedWeights(const WeightLayout& layout, Tensor tensor)
      : tensor_(std::move(tensor)), dims_(dims_of(layout)) {}

  // In the library's order of dimensions.
  const dnnl::memory::dims& dims() const { return dims_; }

  // Throws std::bad_alloc and dnnl::error.
  dnnl::memory ordered(const Desc& desc) {
    const std::lock_guard lock(mutex_);
    for (const dnnl::memory& memory : ordered_)
      if (memory.get_desc() == desc) return memory;
    const bool is_grouped = dims_.size() == 5;
    dnnl::memory from = memory_at(
        Desc(dims_, kFloat, is_grouped ? Format::hwigo : Format::hwio),
        tensor_.data<float>());
    dnnl::memory to(desc, onednn_engine());
    dnnl::stream stream(onednn_engine());
    dnnl::reorder(from, to).execute(stream, from, to);
    return ordered_.emplace_back(to);
  }

 private:
  static dnnl::memory::dims dims_of(const WeightLayout& l) {
    if (l.groups == 1) return {l.outputs, l.inputs, l.height, l.width};
    return {l.groups, l.outputs / l.groups, l.inputs, l.height, l.width};
  }

  const Tensor tensor_;
  const dnnl::memory::dims dims_;
  std::mutex mutex_;
  std::vector<dnnl::memory> ordered_;
};

class OneDnnConvolution final : public PackedConvolution {
 public:
  OneDnnConvolution(const WeightLayout& layout, Tensor weights)
      : layout_(layout), weights_(layout, std::move(weights)) {}

  Result<bool> compute(const KernelContext& context, const Geometry& geometry,
                       const Factors& factors, float* out,
                       const Finish& finish) override {
    std::shared_ptr<const Plan> plan;
    const Key key{geometry, factors.bias != nullptr};
    try {
      plan = plans_.find(key, [&](Plan& made) { fill(made, key); });
    } catch (const std::bad_alloc&) {
      return no_memory(context);
    }
    if (!plan->works) return false;
    std::atomic<bool> failed = false;
    context.parallel_for(
        int64_t(plan->parts.size()), plan->part_cost,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end && !failed; ++i)
            if (!run(plan->parts[size_t(i)], factors, out, finish))
              failed = true;
        });
    if (failed) return no_memory(context);
    return true;
  }

 private:
  struct Key {
    Geometry geometry;
    bool has_bias = false;

    bool operator==(const Key&) const = default;
  };

  // The library fails to run only if memory is exhausted.
  static Status no_memory(const KernelContext& context) {
    return error(Code::kResourceExhausted, "[{}] no memory for a product",
                 context.node().op());
  }

  // Returns false if memory was exhausted.
  bool run(const Part& part, const Factors& factors, float* out,
           const Finish& finish) try {
    const Prepared& with = *part.prepared;
    const Scratch scratch(with.scratchpad.get_size());
    const SingleThreaded guard;
    std::unordered_map<int, dnnl::memory> args = {
        {DNNL_ARG_SRC, memory_at(with.in, factors.in + part.in)},
        {DNNL_ARG_WEIGHTS, weights_.ordered(with.weights)},
        {DNNL_ARG_DST, memory_at(with.out, out + part.begin)},
        {DNNL_ARG_SCRATCHPAD,
         dnnl::memory(with.scratchpad, onednn_engine(), scratch.at(0))}};
    if (factors.bias != nullptr)
      args.emplace(DNNL_ARG_BIAS, memory_at(with.bias, factors.bias));
    dnnl::stream stream(onednn_engine());
    with.primitive.execute(stream, args);
    finish(part.begin, part.end);
    return true;
  } catch (const std::exception&) {
    return false;
  }

  // --- Plans ----------------------------------------------------------------

  // Throws as prepare().
  void fill(Plan& plan, const Key& key) const {
    const Geometry& g = key.geometry;
    // Offsets within the library have 32 bits.
    constexpr double kMostElements = 1 << 30;
    const double positions =
        double(g.batch) * double(std::max(g.in_positions(), g.out_positions()));
    const double weights =
        double(g.taps()) * double(layout_.inputs) * double(layout_.outputs);
    plan.works = positions * double(std::max(g.channels, layout_.outputs)) <=
                     kMostElements &&
                 weights <= kMostElements;
    if (!plan.works) return;
    for (const ConvolutionPart& part : cut_convolution(layout_, g)) {
      auto known = plan.prepared.find(part.piece);
      if (known == plan.prepared.end())
        known =
            plan.prepared.emplace(part.piece, prepare(key, part.piece)).first;
      plan.parts.push_back({part, &known->second});
    }
    plan.part_cost = convolution_cost(layout_, g) / double(plan.parts.size());
  }

  // Throws a dnnl::error if the library has only a slow loop for it.
  Prepared prepare(const Key& key, const ConvolutionPiece& piece) const {
    const Geometry& g = key.geometry;
    if (piece.height == 0)
      throw dnnl::error(dnnl_unimplemented, "nothing but padding");
    Prepared made;
    made.in = Desc({piece.images, g.channels, piece.height, g.in[2]}, kFloat,
                   Format::nhwc);
    made.out = Desc({piece.images, layout_.outputs, piece.out_height, g.out[2]},
                    kFloat, Format::nhwc);
    if (key.has_bias) made.bias = Desc({layout_.outputs}, kFloat, Format::x);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const int64_t extent = (g.size[2] - 1) * g.dilation[2] + 1;
    const int64_t pad_right =
        (g.out[2] - 1) * g.stride[2] + extent - g.in[2] - g.pad[2];
    const dnnl::memory::dims strides = {g.stride[1], g.stride[2]};
    const dnnl::memory::dims dilations = {g.dilation[1] - 1, g.dilation[2] - 1};
    const dnnl::memory::dims pad_before = {piece.pad_top, g.pad[2]};
    const dnnl::memory::dims pad_after = {piece.pad_bottom,
                                          std::max<int64_t>(0, pad_right)};
    const Desc any(weights_.dims(), kFloat, Format::any);
    using Convolution = dnnl::convolution_forward;
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto how = dnnl::algorithm::convolution_direct;
    const auto desc =
        key.has_bias
            ? Convolution::desc(kind, how, made.in, any, made.bias, made.out,
                                strides, dilations, pad_before, pad_after)
            : Convolution::desc(kind, how, made.in, any, made.out, strides,
                                dilations, pad_before, pad_after);
    const Convolution::primitive_desc chosen(desc, attr, onednn_engine());
    if (std::string_view(chosen.impl_info_str()).starts_with("ref"))
      throw dnnl::error(dnnl_unimplemented, "only a plain loop");
    made.weights = chosen.weights_desc();
    made.scratchpad = chosen.scratchpad_desc();
    made.primitive = Convolution(chosen);
    return made;
  }

  const WeightLayout layout_;
  OrderedWeights weights_;
  PlanCache<Key, Plan> plans_;
};

}  // namespace

std::unique_ptr<PackedConvolution> PackedConvolution::make(
    const WeightLayout& layout, Tensor weights) {
  return std::make_unique<OneDnnConvolution>(layout, std::move(weights));
}

}  // namespace tagflow::devices
