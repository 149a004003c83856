// PaddedBatchDataset.
#include <algorithm>

#include "devices/copy.h"
#include "devices/kernels/dataset/batch_rows.h"
#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/pipeline.h"

namespace tagflow::devices {

namespace {

struct PaddingSpec {
  BatchSpec batch;
  std::vector<PartialShape> shapes;  // of a row; unknown: the longest one
  std::vector<Tensor> values;
};

// The shape of the rows of a component: the declared one, with the longest
// dimensions where that leaves them open.
Result<Shape> row_shape(const std::vector<Element>& rows, size_t component,
                        const PartialShape& declared) {
  const Tensor& first = rows[0][component];
  if (declared.has_rank() && declared.rank() != first.rank())
    return invalid_argument(
        "component {} of an element is {}, but is padded to shape {}",
        component, first.describe(), declared.to_string());
  Shape::Dims dims(size_t(first.rank()), 0);
  for (size_t d = 0; d < dims.size(); ++d)
    if (declared.has_rank() && declared.dim_known(int(d)))
      dims[d] = declared.dim(int(d));
  for (const Element& row : rows) {
    const Tensor& tensor = row[component];
    if (tensor.rank() != first.rank() || tensor.dtype() != first.dtype())
      return invalid_argument(
          "component {} is {} in one element of a batch, and {} in another",
          component, first.describe(), tensor.describe());
    for (int d = 0; d < tensor.rank(); ++d) {
      const bool is_open = !declared.has_rank() || !declared.dim_known(d);
      if (is_open)
        dims[size_t(d)] = std::max(dims[size_t(d)], tensor.dim(d));
      else if (tensor.dim(d) > declared.dim(d))
        return error(Code::kDataLoss,
                     "component {} of an element is {}, larger than the shape "
                     "{} to which it is padded",
                     component, tensor.describe(), declared.to_string());
    }
  }
  return Shape::make({dims.data(), dims.size()});
}

// Fills a tensor with a scalar.
void fill(const Tensor& value, Tensor& to) {
  visit_movable(to.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::ranges::fill(to.mutable_flat<T>(), *value.data<T>());
  });
}

Result<Tensor> padded(const std::vector<Element>& rows, size_t component,
                      const PaddingSpec& spec, Allocator& allocator) {
  TAGFLOW_ASSIGN(const Shape row,
                 row_shape(rows, component, spec.shapes[component]));
  Shape::Dims dims(1, int64_t(rows.size()));
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  TAGFLOW_ASSIGN(const Shape shape, Shape::make({dims.data(), dims.size()}));
  const DataType type = rows[0][component].dtype();
  TAGFLOW_ASSIGN(Tensor batch, Tensor::allocate(type, shape, allocator));
  const Tensor& value = spec.values[component];
  if (value.dtype() != type)
    return invalid_argument("component {} is {}, but its padding is {}",
                            component, dtype_name(type), value.describe());
  fill(value, batch);
  const int64_t size = row.num_elements();
  const Shape::Dims strides = row_major_strides(row.dims());
  for (size_t r = 0; r < rows.size(); ++r) {
    const Tensor& from = rows[r][component];
    const int64_t count = from.num_elements();
    if (count == 0) continue;
    const int64_t line = from.rank() == 0 ? 1 : from.dim(from.rank() - 1);
    // Lines of the innermost dimension, each to its place.
    for (int64_t at = 0; at < count; at += line) {
      int64_t to = int64_t(r) * size;
      int64_t index = at / line;
      for (int d = from.rank() - 2; d >= 0; --d) {
        to += (index % from.dim(d)) * strides[size_t(d)];
        index /= from.dim(d);
      }
      copy_elements(from, at, batch, to, line);
    }
  }
  return batch;
}

class PaddedBatchStage final : public Stage {
 public:
  PaddedBatchStage(Segment& segment, const Dataset& dataset, StagePtr input,
                   const PaddingSpec& spec)
      : segment_(segment),
        dataset_(&dataset),
        spec_(spec),
        rows_(segment, dataset, std::move(input), spec.batch) {}

  Progress next(Pull& pull) override {
    const Progress progress = rows_.collect(pull);
    if (progress != Progress::kElement) return progress;
    Element batch;
    Status failed;
    for (size_t c = 0; failed.ok() && c < spec_.shapes.size(); ++c) {
      Result<Tensor> rows =
          padded(rows_.rows(), c, spec_, segment_.pipeline().allocator());
      if (rows.ok())
        batch.push_back(*std::move(rows));
      else
        failed = std::move(rows).status().with_prefix(dataset_->prefix());
    }
    rows_.clear();
    if (!failed.ok()) return pull.fail(std::move(failed));
    return pull.give(std::move(batch));
  }

 private:
  Segment& segment_;
  const DatasetRef dataset_;
  const PaddingSpec spec_;
  BatchRows rows_;
};

Result<DatasetParts> padded_batch_dataset(const DatasetArgs& args) {
  const KernelContext& context = args.context();
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  PaddingSpec spec;
  TAGFLOW_ASSIGN(spec.batch.size, args.at_least(1, 1, "batch_size"));
  const int components = args.list_size("Toutput_types");
  if (size_t(components) != input->spec().types.size())
    return context.fail("{} components are padded, but elements have {}",
                        components, input->spec().types.size());
  if (args.attr<int64_t>("N", components) != components)
    return context.fail("there are not as many padded_shapes as components, {}",
                        components);
  for (int i = 0; i < components; ++i) {
    const Tensor& shape = context.input(2 + i);
    if (shape.rank() != 1 || shape.dtype() != DataType::kInt64)
      return context.fail("padded_shapes must be vectors, not {}",
                          shape.describe());
    TAGFLOW_ASSIGN(PartialShape dims,
                   PartialShape::make(shape.flat<int64_t>()));
    spec.shapes.push_back(std::move(dims));
    const Tensor& value = context.input(2 + components + i);
    if (value.num_elements() != 1)
      return context.fail("padding_values must be scalars, not {}",
                          value.describe());
    spec.values.push_back(value);
  }
  if (context.num_inputs() > 2 + 2 * components) {
    TAGFLOW_ASSIGN(spec.batch.drops_rest,
                   args.flag(args.from_end(1), "drop_remainder"));
  }
  spec.batch.components = size_t(components);
  return DatasetParts{
      batches_of(input->cardinality(), spec.batch),
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(std::make_unique<PaddedBatchStage>(
            segment, self, std::move(stage), spec));
      },
      input->spec().types};
}

}  // namespace

void register_dataset_padded_batch_kernels(KernelRegistry& registry) {
  add_dataset(registry, "PaddedBatchDataset", padded_batch_dataset);
  add_dataset(registry, "PaddedBatchDatasetV2", padded_batch_dataset);
}

}  // namespace tagflow::devices
