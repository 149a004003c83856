#include "devices/kernels/recurrent/args.h"

#include <algorithm>

#include "devices/kernel_registry.h"
#include "graph/float16.h"

namespace tagflow::devices {

Result<const float*> FloatTensors::input(int i, std::string_view name,
                                         std::initializer_list<int64_t> dims) {
  const Tensor& tensor = context_.input(i);
  bool fits = tensor.rank() == int(dims.size());
  for (int d = 0; fits && d < tensor.rank(); ++d)
    fits = dims.begin()[d] < 0 || dims.begin()[d] == tensor.dim(d);
  if (!fits)
    return context_.fail("{} is {}, not of shape {}", name, tensor.describe(),
                         PartialShape(dims).to_string());
  if (tensor.dtype() == DataType::kFloat) return tensor.data<float>();
  TAGFLOW_ASSIGN(Tensor wide,
                 context_.allocate_temp(DataType::kFloat, tensor.shape()));
  std::ranges::transform(tensor.flat<Half>(), wide.mutable_data<float>(),
                         [](Half value) { return float(value); });
  return held_.emplace_back(std::move(wide)).data<float>();
}

Result<float*> FloatTensors::output(int i, const Shape& shape) {
  TAGFLOW_ASSIGN(Tensor * out, context_.allocate_output(i, shape));
  float* elements = nullptr;
  if (out->dtype() == DataType::kFloat) {
    elements = out->mutable_data<float>();
  } else {
    TAGFLOW_ASSIGN(elements, temp(shape));
    narrow_.emplace_back(i, &held_.back());
  }
  std::fill_n(elements, out->num_elements(), 0.0f);
  return elements;
}

Result<float*> FloatTensors::temp(const Shape& shape) {
  TAGFLOW_ASSIGN(Tensor tensor,
                 context_.allocate_temp(DataType::kFloat, shape));
  return held_.emplace_back(std::move(tensor)).mutable_data<float>();
}

void FloatTensors::finish() {
  for (const auto& [i, from] : narrow_)
    std::ranges::transform(from->flat<float>(),
                           context_.output(i).mutable_data<Half>(),
                           [](float value) { return Half(value); });
}

void add_product(const KernelContext& context, int64_t rows, int64_t n,
                 int64_t k, Factor<float> a, Factor<float> b, float* c) {
  if (n == 0 || k == 0) return;
  context.parallel_for(
      rows, gemm_cost(DataType::kFloat, 1, n, k),
      [&](int64_t begin, int64_t end) {
        gemm<float>(end - begin, n, k, {a.data + begin * a.stride, a.stride}, b,
                    c + begin * n, n, true);
      },
      double(n) * double(k));
}

void add_outer_product(const KernelContext& context, int64_t rows, int64_t m,
                       int64_t n, const float* a, const float* b, float* c) {
  if (rows == 0 || n == 0) return;
  context.parallel_for(
      m, gemm_cost(DataType::kFloat, 1, n, rows),
      [&](int64_t begin, int64_t end) {
        gemm<float>(end - begin, n, rows, {a + begin, m, true}, {b, n},
                    c + begin * n, n, true);
      },
      double(n) * double(rows));
}

void add_columns(const float* matrix, int64_t rows, int64_t columns,
                 float* sums) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) sums[j] += matrix[i * columns + j];
}

}  // namespace tagflow::devices
