#include "devices/kernels/dataset/elements.h"

#include "devices/copy.h"

namespace tagflow::devices {

Result<Element> row_of(const Element& components, int64_t row,
                       Allocator& allocator) {
  Element element;
  element.reserve(components.size());
  for (const Tensor& component : components) {
    Shape shape = component.shape();
    shape.remove_dim(0);
    TAGFLOW_ASSIGN(Tensor part,
                   Tensor::allocate(component.dtype(), shape, allocator));
    const int64_t size = shape.num_elements();
    copy_elements(component, row * size, part, 0, size);
    element.push_back(std::move(part));
  }
  return element;
}

namespace {

Result<Tensor> stacked(std::span<const Element> elements, size_t component,
                       Allocator& allocator) {
  const Tensor& first = elements[0][component];
  const Shape row = first.shape();
  for (size_t i = 1; i < elements.size(); ++i) {
    const Tensor& other = elements[i][component];
    if (other.dtype() != first.dtype() || !(other.shape() == row))
      return invalid_argument(
          "only tensors of one shape can be a batch, but component {} of its "
          "first element is {}, and of element {} {}",
          component, first.describe(), i, other.describe());
  }
  Shape::Dims dims(1, int64_t(elements.size()));
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  TAGFLOW_ASSIGN(const Shape shape, Shape::make({dims.data(), dims.size()}));
  TAGFLOW_ASSIGN(Tensor batch,
                 Tensor::allocate(first.dtype(), shape, allocator));
  const int64_t size = row.num_elements();
  for (size_t i = 0; i < elements.size(); ++i)
    copy_elements(elements[i][component], 0, batch, int64_t(i) * size, size);
  return batch;
}

}  // namespace

Result<Element> batch_of(std::span<const Element> elements,
                         Allocator& allocator) {
  for (size_t i = 1; i < elements.size(); ++i)
    if (elements[i].size() != elements[0].size())
      return invalid_argument(
          "element {} of a batch has {} components, and the first has {}", i,
          elements[i].size(), elements[0].size());
  Element batch;
  for (size_t c = 0; c < elements[0].size(); ++c) {
    TAGFLOW_ASSIGN(Tensor rows, stacked(elements, c, allocator));
    batch.push_back(std::move(rows));
  }
  return batch;
}

}  // namespace tagflow::devices
