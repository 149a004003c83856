// The common part of the fused recurrent cells: they compute in float for all
// types of tensors, and divide their work by rows of the batch, which are
// independent.
#pragma once

#include <deque>
#include <string_view>

#include "devices/kernel.h"
#include "devices/kernels/product/gemm.h"

namespace tagflow::devices {

// A kernel's inputs and outputs as floats.
class FloatTensors {
 public:
  explicit FloatTensors(KernelContext& context) : context_(context) {}

  // An input's elements. InvalidArgument unless it has these dimensions; a
  // negative one matches any size. `name` is for the message.
  Result<const float*> input(int i, std::string_view name,
                             std::initializer_list<int64_t> dims);
  // An output's elements, all 0.
  Result<float*> output(int i, const Shape& shape);
  // Temporary memory of that many elements.
  Result<float*> temp(const Shape& shape);
  // Stores the outputs that are not of floats.
  void finish();

 private:
  KernelContext& context_;
  std::deque<Tensor> held_;
  std::vector<std::pair<int, const Tensor*>> narrow_;  // outputs to be stored
};

// c[rows, n] += a[rows, k] b, where b is [k, n], on several workers.
void add_product(const KernelContext& context, int64_t rows, int64_t n,
                 int64_t k, Factor<float> a, Factor<float> b, float* c);
// c[m, n] += a^T b, where a is [rows, m] and b is [rows, n].
void add_outer_product(const KernelContext& context, int64_t rows, int64_t m,
                       int64_t n, const float* a, const float* b, float* c);
// sums[j] += the sum of column j.
void add_columns(const float* matrix, int64_t rows, int64_t columns,
                 float* sums);

}  // namespace tagflow::devices
