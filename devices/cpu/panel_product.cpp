// Note [Panels]
// The sums of some rows of a panel are kept in registers while the panel goes
// by, once for these rows. A step reads one row of the panel and one element of
// each row of the input, and multiplies each by each. So the panel, not the
// input, is read in the order in which it is stored; it comes from the second
// cache or from further away, and is asked for some steps ahead. With AVX-512,
// 13 rows and 32 columns take 26 of the 32 registers.
#include "devices/cpu/panel_product.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tagflow::devices {
namespace {

struct PanelCall {
  std::span<const RowInput> inputs;
  int64_t row = 0;                 // the first one
  const float* weights = nullptr;  // of a panel, from the first column on
  const float* bias = nullptr;     // of as many columns; null: none
  RowOutput output;
  bool adds = false;  // to the output
};

// Floats that are computed at a time, at any address.
template <int Bytes>
struct Vector {
  typedef float Type
      [[gnu::vector_size(Bytes), gnu::aligned(sizeof(float)), gnu::may_alias]];
};

// So many steps ahead, what they read is asked for.
constexpr int64_t kAhead = 16;
constexpr int64_t kLine = 16;  // floats of a line of a cache

// Defines NAME<kRows, kTransposed>(call): so many rows by two vectors of
// columns. A macro, since a function is compiled for one kind of processor, and
// so is whatever it calls.
#define TAGFLOW_PANEL_KERNEL(NAME, TARGET, BYTES)                           \
  template <int kRows, bool kTransposed>                                    \
  TARGET void NAME(const PanelCall& call) {                                 \
    using Floats = Vector<BYTES>::Type;                                     \
    constexpr int64_t kLanes = BYTES / sizeof(float);                       \
    Floats sums[kRows][2];                                                  \
    _Pragma("GCC unroll 16") for (int i = 0; i < kRows; ++i)                \
        _Pragma("GCC unroll 2") for (int j = 0; j < 2; ++j) sums[i][j] =    \
            call.bias == nullptr                                            \
                ? Floats{}                                                  \
                : *reinterpret_cast<const Floats*>(call.bias + j * kLanes); \
    const auto [out, out_stride] = call.output;                             \
    if (call.adds)                                                          \
      for (int i = 0; i < kRows; ++i)                                       \
        for (int64_t at = 0; at < 2 * kLanes; at += kLine)                  \
          __builtin_prefetch(out + i * out_stride + at, 1);                 \
    const float* weights = call.weights;                                    \
    for (const RowInput& input : call.inputs) {                             \
      const int64_t stride = input.stride;                                  \
      const float* const first =                                            \
          input.first + call.row * (kTransposed ? 1 : stride);              \
      for (int64_t k = 0; k < input.channels; ++k) {                        \
        for (int64_t at = 0; at < 2 * kLanes; at += kLine)                  \
          __builtin_prefetch(weights + kAhead * kPanelColumns + at);        \
        if (kTransposed) __builtin_prefetch(first + (k + kAhead) * stride); \
        const Floats* const row = reinterpret_cast<const Floats*>(weights); \
        const Floats left = row[0], right = row[1];                         \
        _Pragma("GCC unroll 16") for (int i = 0; i < kRows; ++i) {          \
          const float factor =                                              \
              kTransposed ? first[k * stride + i] : first[i * stride + k];  \
          sums[i][0] += factor * left;                                      \
          sums[i][1] += factor * right;                                     \
        }                                                                   \
        weights += kPanelColumns;                                           \
      }                                                                     \
    }                                                                       \
    _Pragma("GCC unroll 16") for (int i = 0; i < kRows; ++i)                \
        _Pragma("GCC unroll 2") for (int j = 0; j < 2; ++j) {               \
      Floats* const to =                                                    \
          reinterpret_cast<Floats*>(out + i * out_stride + j * kLanes);     \
      *to = call.adds ? *to + sums[i][j] : sums[i][j];                      \
    }                                                                       \
  }

TAGFLOW_PANEL_KERNEL(multiply_any, , 16)
#if defined(__x86_64__)
TAGFLOW_PANEL_KERNEL(multiply_avx2, [[gnu::target("avx2,fma")]], 32)
TAGFLOW_PANEL_KERNEL(multiply_avx512, [[gnu::target("avx512f")]], 64)
#endif
#undef TAGFLOW_PANEL_KERNEL

// As many rows as there is place for in the registers.
constexpr int kFewRegisters = 6, kManyRegisters = 13;

using MultiplyPanel = void (*)(const PanelCall&);
// For 1 row, 2 rows, ...
using MultiplyRows = std::array<MultiplyPanel, kManyRegisters>;

struct PanelKernel {
  int64_t most_rows = 0, columns = 0;  // at a time
  MultiplyRows plain, transposed;      // inputs
};

#define TAGFLOW_KERNEL(NAME, ROWS, BYTES)              \
  []<size_t... kLess>(std::index_sequence<kLess...>) { \
    return PanelKernel{ROWS,                           \
                       2 * BYTES / sizeof(float),      \
                       {NAME<kLess + 1, false>...},    \
                       {NAME<kLess + 1, true>...}};    \
  }                                                    \
  (std::make_index_sequence<ROWS>())

PanelKernel best_panel_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return TAGFLOW_KERNEL(multiply_avx512, kManyRegisters, 64);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return TAGFLOW_KERNEL(multiply_avx2, kFewRegisters, 32);
#endif
  return TAGFLOW_KERNEL(multiply_any, kFewRegisters, 16);
}
#undef TAGFLOW_KERNEL

const PanelKernel& panel_kernel() {
  static const PanelKernel kernel = best_panel_kernel();
  return kernel;
}

// So many columns of so many rows: the output, and the bias, end within the
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

// All of the output. REQUIRES: where there is a bias, nothing is added to the
// output.
void run_panels(const MultiplyRows& kernels, PanelCall call, int64_t rows,
                const Panels& panels) {
  const auto& [most_rows, columns, plain, transposed] = panel_kernel();
  const int64_t blocks = (rows + most_rows - 1) / most_rows;
  const PanelCall all = call;
  for (int64_t panel = 0; panel < panels.count(); ++panel)
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = rows * block / blocks;
      const int64_t size = rows * (block + 1) / blocks - row;
      const MultiplyPanel multiply = kernels[size_t(size - 1)];
      for (int64_t at = 0; at < kPanelColumns; at += columns) {
        const int64_t column = panel * kPanelColumns + at;
        const int64_t count = std::min(columns, panels.columns - column);
        if (count <= 0) break;
        call.row = all.row + row;
        call.weights =
            panels.first + panel * panels.inputs * kPanelColumns + at;
        call.bias = all.bias == nullptr ? nullptr : all.bias + column;
        call.output.first = all.output.first + row * all.output.stride + column;
        if (count == columns)
          multiply(call);
        else
          run_some(multiply, call, size, count);
      }
    }
}

}  // namespace

int64_t panel_rows() { return panel_kernel().most_rows; }

void multiply_panels(std::span<const RowInput> inputs, int64_t first_row,
                     int64_t rows, const Panels& panels, const float* bias,
                     RowOutput output) {
  run_panels(
      panel_kernel().plain,
      {.inputs = inputs, .row = first_row, .bias = bias, .output = output},
      rows, panels);
}

void add_transposed_panels(std::span<const RowInput> inputs, int64_t first_row,
                           int64_t rows, const Panels& panels,
                           RowOutput output) {
  run_panels(
      panel_kernel().transposed,
      {.inputs = inputs, .row = first_row, .output = output, .adds = true},
      rows, panels);
}

}  // namespace tagflow::devices
