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
};

// Floats that are computed at a time, at any address.
template <int Bytes>
struct Vector {
  typedef float Type
      [[gnu::vector_size(Bytes), gnu::aligned(sizeof(float)), gnu::may_alias]];
};

// Steps of which the weights are asked for ahead.
constexpr int64_t kAhead = 16 * kPanelColumns;
constexpr int64_t kLine = 16;  // floats of a line of a cache

// Defines NAME<kRows>(call): so many rows by two vectors of columns. A macro,
// since a function is compiled for one kind of processor, and so is whatever it
// calls.
#define TAGFLOW_PANEL_KERNEL(NAME, TARGET, BYTES)                           \
  template <int kRows>                                                      \
  TARGET void NAME(const PanelCall& call) {                                 \
    using Floats = Vector<BYTES>::Type;                                     \
    constexpr int64_t kLanes = BYTES / sizeof(float);                       \
    Floats sums[kRows][2];                                                  \
    for (int i = 0; i < kRows; ++i)                                         \
      for (int j = 0; j < 2; ++j)                                           \
        sums[i][j] =                                                        \
            call.bias == nullptr                                            \
                ? Floats{}                                                  \
                : *reinterpret_cast<const Floats*>(call.bias + j * kLanes); \
    const float* weights = call.weights;                                    \
    for (const RowInput& input : call.inputs) {                             \
      const float* const first = input.first + call.row * input.channels;   \
      for (int64_t k = 0; k < input.channels; ++k) {                        \
        for (int64_t at = 0; at < 2 * kLanes; at += kLine)                  \
          __builtin_prefetch(weights + kAhead + at);                        \
        const auto* row = reinterpret_cast<const Floats*>(weights);         \
        const Floats left = row[0], right = row[1];                         \
        for (int i = 0; i < kRows; ++i) {                                   \
          const float factor = first[i * input.channels + k];               \
          sums[i][0] += factor * left;                                      \
          sums[i][1] += factor * right;                                     \
        }                                                                   \
        weights += kPanelColumns;                                           \
      }                                                                     \
    }                                                                       \
    for (int i = 0; i < kRows; ++i)                                         \
      for (int j = 0; j < 2; ++j)                                           \
        *reinterpret_cast<Floats*>(call.output.first +                      \
                                   i * call.output.stride + j * kLanes) =   \
            sums[i][j];                                                     \
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

struct PanelKernel {
  int64_t most_rows = 0, columns = 0;                  // at a time
  std::array<MultiplyPanel, kManyRegisters> multiply;  // 1 row, 2 rows, ...
};

#define TAGFLOW_KERNEL(NAME, ROWS, BYTES)                                      \
  []<size_t... kLess>(std::index_sequence<kLess...>) {                         \
    return PanelKernel{ROWS, 2 * BYTES / sizeof(float), {NAME<kLess + 1>...}}; \
  }                                                                            \
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

}  // namespace

void multiply_panels(std::span<const RowInput> inputs, int64_t first_row,
                     int64_t rows, const Panels& panels, const float* bias,
                     RowOutput output) {
  static const PanelKernel kernel = best_panel_kernel();
  const int64_t blocks = (rows + kernel.most_rows - 1) / kernel.most_rows;
  for (int64_t panel = 0; panel < panels.count(); ++panel)
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = rows * block / blocks;
      const int64_t size = rows * (block + 1) / blocks - row;
      const auto multiply = kernel.multiply[size_t(size - 1)];
      const float* const weights =
          panels.first + panel * panels.inputs * kPanelColumns;
      for (int64_t at = 0; at < kPanelColumns; at += kernel.columns) {
        const int64_t column = panel * kPanelColumns + at;
        const int64_t count = std::min(kernel.columns, panels.columns - column);
        if (count <= 0) break;
        PanelCall call{
            inputs,
            first_row + row,
            weights + at,
            bias == nullptr ? nullptr : bias + column,
            {output.first + row * output.stride + column, output.stride}};
        if (count == kernel.columns) {
          multiply(call);
          continue;
        }
        // The output, and the bias, end within the vectors.
        float some_bias[kPanelColumns] = {};
        float sums[kManyRegisters * kPanelColumns];
        if (bias != nullptr) {
          std::copy_n(call.bias, count, some_bias);
          call.bias = some_bias;
        }
        float* to = std::exchange(call.output, {sums, kPanelColumns}).first;
        multiply(call);
        for (int64_t i = 0; i < size; ++i, to += output.stride)
          std::copy_n(sums + i * kPanelColumns, count, to);
      }
    }
}

}  // namespace tagflow::devices
