// Note [Panels]
// The sums of some rows of the output stay in registers during one pass over a
// panel. A step reads one row of the panel and one element of each row of the
// input, and multiplies each by each. So the panel, not the input, is read in
// its storage order; it comes from the second-level cache or from further away,
// and is prefetched some steps ahead. With AVX-512, 13 rows and 32 columns take
// 26 of the 32 registers.
#include "devices/kernels/product/panel_product.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace tagflow::devices {
namespace {

struct PanelCall {
  std::span<const RowInput> inputs;
  int64_t row = 0;                 // the first one
  const float* weights = nullptr;  // of a panel, from its first column
  const float* bias = nullptr;     // of the same columns; may be null
  RowOutput output;
  bool adds = false;  // to the output
};

// Floats that are computed at a time, at any address.
template <int Bytes>
struct Vector {
  typedef float Type
      [[gnu::vector_size(Bytes), gnu::aligned(sizeof(float)), gnu::may_alias]];
};

// The number of steps to prefetch ahead. The address need not be valid, so it
// is computed as a number.
constexpr int64_t kAhead = 16;
inline void ask_for(const float* first, int64_t offset, bool writes = false) {
  const auto address =
      reinterpret_cast<uintptr_t>(first) + uintptr_t(offset) * sizeof(float);
  const auto* const place = reinterpret_cast<const void*>(address);
  if (writes)
    __builtin_prefetch(place, 1);
  else
    __builtin_prefetch(place);
}
constexpr int64_t kLine = 16;  // floats in a cache line

// clang-format off: it does not know loops behind a _Pragma.
// Loops over all rows i and vectors j, unrolled so that sums stay in registers.
#define TAGFLOW_UNROLLED(ROWS, VECTORS)                   \
  _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; ++i) \
      _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; ++j)

// Defines NAME<kRows, kVectors, kTransposed>(call): so many rows by so many
// vectors of columns. It is a macro, since a function and its callees are
// compiled for one kind of CPU.
#define TAGFLOW_PANEL_KERNEL(NAME, TARGET, BYTES)                          \
  template <int kRows, int kVectors, bool kTransposed>                     \
  TARGET void NAME(const PanelCall& call) {                                \
    using Floats = Vector<BYTES>::Type;                                    \
    constexpr int64_t kLanes = BYTES / sizeof(float);                      \
    const float* weights = call.weights;                                   \
    const auto [out, out_stride] = call.output;                            \
    Floats sums[kRows][kVectors];                                          \
    TAGFLOW_UNROLLED(kRows, kVectors) {                                    \
      sums[i][j] =                                                         \
          call.bias == nullptr                                             \
              ? Floats{}                                                   \
              : *reinterpret_cast<const Floats*>(call.bias + j * kLanes);  \
      if (call.adds) ask_for(out, i* out_stride + j * kLanes, true);       \
    }                                                                      \
    for (const RowInput& input : call.inputs) {                            \
      const int64_t stride = input.stride;                                 \
      const float* const first =                                           \
          input.first + call.row * (kTransposed ? 1 : stride);             \
      for (int64_t k = 0; k < input.channels; ++k) {                       \
        for (int64_t at = 0; at < kVectors * kLanes; at += kLine)          \
          ask_for(weights, kAhead* kPanelColumns + at);                    \
        if (kTransposed) ask_for(first, (k + kAhead) * stride);            \
        Floats row[kVectors];                                              \
        for (int j = 0; j < kVectors; ++j)                                 \
          row[j] = *reinterpret_cast<const Floats*>(weights + j * kLanes); \
        TAGFLOW_UNROLLED(kRows, kVectors) {                                \
          const float factor =                                             \
              kTransposed ? first[k * stride + i] : first[i * stride + k]; \
          sums[i][j] += factor * row[j];                                   \
        }                                                                  \
        weights += kPanelColumns;                                          \
      }                                                                    \
    }                                                                      \
    TAGFLOW_UNROLLED(kRows, kVectors) {                                    \
      Floats* const to =                                                   \
          reinterpret_cast<Floats*>(out + i * out_stride + j * kLanes);    \
      *to = call.adds ? *to + sums[i][j] : sums[i][j];                     \
    }                                                                      \
  }

TAGFLOW_PANEL_KERNEL(multiply_any, , 16)
#if defined(__x86_64__)
TAGFLOW_PANEL_KERNEL(multiply_avx2, [[gnu::target("avx2,fma")]], 32)
TAGFLOW_PANEL_KERNEL(multiply_avx512, [[gnu::target("avx512f")]], 64)
#endif
#undef TAGFLOW_PANEL_KERNEL
#undef TAGFLOW_UNROLLED
// clang-format on

// The number of rows that fit in the registers.
constexpr int kFewRegisters = 6, kManyRegisters = 13;

using MultiplyPanel = void (*)(const PanelCall&);
// For 1 row, 2 rows, ...
using MultiplyRows = std::array<MultiplyPanel, kManyRegisters>;

struct PanelKernel {
  int64_t most_rows = 0, lanes = 0;
  // By transposed or plain inputs, with one or two vectors.
  MultiplyRows multiply[2][2];

  const MultiplyRows& of(bool is_transposed, int64_t columns) const {
    return multiply[is_transposed ? 1 : 0][columns <= lanes ? 0 : 1];
  }
};

#define TAGFLOW_KERNEL(NAME, ROWS, BYTES)                                  \
  []<size_t... kLess>(std::index_sequence<kLess...>) {                     \
    return PanelKernel{                                                    \
        ROWS,                                                              \
        BYTES / sizeof(float),                                             \
        {{{NAME<kLess + 1, 1, false>...}, {NAME<kLess + 1, 2, false>...}}, \
         {{NAME<kLess + 1, 1, true>...}, {NAME<kLess + 1, 2, true>...}}}}; \
  }                                                                        \
  (std::make_index_sequence<ROWS>())

// The kernels that this CPU can run, the best first.
std::vector<PanelKernel> find_panel_kernels() {
  std::vector<PanelKernel> kernels;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    kernels.push_back(TAGFLOW_KERNEL(multiply_avx512, kManyRegisters, 64));
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    kernels.push_back(TAGFLOW_KERNEL(multiply_avx2, kFewRegisters, 32));
#endif
  kernels.push_back(TAGFLOW_KERNEL(multiply_any, kFewRegisters, 16));
  return kernels;
}
#undef TAGFLOW_KERNEL

const std::vector<PanelKernel>& panel_kernels() {
  static const std::vector<PanelKernel> kernels = find_panel_kernels();
  return kernels;
}

// Computes some columns of some rows: the output and the bias end within the
// vectors.
void run_some(MultiplyPanel multiply, PanelCall call, int64_t rows,
              int64_t columns) {
  float bias[kPanelColumns] = {};
  float sums[kManyRegisters * kPanelColumns];
  if (call.bias != nullptr) {
    std::copy_n(call.bias, columns, bias);
    call.bias = bias;
  }
  const auto [to, stride] = std::exchange(call.output, {sums, kPanelColumns});
  const bool adds = std::exchange(call.adds, false);
  multiply(call);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const float sum = sums[i * kPanelColumns + j];
      float& element = to[i * stride + j];
      element = adds ? element + sum : sum;
    }
}

// Computes the whole output. REQUIRES: with a bias, nothing is added to the
// output.
void run_panels(const PanelKernel& kernel, bool is_transposed, PanelCall call,
                int64_t rows, const Panels& panels) {
  const int64_t blocks = (rows + kernel.most_rows - 1) / kernel.most_rows;
  const PanelCall all = call;
  for (int64_t panel = 0; panel < panels.count(); ++panel)
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = rows * block / blocks;
      const int64_t size = rows * (block + 1) / blocks - row;
      for (int64_t at = 0; at < kPanelColumns; at += 2 * kernel.lanes) {
        const int64_t column = panel * kPanelColumns + at;
        const int64_t count =
            std::min(2 * kernel.lanes, panels.columns - column);
        if (count <= 0) break;
        const MultiplyPanel multiply =
            kernel.of(is_transposed, count)[size_t(size - 1)];
        call.row = all.row + row;
        call.weights =
            panels.first + panel * panels.inputs * kPanelColumns + at;
        call.bias = all.bias == nullptr ? nullptr : all.bias + column;
        call.output.first = all.output.first + row * all.output.stride + column;
        if (count % kernel.lanes == 0)
          multiply(call);
        else
          run_some(multiply, call, size, count);
      }
    }
}

}  // namespace

int num_panel_kernels() { return int(panel_kernels().size()); }

int64_t panel_rows(int kernel) {
  return panel_kernels()[size_t(kernel)].most_rows;
}

void multiply_panels(std::span<const RowInput> inputs, int64_t first_row,
                     int64_t rows, const Panels& panels, const float* bias,
                     RowOutput output, int kernel) {
  run_panels(
      panel_kernels()[size_t(kernel)], false,
      {.inputs = inputs, .row = first_row, .bias = bias, .output = output},
      rows, panels);
}

void add_transposed_panels(const RowInput& input, int64_t rows,
                           const Panels& panels, RowOutput output, int kernel) {
  run_panels(panel_kernels()[size_t(kernel)], true,
             {.inputs = {&input, 1}, .output = output, .adds = true}, rows,
             panels);
}

}  // namespace tagflow::devices
