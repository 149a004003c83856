#include "devices/kernels/product/panel_product.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "devices/kernels/product/packed_matrix.h"
#include "tests/devices/kernels/random/floats.h"

namespace tagflow::devices {
namespace {

Tensor matrix_of(const Floats& values, const Shape& shape) {
  Tensor tensor = *Tensor::allocate(DataType::kFloat, shape);
  std::copy(values.begin(), values.end(), tensor.mutable_data<float>());
  return tensor;
}

}  // namespace

TEST_CASE("panels give what a plain product does, and touch nothing else") {
  std::mt19937 random(1);
  for (int turn = 0; turn < 600; ++turn) {
    const int64_t rows = 1 + random_below(random, 40),
                  columns = 1 + random_below(random, 100);
    std::vector<Floats> parts;
    std::vector<RowInput> inputs;
    int64_t channels = 0;
    for (int64_t i = 0, count = 1 + random_below(random, 3); i < count; ++i) {
      const int64_t width = random_below(random, 30) + (i == 0 ? 1 : 0);
      parts.push_back(random_floats(random, (rows + 2) * width));
      inputs.push_back({parts.back().data(), width, width});
      channels += width;
    }
    INFO(rows, ", ", channels, ", ", columns);
    const Floats weights = random_floats(random, channels * columns);
    PackedMatrix matrix(matrix_of(weights, {channels, columns}), false);
    const Floats bias = random_floats(random, columns);
    const bool has_bias = random_below(random, 2) == 0;
    const int64_t stride = columns + random_below(random, 5);
    constexpr float kUntouched = 1e30f;
    Floats out(size_t(rows * stride), kUntouched);
    // From the second row of the inputs on.
    multiply_panels(inputs, 1, rows, matrix.panels({1, 0, columns}),
                    has_bias ? bias.data() : nullptr, {out.data(), stride},
                    turn % num_panel_kernels());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < stride; ++j) {
        const float actual = out[size_t(i * stride + j)];
        if (j >= columns) {
          REQUIRE(actual == kUntouched);
          continue;
        }
        double sum = has_bias ? bias[size_t(j)] : 0;
        int64_t k = 0;
        for (const RowInput& input : inputs)
          for (int64_t c = 0; c < input.channels; ++c, ++k)
            sum += double(input.first[(i + 1) * input.channels + c]) *
                   weights[size_t(k * columns + j)];
        REQUIRE(std::abs(actual - sum) < 2e-5);
      }
  }
}

TEST_CASE("a panel product gives a row the same bits beside any other rows") {
  std::mt19937 random(2);
  constexpr int64_t kRows = 30, kChannels = 70, kColumns = 77;
  const Floats in = random_floats(random, kRows * kChannels);
  PackedMatrix matrix(matrix_of(random_floats(random, kChannels * kColumns),
                                {kChannels, kColumns}),
                      false);
  const Panels panels = matrix.panels({1, 0, kColumns});
  const RowInput input{in.data(), kChannels, kChannels};
  Floats all(kRows * kColumns), one(kColumns);
  multiply_panels({&input, 1}, 0, kRows, panels, nullptr,
                  {all.data(), kColumns});
  for (int64_t i = 0; i < kRows; ++i) {
    multiply_panels({&input, 1}, i, 1, panels, nullptr, {one.data(), kColumns});
    const auto row = all.begin() + i * kColumns;
    CHECK(Floats(row, row + kColumns) == one);
  }
}

TEST_CASE("a panel product packs columns of segments once, padded by zeros") {
  std::mt19937 random(3);
  constexpr int64_t kInputs = 5, kOutputs = 60;
  const Floats values = random_floats(random, kInputs * kOutputs);
  Floats other_way(values.size());
  for (int64_t k = 0; k < kInputs; ++k)
    for (int64_t j = 0; j < kOutputs; ++j)
      other_way[size_t(j * kInputs + k)] = values[size_t(k * kOutputs + j)];
  PackedMatrix plain(matrix_of(values, {kInputs, kOutputs}), false);
  PackedMatrix transposed(matrix_of(other_way, {kOutputs, kInputs}), true);
  // Columns 7 to 17 of each third.
  const MatrixColumns columns{3, 7, 11};
  for (PackedMatrix* matrix : {&plain, &transposed}) {
    CHECK(matrix->layout().inputs == kInputs);
    CHECK(matrix->layout().outputs == kOutputs);
    const Panels panels = matrix->panels(columns);
    CHECK(panels.first == matrix->panels(columns).first);
    CHECK(panels.first != matrix->panels({3, 6, 11}).first);
    CHECK(panels.columns == 33);
    REQUIRE(panels.count() == 2);
    for (int64_t at = 0; at < 2 * kPanelColumns; ++at)
      for (int64_t k = 0; k < kInputs; ++k) {
        const int64_t panel = at / kPanelColumns, i = at % kPanelColumns;
        const float packed =
            panels.first[(panel * kInputs + k) * kPanelColumns + i];
        const int64_t column = at / 11 * 20 + 7 + at % 11;
        CHECK(packed ==
              (at < 33 ? values[size_t(k * kOutputs + column)] : 0.0f));
      }
  }
}

}  // namespace tagflow::devices
