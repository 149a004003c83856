// Sparse tensors, which are passed as three dense ones: the coordinates of
// elements, a row each; their values; the shape of the whole.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "devices/kernel.h"

namespace tagflow::devices {

// The positions of a sparse tensor's elements. Valid as long as its tensors.
struct SparseIndices {
  const int64_t* coordinates = nullptr;  // [count, shape.rank()], row-major
  int64_t count = 0;
  Shape shape;

  std::span<const int64_t> at(int64_t i) const {
    const size_t rank = size_t(shape.rank());
    return {coordinates + size_t(i) * rank, rank};
  }
};

// The inputs of a node that form a sparse tensor.
struct SparsePorts {
  int indices = 0, values = 1, shape = 2;
};

// A sparse tensor of the node. InvalidArgument unless the indices are a matrix
// with a row for each of a vector of values and a column for each dimension,
// and the shape is valid. The coordinates and their order are not checked.
Result<SparseIndices> sparse_input(const KernelContext& context,
                                   SparsePorts ports = {});

// InvalidArgument if a coordinate is outside of the shape.
Status check_inside(const KernelContext& context, const SparseIndices& sparse);
// As check_inside(); InvalidArgument also if an element does not follow the
// previous one in row-major order.
Status check_inside_and_sorted(const KernelContext& context,
                               const SparseIndices& sparse);

// Whether a comes before b in row-major order. REQUIRES: they have one rank.
bool is_before(std::span<const int64_t> a, std::span<const int64_t> b);
// The numbers of the elements in row-major order; equal ones keep their order.
std::vector<int64_t> sorted_order(const KernelContext& context,
                                  const SparseIndices& sparse);

// "[2,0]"
std::string coordinates_text(std::span<const int64_t> at);
inline std::string coordinates_text(const Shape::Dims& at) {
  return coordinates_text(std::span<const int64_t>(at.data(), at.size()));
}

// The position of element `at` in row-major memory: the sum of at[i] *
// strides[i]. The stride of a repeated dimension is 0.
int64_t offset_of(std::span<const int64_t> at, const Shape::Dims& strides);

// Sets an output to an int64 vector of the dimensions.
Status set_shape_output(KernelContext& context, int output, const Shape& shape);

// A kernel whose time is about proportional to its input elements, and to its
// output elements if that is dense.
class SparseKernel : public Kernel {
 public:
  double cost(const KernelContext& context) const override {
    double elements = 0;
    for (const Tensor& input : context.inputs())
      elements += double(input.num_elements());
    return 200 + 3 * elements;
  }
};

}  // namespace tagflow::devices
