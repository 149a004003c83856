// Products by weights that serve many times, with oneDNN. A primitive of the
// library does its work on the calling thread; we cut the work into parts (Note
// [Parts of a product] in devices/cpu/product_parts.cpp). Parts whose pieces
// are alike share a primitive.
#include <algorithm>
#include <atomic>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

#include "devices/cpu/onednn.h"
#include "devices/cpu/packed_weights_onednn.h"
#include "devices/cpu/product_parts.h"
#include "devices/cpu/scratch.h"

namespace tagflow::devices {
namespace {

using Desc = dnnl::memory::desc;
constexpr auto kFloat = dnnl::memory::data_type::f32;

struct Prepared {
  dnnl::convolution_forward primitive;
  WeightColumns weights;
  Desc in, bias, out, scratchpad;
};

struct Part : ProductPart {
  const Prepared* prepared = nullptr;
};

// How one shape is computed.
struct Plan {
  std::map<ProductPiece, Prepared> prepared;
  std::vector<Part> parts;
  double part_cost = 0;  // nanoseconds
  bool works = true;     // the library does it
};

class OneDnnProduct final : public PackedProduct {
 public:
  explicit OneDnnProduct(const WeightLayout& layout) : layout_(layout) {}

  Result<bool> compute(const KernelContext& context, const Geometry& geometry,
                       const Factors& factors, float* out,
                       const Finish& finish) override {
    return compute_parts(
        context, {geometry, factors.bias != nullptr, 0},
        [&](const Part& part) { return run(part, factors, out, finish); });
  }

  Result<bool> compute_blocks(const KernelContext& context,
                              const Geometry& geometry, const Factors& factors,
                              int64_t segments, const Take& take) override {
    return compute_parts(
        context, {geometry, factors.bias != nullptr, segments},
        [&](const Part& part) { return run_block(part, factors, take); });
  }

 private:
  struct Key {
    Geometry geometry;
    bool has_bias = false;
    int64_t segments = 0;  // of blocks; 0: the parts are none

    bool operator==(const Key&) const = default;
  };

  // The library refuses to run only for want of memory.
  static Status no_memory(const KernelContext& context) {
    return error(Code::kResourceExhausted, "[{}] no memory for a product",
                 context.node().op());
  }

  // run(part): whether there was memory for it.
  template <class Run>
  Result<bool> compute_parts(const KernelContext& context, const Key& key,
                             Run&& run) {
    std::shared_ptr<const Plan> plan;
    try {
      plan = plans_.find(key, [&](Plan& made) { fill(made, key); });
    } catch (const std::bad_alloc&) {
      return no_memory(context);
    }
    if (!plan->works) return false;
    std::atomic<bool> failed = false;
    context.parallel_for(int64_t(plan->parts.size()), plan->part_cost,
                         [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end && !failed; ++i)
                             if (!run(plan->parts[size_t(i)])) failed = true;
                         });
    if (failed) return no_memory(context);
    return true;
  }

  bool has_all(const WeightColumns& columns) const {
    return columns.count == layout_.outputs;
  }

  static void execute(const Prepared& with, const Part& part,
                      const Factors& factors, const float* bias, float* out,
                      void* scratchpad) {
    const SingleThreaded guard;
    auto& weights = static_cast<OneDnnWeights&>(factors.weights);
    std::unordered_map<int, dnnl::memory> args = {
        {DNNL_ARG_SRC, memory_at(with.in, factors.in + part.in)},
        {DNNL_ARG_WEIGHTS, weights.ordered(with.weights)},
        {DNNL_ARG_DST, memory_at(with.out, out)},
        {DNNL_ARG_SCRATCHPAD,
         dnnl::memory(with.scratchpad, onednn_engine(), scratchpad)}};
    if (bias != nullptr)
      args.emplace(DNNL_ARG_BIAS, memory_at(with.bias, bias));
    dnnl::stream stream(onednn_engine());
    with.primitive.execute(stream, args);
  }

  bool run(const Part& part, const Factors& factors, float* out,
           const Finish& finish) const try {
    const Prepared& with = *part.prepared;
    const WeightColumns& columns = with.weights;
    const size_t columns_bytes =
        has_all(columns) ? 0 : Scratch::rounded(with.out.get_size());
    const Scratch scratch(columns_bytes + with.scratchpad.get_size());
    auto* const to = has_all(columns) ? out + part.begin
                                      : static_cast<float*>(scratch.at(0));
    const float* bias =
        factors.bias == nullptr ? nullptr : factors.bias + columns.first;
    execute(with, part, factors, bias, to, scratch.at(columns_bytes));
    if (has_all(columns)) {
      finish(part.begin, part.end);
      return true;
    }
    const float* from = to;
    for (int64_t row = part.begin; row < part.end; row += layout_.outputs) {
      const int64_t begin = row + columns.first;
      std::copy_n(from, columns.count, out + begin);
      finish(begin, begin + columns.count);
      from += columns.count;
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }

  bool run_block(const Part& part, const Factors& factors,
                 const Take& take) const try {
    const Prepared& with = *part.prepared;
    const WeightColumns& columns = with.weights;
    const int64_t width = layout_.outputs / columns.segments;
    const size_t out_bytes = Scratch::rounded(with.out.get_size());
    const size_t bias_bytes =
        factors.bias == nullptr ? 0 : Scratch::rounded(with.bias.get_size());
    const Scratch scratch(out_bytes + bias_bytes + with.scratchpad.get_size());
    auto* const to = static_cast<float*>(scratch.at(0));
    float* bias = nullptr;
    if (factors.bias != nullptr) {
      bias = static_cast<float*>(scratch.at(out_bytes));
      for (int64_t s = 0; s < columns.segments; ++s)
        std::copy_n(factors.bias + s * width + columns.first, columns.count,
                    bias + s * columns.count);
    }
    execute(with, part, factors, bias, to, scratch.at(out_bytes + bias_bytes));
    take({to, part.first_row, part.piece.width, columns.first, columns.count});
    return true;
  } catch (const std::exception&) {
    return false;
  }

  // --- Plans ----------------------------------------------------------------

  // Throws as prepare().
  void fill(Plan& plan, const Key& key) const {
    const Geometry& g = key.geometry;
    // Offsets within the library are of 32 bits.
    constexpr double kMostElements = 1 << 30;
    const double positions =
        double(g.batch) * double(std::max(g.in_positions(), g.out_positions()));
    const double weights =
        double(g.taps()) * double(layout_.inputs) * double(layout_.outputs);
    plan.works = positions * double(std::max(g.channels, layout_.outputs)) <=
                     kMostElements &&
                 weights <= kMostElements;
    if (!plan.works) return;
    for (const ProductPart& part : cut_product(layout_, g, key.segments)) {
      auto known = plan.prepared.find(part.piece);
      if (known == plan.prepared.end())
        known =
            plan.prepared.emplace(part.piece, prepare(key, part.piece)).first;
      plan.parts.push_back({part, &known->second});
    }
    plan.part_cost = product_cost(layout_, g) / double(plan.parts.size());
  }

  // Throws a dnnl::error where the library has nothing for it but a slow loop.
  Prepared prepare(const Key& key, const ProductPiece& piece) const {
    const Geometry& g = key.geometry;
    if (piece.height == 0)
      throw dnnl::error(dnnl_unimplemented, "nothing but padding");
    const bool is_flat = is_matrix_product(layout_, g);
    const int64_t out_width = is_flat ? piece.width : g.out[2];
    using Tag = dnnl::memory::format_tag;
    Prepared made;
    made.in = Desc({piece.images, g.channels, piece.height, piece.width},
                   kFloat, Tag::nhwc);
    const int64_t columns = piece.segments * piece.columns;
    made.out = Desc({piece.images, columns, piece.out_height, out_width},
                    kFloat, Tag::nhwc);
    if (key.has_bias) made.bias = Desc({columns}, kFloat, Tag::x);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const int64_t extent = (g.size[2] - 1) * g.dilation[2] + 1;
    const int64_t pad_right =
        (out_width - 1) * g.stride[2] + extent - piece.width - g.pad[2];
    const dnnl::memory::dims strides = {g.stride[1], g.stride[2]};
    const dnnl::memory::dims dilations = {g.dilation[1] - 1, g.dilation[2] - 1};
    const dnnl::memory::dims pad_before = {piece.pad_top, g.pad[2]};
    const dnnl::memory::dims pad_after = {piece.pad_bottom,
                                          std::max<int64_t>(0, pad_right)};
    const Desc any(weight_dims(layout_, columns), kFloat, Tag::any);
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
    made.weights = {chosen.weights_desc(), piece.segments, piece.first_column,
                    piece.columns};
    made.scratchpad = chosen.scratchpad_desc();
    made.primitive = Convolution(chosen);
    return made;
  }

  const WeightLayout layout_;
  PlanCache<Key, Plan> plans_;
};

}  // namespace

std::unique_ptr<PackedProduct> PackedProduct::make(const WeightLayout& layout) {
  return std::make_unique<OneDnnProduct>(layout);
}

}  // namespace tagflow::devices
