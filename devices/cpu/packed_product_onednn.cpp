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
// only, so that they are kept in one order for all numbers of rows.
#include <algorithm>
#include <atomic>
#include <deque>
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
  int64_t first_column = 0, columns = 0;  // of the weights
  bool has_bias = false;

  auto operator<=>(const Piece&) const = default;
};

struct Prepared {
  dnnl::convolution_forward primitive;
  dnnl::memory weights;
  Desc in, bias, out, scratchpad;
};

struct Part {
  const Prepared* prepared = nullptr;
  int64_t in = 0, begin = 0, end = 0;  // offsets in elements
  int64_t first_column = 0, columns = 0;
};

// How one shape is computed.
struct Plan {
  std::map<Piece, Prepared> prepared;
  std::vector<Part> parts;
  double part_cost = 0;  // nanoseconds
  bool works = true;     // the library does it
};

class OneDnnProduct final : public PackedProduct {
 public:
  explicit OneDnnProduct(Weights weights) : weights_(std::move(weights)) {}

  Result<bool> compute(const KernelContext& context, const Geometry& geometry,
                       const float* in, const float* bias, float* out,
                       const Finish& finish) override {
    std::shared_ptr<const Plan> plan;
    try {
      plan = plan_for(geometry, bias != nullptr);
    } catch (const std::bad_alloc&) {
      return no_memory(context);
    }
    if (!plan->works) return false;
    std::atomic<bool> failed = false;
    context.parallel_for(int64_t(plan->parts.size()), plan->part_cost,
                         [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i) {
                             const Part& part = plan->parts[size_t(i)];
                             if (!run(part, in, bias, out, finish)) {
                               failed = true;
                               return;
                             }
                           }
                         });
    if (failed) return no_memory(context);
    return true;
  }

 private:
  // Plans of more shapes than a program is likely to need at a time.
  static constexpr size_t kMostPlans = 8;

  struct Key {
    Spatial in, out, pad, stride, dilation;
    int64_t batch;
    bool has_bias;

    bool operator==(const Key&) const = default;
  };

  // The library refuses to run only for want of memory.
  static Status no_memory(const KernelContext& context) {
    return error(Code::kResourceExhausted, "[{}] no memory for a product",
                 context.node().op());
  }

  bool run(const Part& part, const float* in, const float* bias, float* out,
           const Finish& finish) const try {
    const SingleThreaded guard;
    const Prepared& with = *part.prepared;
    dnnl::stream stream(onednn_engine());
    const auto memory = [](const Desc& desc, const float* elements) {
      return dnnl::memory(desc, onednn_engine(), const_cast<float*>(elements));
    };
    const bool has_all = part.columns == weights_.outputs;
    const size_t columns_bytes =
        has_all ? 0 : Scratch::rounded(with.out.get_size());
    const Scratch scratch(columns_bytes + with.scratchpad.get_size());
    const dnnl::memory scratchpad(with.scratchpad, onednn_engine(),
                                  scratch.at(columns_bytes));
    auto* const to =
        has_all ? out + part.begin : static_cast<float*>(scratch.at(0));
    std::unordered_map<int, dnnl::memory> args = {
        {DNNL_ARG_SRC, memory(with.in, in + part.in)},
        {DNNL_ARG_WEIGHTS, with.weights},
        {DNNL_ARG_DST, memory(with.out, to)},
        {DNNL_ARG_SCRATCHPAD, scratchpad}};
    if (bias != nullptr)
      args.emplace(DNNL_ARG_BIAS, memory(with.bias, bias + part.first_column));
    with.primitive.execute(stream, args);
    if (has_all) {
      finish(part.begin, part.end);
      return true;
    }
    const float* from = to;
    for (int64_t row = part.begin; row < part.end; row += weights_.outputs) {
      const int64_t begin = row + part.first_column;
      std::copy_n(from, part.columns, out + begin);
      finish(begin, begin + part.columns);
      from += part.columns;
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }

  std::shared_ptr<const Plan> plan_for(const Geometry& g, bool has_bias) {
    const Key key{g.in, g.out, g.pad, g.stride, g.dilation, g.batch, has_bias};
    const std::lock_guard lock(mutex_);
    for (const auto& [known, plan] : plans_)
      if (known == key) return plan;
    auto plan = std::make_shared<Plan>();
    try {
      const SingleThreaded guard;
      fill(*plan, g, has_bias);
    } catch (const dnnl::error&) {
      plan->works = false;
    }
    if (plans_.size() == kMostPlans) plans_.pop_front();
    return plans_.emplace_back(key, std::move(plan)).second;
  }

  // --- Plans. REQUIRES: the mutex --------------------------------------------

  bool is_pointwise(const Geometry& g) const {
    return g.taps() == 1 && g.in == g.out && weights_.groups == 1 &&
           g.stride == Spatial{1, 1, 1} && g.pad == Spatial{0, 0, 0};
  }

  // Into how many parts the work is cut.
  int64_t num_parts(const Geometry& g, double& nanoseconds) const {
    constexpr double kLeast = 60e3, kBytesPerNs = 8;
    constexpr int64_t kMost = 16;
    // Multiplications per nanosecond.
    const double rate = weights_.inputs == 1 ? 8 : has_few_rows(g) ? 45 : 60;
    const double per_position =
        double(g.taps()) * double(weights_.inputs) * double(weights_.outputs);
    nanoseconds =
        double(g.batch) * double(g.out_positions()) * per_position / rate;
    const double reading = per_position * sizeof(float) / kBytesPerNs;
    const double most = nanoseconds / std::max(kLeast, 2 * reading);
    const int64_t two = nanoseconds > 2 * kLeast ? 2 : 1;
    return std::clamp(int64_t(std::min(most, 1e6)), two, kMost);
  }

  void fill(Plan& plan, const Geometry& g, bool has_bias) {
    // Offsets within the library are of 32 bits.
    constexpr double kMostElements = 1 << 30;
    const double positions =
        double(g.batch) * double(std::max(g.in_positions(), g.out_positions()));
    if (positions * double(std::max(g.channels, weights_.outputs)) >
            kMostElements ||
        weights_.tensor.num_elements() > int64_t(kMostElements)) {
      plan.works = false;
      return;
    }
    double nanoseconds = 0;
    const int64_t wanted = num_parts(g, nanoseconds);
    constexpr double kWorthCutting = 30e3;
    if (has_few_rows(g) && nanoseconds >= kWorthCutting &&
        weights_.outputs >= 2 * part_columns()) {
      cut_columns(plan, g, has_bias);
    } else if (is_pointwise(g)) {
      cut_positions(plan, g, wanted, has_bias);
    } else if (g.batch >= wanted) {
      cut_images(plan, g, wanted, has_bias);
    } else {
      cut_rows(plan, g, (wanted + g.batch - 1) / g.batch, has_bias);
    }
    plan.part_cost = nanoseconds / double(plan.parts.size());
  }

  // Columns of a part: of about as many weights as stay in a core's cache, and
  // half of all at the most.
  int64_t part_columns() const {
    constexpr int64_t kElements = 160 << 10, kUnit = 64;
    const auto in_units = [kUnit](int64_t columns) {
      return std::max(kUnit, columns / kUnit * kUnit);
    };
    return std::min(in_units(kElements / weights_.inputs),
                    in_units(weights_.outputs / 2));
  }

  bool has_few_rows(const Geometry& g) const {
    constexpr int64_t kFewRows = 128;
    return is_pointwise(g) && g.batch * g.out_positions() <= kFewRows;
  }

  void cut_columns(Plan& plan, const Geometry& g, bool has_bias) {
    const int64_t rows = g.batch * g.out_positions();
    const int64_t size = part_columns();
    for (int64_t at = 0; at < weights_.outputs; at += size) {
      Piece piece;
      piece.width = rows;
      piece.first_column = at;
      piece.columns = std::min(size, weights_.outputs - at);
      piece.has_bias = has_bias;
      add_part(plan, g, piece, 0, 0, rows * weights_.outputs);
    }
  }

  void cut_positions(Plan& plan, const Geometry& g, int64_t parts,
                     bool has_bias) {
    const int64_t total = g.batch * g.out_positions();
    const int64_t size = (total + parts - 1) / parts;
    for (int64_t at = 0; at < total; at += size) {
      const int64_t count = std::min(size, total - at);
      Piece piece;
      piece.width = count;
      piece.has_bias = has_bias;
      add_part(plan, g, piece, at * g.channels, at * weights_.outputs,
               count * weights_.outputs);
    }
  }

  void cut_images(Plan& plan, const Geometry& g, int64_t parts, bool has_bias) {
    const int64_t size = (g.batch + parts - 1) / parts;
    const int64_t in = g.in_positions() * g.channels;
    const int64_t out = g.out_positions() * weights_.outputs;
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

  void cut_rows(Plan& plan, const Geometry& g, int64_t parts, bool has_bias) {
    const int64_t size = (g.out[1] + parts - 1) / parts;
    const int64_t row = g.in[2] * g.channels;
    const int64_t out_row = g.out[2] * weights_.outputs;
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
                int64_t begin, int64_t count) {
    if (piece.columns == 0) piece.columns = weights_.outputs;
    auto known = plan.prepared.find(piece);
    if (known == plan.prepared.end())
      known = plan.prepared.emplace(piece, prepare(g, piece)).first;
    plan.parts.push_back({&known->second, in, begin, begin + count,
                          piece.first_column, piece.columns});
  }

  // Throws a dnnl::error where the library has nothing for it but a slow loop.
  Prepared prepare(const Geometry& g, const Piece& piece) {
    if (piece.height == 0)
      throw dnnl::error(dnnl_unimplemented, "nothing but padding");
    const bool is_flat = is_pointwise(g);
    const int64_t out_width = is_flat ? piece.width : g.out[2];
    using Tag = dnnl::memory::format_tag;
    Prepared made;
    made.in = Desc({piece.images, g.channels, piece.height, piece.width},
                   kFloat, Tag::nhwc);
    made.out = Desc({piece.images, piece.columns, piece.out_height, out_width},
                    kFloat, Tag::nhwc);
    if (piece.has_bias) made.bias = Desc({piece.columns}, kFloat, Tag::x);
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
    const Desc any(weight_dims(piece.columns), kFloat, Tag::any);
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
    made.weights =
        ordered(chosen.weights_desc(), piece.first_column, piece.columns);
    made.scratchpad = chosen.scratchpad_desc();
    made.primitive = Convolution(chosen);
    return made;
  }

  dnnl::memory::dims weight_dims(int64_t columns) const {
    const auto& [tensor, height, width, inputs, outputs, groups, transposed] =
        weights_;
    if (groups == 1) return {columns, inputs, height, width};
    return {groups, columns / groups, inputs, height, width};
  }

  // Some columns of the weights, as they are.
  Desc given(int64_t columns) const {
    using Tag = dnnl::memory::format_tag;
    if (columns == weights_.outputs)
      return Desc(weight_dims(columns), kFloat,
                  weights_.groups > 1   ? Tag::hwigo
                  : weights_.transposed ? Tag::oihw
                                        : Tag::hwio);
    // Of a matrix.
    const dnnl::memory::dims strides =
        weights_.transposed ? dnnl::memory::dims{weights_.inputs, 1, 1, 1}
                            : dnnl::memory::dims{1, weights_.outputs, 1, 1};
    return Desc(weight_dims(columns), kFloat, strides);
  }

  // The same, in the order that a primitive asks for.
  dnnl::memory ordered(const Desc& wanted, int64_t first, int64_t columns) {
    for (const Ordered& known : ordered_)
      if (known.first_column == first && known.desc == wanted)
        return known.memory;
    auto* elements = const_cast<float*>(weights_.tensor.data<float>()) +
                     first * (weights_.transposed ? weights_.inputs : 1);
    dnnl::memory from(given(columns), onednn_engine(), elements);
    dnnl::memory to(wanted, onednn_engine());
    dnnl::stream stream(onednn_engine());
    dnnl::reorder(from, to).execute(stream, from, to);
    ordered_.push_back({wanted, first, to});
    return to;
  }

  struct Ordered {
    Desc desc;
    int64_t first_column;
    dnnl::memory memory;
  };

  const Weights weights_;
  std::mutex mutex_;
  std::deque<std::pair<Key, std::shared_ptr<const Plan>>> plans_;
  std::vector<Ordered> ordered_;
};

}  // namespace

std::unique_ptr<PackedProduct> PackedProduct::make(Weights weights) {
  return std::make_unique<OneDnnProduct>(std::move(weights));
}

}  // namespace tagflow::devices
