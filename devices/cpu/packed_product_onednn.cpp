// Products by constants with oneDNN.
//
// Note [Parts of a product]
// A primitive of the library does its work on the calling thread; we cut the
// work into parts, which workers share: images where there are enough, rows of
// output positions within an image otherwise, for each of which the input is a
// contiguous piece of the whole one. Parts of the same size and the same
// padding share a primitive. A product without a window, or with one of a
// single position, is one row of positions, cut anywhere.
// Each of these parts reads all weights, so there are few where these are many.
// Where they are many for few rows, as in a step of a recurrent network, a part
// has all rows and some columns instead: it computes these next to each other,
// and copies them to their places. How many parts there are depends on the
// shapes only, not on the workers; which columns a part has on the weights
// only, so that they are kept in one order for all numbers of rows. A block is
// such a part that goes elsewhere than to its place: of the gates of a
// recurrent cell, say, it has all that some units need.
#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

#include "devices/cpu/onednn.h"
#include "devices/cpu/packed_product.h"
#include "devices/cpu/scratch.h"

namespace tagflow::devices {
namespace {

using Desc = dnnl::memory::desc;
constexpr auto kFloat = dnnl::memory::data_type::f32;

// What a primitive works on.
struct Piece {
  int64_t images = 1, height = 1, width = 1;  // of the input
  int64_t out_height = 1;
  int64_t pad_top = 0, pad_bottom = 0;
  int64_t segments = 1;
  int64_t first_column = 0, columns = 0;  // of each segment of the weights
  bool has_bias = false;

  auto operator<=>(const Piece&) const = default;
};

// Weights of a piece, by what decides their order.
struct Columns {
  Desc desc;  // as a primitive wants them
  int64_t segments = 1, first = 0, count = 0;
};

struct Prepared {
  dnnl::convolution_forward primitive;
  Columns weights;
  Desc in, bias, out, scratchpad;
};

struct Part {
  const Prepared* prepared = nullptr;
  int64_t in = 0, begin = 0, end = 0;  // offsets in elements
  int64_t first_row = 0, rows = 0;     // of a block
};

// How one shape is computed.
struct Plan {
  std::map<Piece, Prepared> prepared;
  std::vector<Part> parts;
  double part_cost = 0;  // nanoseconds
  bool works = true;     // the library does it
};

dnnl::memory::dims dims_of(const WeightLayout& layout, int64_t columns) {
  if (layout.groups == 1)
    return {columns, layout.inputs, layout.height, layout.width};
  return {layout.groups, columns / layout.groups, layout.inputs, layout.height,
          layout.width};
}

dnnl::memory memory_at(const Desc& desc, const float* elements) {
  return {desc, onednn_engine(), const_cast<float*>(elements)};
}

class OneDnnWeights final : public PackedWeights {
 public:
  OneDnnWeights(const WeightLayout& layout, Tensor tensor)
      : PackedWeights(layout, std::move(tensor)) {}

  // Throws std::bad_alloc and dnnl::error.
  dnnl::memory ordered(const Columns& columns) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, memory] : ordered_)
      if (known.segments == columns.segments && known.first == columns.first &&
          known.desc == columns.desc)
        return memory;
    dnnl::memory to(columns.desc, onednn_engine());
    std::vector<float> gathered;
    dnnl::memory from = columns.segments == 1 ? as_they_are(columns)
                                              : gather(columns, gathered);
    dnnl::stream stream(onednn_engine());
    dnnl::reorder(from, to).execute(stream, from, to);
    ordered_.emplace_back(columns, to);
    return to;
  }

 private:
  dnnl::memory as_they_are(const Columns& columns) const {
    const WeightLayout& l = layout();
    using Tag = dnnl::memory::format_tag;
    const dnnl::memory::dims dims = dims_of(l, columns.count);
    const auto* elements = tensor().data<float>();
    if (columns.count == l.outputs)
      return memory_at(Desc(dims, kFloat,
                            l.groups > 1   ? Tag::hwigo
                            : l.transposed ? Tag::oihw
                                           : Tag::hwio),
                       elements);
    // Of a matrix.
    const dnnl::memory::dims strides =
        l.transposed ? dnnl::memory::dims{l.inputs, 1, 1, 1}
                     : dnnl::memory::dims{1, l.outputs, 1, 1};
    return memory_at(Desc(dims, kFloat, strides),
                     elements + columns.first * (l.transposed ? l.inputs : 1));
  }

  // The columns of each segment of a matrix, one after another, in `to`.
  dnnl::memory gather(const Columns& columns, std::vector<float>& to) const {
    const WeightLayout& l = layout();
    const int64_t width = l.outputs / columns.segments;
    const int64_t count = columns.segments * columns.count;
    to.resize(size_t(l.inputs * count));
    const auto* from = tensor().data<float>();
    for (int64_t s = 0; s < columns.segments; ++s) {
      const int64_t first = s * width + columns.first;
      float* const at =
          to.data() + s * columns.count * (l.transposed ? l.inputs : 1);
      if (l.transposed) {
        std::copy_n(from + first * l.inputs, columns.count * l.inputs, at);
      } else {
        for (int64_t row = 0; row < l.inputs; ++row)
          std::copy_n(from + row * l.outputs + first, columns.count,
                      at + row * count);
      }
    }
    const dnnl::memory::dims strides =
        l.transposed ? dnnl::memory::dims{l.inputs, 1, 1, 1}
                     : dnnl::memory::dims{1, count, 1, 1};
    return memory_at(Desc(dims_of(l, count), kFloat, strides), to.data());
  }

  std::mutex mutex_;
  std::vector<std::pair<Columns, dnnl::memory>> ordered_;
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

  bool has_all(const Columns& columns) const {
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
    const Columns& columns = with.weights;
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
    const Columns& columns = with.weights;
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
    take({to, part.first_row, part.rows, columns.first, columns.count});
    return true;
  } catch (const std::exception&) {
    return false;
  }

  // --- Plans ----------------------------------------------------------------

  bool is_pointwise(const Geometry& g) const {
    return g.taps() == 1 && g.in == g.out && layout_.groups == 1 &&
           g.stride == Spatial{1, 1, 1} && g.pad == Spatial{0, 0, 0};
  }

  // Into how many parts the work is cut.
  int64_t num_parts(const Geometry& g, double& nanoseconds) const {
    constexpr double kLeast = 60e3, kBytesPerNs = 8;
    constexpr int64_t kMost = 16;
    // Multiplications per nanosecond.
    const double rate = layout_.inputs == 1 ? 8 : has_few_rows(g) ? 45 : 60;
    const double per_position =
        double(g.taps()) * double(layout_.inputs) * double(layout_.outputs);
    nanoseconds =
        double(g.batch) * double(g.out_positions()) * per_position / rate;
    const double reading = per_position * sizeof(float) / kBytesPerNs;
    const double most = nanoseconds / std::max(kLeast, 2 * reading);
    const int64_t two = nanoseconds > 2 * kLeast ? 2 : 1;
    return std::clamp(int64_t(std::min(most, 1e6)), two, kMost);
  }

  void fill(Plan& plan, const Key& key) const {
    const Geometry& g = key.geometry;
    // Offsets within the library are of 32 bits.
    constexpr double kMostElements = 1 << 30;
    const double positions =
        double(g.batch) * double(std::max(g.in_positions(), g.out_positions()));
    const double weights =
        double(g.taps()) * double(layout_.inputs) * double(layout_.outputs);
    if (positions * double(std::max(g.channels, layout_.outputs)) >
            kMostElements ||
        weights > kMostElements) {
      plan.works = false;
      return;
    }
    double nanoseconds = 0;
    const int64_t wanted = num_parts(g, nanoseconds);
    if (key.segments > 0 || (has_few_rows(g) && nanoseconds >= kWorthCutting)) {
      cut_matrix(
          plan, key,
          nanoseconds < kWorthCutting ? 1 : std::max<int64_t>(2, wanted));
    } else if (is_pointwise(g)) {
      cut_positions(plan, g, wanted, key.has_bias);
    } else if (g.batch >= wanted) {
      cut_images(plan, g, wanted, key.has_bias);
    } else {
      cut_rows(plan, g, (wanted + g.batch - 1) / g.batch, key.has_bias);
    }
    plan.part_cost = nanoseconds / double(plan.parts.size());
  }

  bool has_few_rows(const Geometry& g) const {
    return is_pointwise(g) && g.batch * g.out_positions() <= kFewRows;
  }

  // Some rows of all columns where the weights are few, so that each worker has
  // them in its cache; where they are many, all rows of some columns, or as
  // many rows as what these make has place for.
  void cut_matrix(Plan& plan, const Key& key, int64_t wanted) const {
    constexpr int64_t kLeastRows = 8;
    constexpr int64_t kUnit = 16;  // columns
    const Geometry& g = key.geometry;
    const int64_t segments = std::max<int64_t>(1, key.segments);
    const int64_t rows = g.batch * g.out_positions();
    const int64_t width = layout_.outputs / segments;
    const int64_t weights = layout_.inputs * layout_.outputs;
    int64_t row_parts = (rows + kFewRows - 1) / kFewRows;
    int64_t column_parts = 1;
    if (weights <= kFewWeights)
      row_parts =
          std::clamp(wanted, row_parts, std::max(row_parts, rows / kLeastRows));
    else
      // A power of two, since that is what there is of workers.
      column_parts = int64_t(std::bit_ceil(
          uint64_t(std::max(std::min<int64_t>(2, wanted),
                            (weights + kPartWeights - 1) / kPartWeights))));
    const int64_t size = (rows + row_parts - 1) / row_parts;
    const int64_t units =
        ((width + column_parts - 1) / column_parts + kUnit - 1) / kUnit;
    for (int64_t row = 0; row < rows; row += size)
      for (int64_t at = 0; at < width; at += units * kUnit) {
        Piece piece;
        piece.width = std::min(size, rows - row);
        piece.segments = segments;
        piece.first_column = at;
        piece.columns = std::min(units * kUnit, width - at);
        piece.has_bias = key.has_bias;
        add_part(plan, g, piece, row * g.channels, row * layout_.outputs,
                 piece.width * layout_.outputs);
        plan.parts.back().first_row = row;
        plan.parts.back().rows = piece.width;
      }
  }

  void cut_positions(Plan& plan, const Geometry& g, int64_t parts,
                     bool has_bias) const {
    const int64_t total = g.batch * g.out_positions();
    const int64_t size = (total + parts - 1) / parts;
    for (int64_t at = 0; at < total; at += size) {
      const int64_t count = std::min(size, total - at);
      Piece piece;
      piece.width = count;
      piece.has_bias = has_bias;
      add_part(plan, g, piece, at * g.channels, at * layout_.outputs,
               count * layout_.outputs);
    }
  }

  void cut_images(Plan& plan, const Geometry& g, int64_t parts,
                  bool has_bias) const {
    const int64_t size = (g.batch + parts - 1) / parts;
    const int64_t in = g.in_positions() * g.channels;
    const int64_t out = g.out_positions() * layout_.outputs;
    for (int64_t at = 0; at < g.batch; at += size) {
      Piece piece = rows(g, 0, g.out[1]).piece;
      piece.height = g.in[1];  // with what no window reads
      piece.images = std::min(size, g.batch - at);
      piece.has_bias = has_bias;
      add_part(plan, g, piece, at * in, at * out, piece.images * out);
    }
  }

  // Rows of output positions, and where their input begins.
  struct Rows {
    Piece piece;
    int64_t first = 0;
  };

  Rows rows(const Geometry& g, int64_t begin, int64_t end) const {
    const int64_t extent = (g.size[1] - 1) * g.dilation[1] + 1;
    const int64_t first = begin * g.stride[1] - g.pad[1];
    const int64_t last = (end - 1) * g.stride[1] - g.pad[1] + extent;
    Rows rows;
    rows.first = std::clamp<int64_t>(first, 0, g.in[1]);
    rows.piece.height = std::clamp<int64_t>(last, 0, g.in[1]) - rows.first;
    rows.piece.width = g.in[2];
    rows.piece.out_height = end - begin;
    rows.piece.pad_top = rows.first - first;
    rows.piece.pad_bottom = last - rows.first - rows.piece.height;
    return rows;
  }

  void cut_rows(Plan& plan, const Geometry& g, int64_t parts,
                bool has_bias) const {
    const int64_t size = (g.out[1] + parts - 1) / parts;
    const int64_t row = g.in[2] * g.channels;
    const int64_t out_row = g.out[2] * layout_.outputs;
    for (int64_t image = 0; image < g.batch; ++image)
      for (int64_t at = 0; at < g.out[1]; at += size) {
        const int64_t end = std::min(at + size, g.out[1]);
        auto [piece, first] = rows(g, at, end);
        piece.has_bias = has_bias;
        add_part(plan, g, piece, (image * g.in[1] + first) * row,
                 (image * g.out[1] + at) * out_row, (end - at) * out_row);
      }
  }

  void add_part(Plan& plan, const Geometry& g, Piece piece, int64_t in,
                int64_t begin, int64_t count) const {
    if (piece.columns == 0) piece.columns = layout_.outputs;
    auto known = plan.prepared.find(piece);
    if (known == plan.prepared.end())
      known = plan.prepared.emplace(piece, prepare(g, piece)).first;
    plan.parts.push_back({&known->second, in, begin, begin + count});
  }

  // Throws a dnnl::error where the library has nothing for it but a slow loop.
  Prepared prepare(const Geometry& g, const Piece& piece) const {
    if (piece.height == 0)
      throw dnnl::error(dnnl_unimplemented, "nothing but padding");
    const bool is_flat = is_pointwise(g);
    const int64_t out_width = is_flat ? piece.width : g.out[2];
    using Tag = dnnl::memory::format_tag;
    Prepared made;
    made.in = Desc({piece.images, g.channels, piece.height, piece.width},
                   kFloat, Tag::nhwc);
    const int64_t columns = piece.segments * piece.columns;
    made.out = Desc({piece.images, columns, piece.out_height, out_width},
                    kFloat, Tag::nhwc);
    if (piece.has_bias) made.bias = Desc({columns}, kFloat, Tag::x);
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
    const Desc any(dims_of(layout_, columns), kFloat, Tag::any);
    using Convolution = dnnl::convolution_forward;
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto how = dnnl::algorithm::convolution_direct;
    const auto desc =
        piece.has_bias
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

  // A longer product is worth more than one part.
  static constexpr double kWorthCutting = 30e3;  // nanoseconds
  static constexpr int64_t kFewRows = 128;
  // So many weights stay in a core's cache.
  static constexpr int64_t kFewWeights = 160 << 10;
  // Of more, so many are read once while what they make stays there.
  static constexpr int64_t kPartWeights = 384 << 10;

  const WeightLayout layout_;
  PlanCache<Key, Plan> plans_;
};

}  // namespace

std::shared_ptr<PackedWeights> PackedWeights::make(const WeightLayout& layout,
                                                   Tensor tensor) {
  return std::make_shared<OneDnnWeights>(layout, std::move(tensor));
}

std::unique_ptr<PackedProduct> PackedProduct::make(const WeightLayout& layout) {
  return std::make_unique<OneDnnProduct>(layout);
}

}  // namespace tagflow::devices
