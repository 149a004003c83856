// TensorDataset, TensorSliceDataset, SparseTensorSliceDataset and RangeDataset.
#include <algorithm>
#include <ranges>

#include "devices/copy.h"
#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/elements.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

// Gives elements that it computes from their numbers.
template <class At>
class NumberedStage final : public Stage {
 public:
  NumberedStage(int64_t count, At at) : count_(count), at_(std::move(at)) {}

  Progress next(Pull& pull) override {
    if (next_ >= count_) return Progress::kEnd;
    Result<Element> element = at_(next_++);
    if (!element.ok()) return pull.fail(std::move(element).status());
    return pull.give(*std::move(element));
  }

 private:
  const int64_t count_;
  const At at_;
  int64_t next_ = 0;
};

template <class At>
StagePtr numbered(int64_t count, At at) {
  return std::make_unique<NumberedStage<At>>(count, std::move(at));
}

std::vector<DataType> types_of(const Element& components) {
  std::vector<DataType> types;
  for (const Tensor& component : components) types.push_back(component.dtype());
  return types;
}

Result<DatasetParts> tensor_dataset(const DatasetArgs& args) {
  const auto inputs = args.context().inputs();
  const Element components(inputs.begin(), inputs.end());
  return DatasetParts{
      1,
      [components](Segment&, const Dataset&) -> Result<StagePtr> {
        return numbered(
            1, [components](int64_t) -> Result<Element> { return components; });
      },
      types_of(components)};
}

Result<DatasetParts> tensor_slice_dataset(const DatasetArgs& args) {
  const KernelContext& context = args.context();
  const auto inputs = context.inputs();
  const Element components(inputs.begin(), inputs.end());
  for (const Tensor& component : components)
    if (component.rank() == 0 || component.dim(0) != components[0].dim(0))
      return context.fail(
          "all components must have the same first dimension, but one is {} "
          "and the first is {}",
          component.describe(), components[0].describe());
  if (components.empty()) return context.fail("there is no component");
  const int64_t rows = components[0].dim(0);
  return DatasetParts{
      rows,
      [components, rows](Segment& segment, const Dataset&) -> Result<StagePtr> {
        Allocator& allocator = segment.pipeline().allocator();
        return numbered(rows, [components, &allocator](int64_t row) {
          return row_of(components, row, allocator);
        });
      },
      types_of(components)};
}

// The values of a row of a sparse tensor, with their places in it.
struct SparseRows {
  // REQUIRES: the rows of the indices do not decrease.
  Result<Element> at(int64_t row, Allocator& allocator) const {
    const int64_t rank = indices.dim(1);
    const auto all = indices.flat<int64_t>();
    const auto count_before = [&](int64_t limit) {
      const auto places = std::views::iota(int64_t{0}, indices.dim(0));
      return std::ranges::partition_point(
                 places,
                 [&](int64_t i) { return all[size_t(i * rank)] < limit; }) -
             places.begin();
    };
    const int64_t begin = count_before(row), end = count_before(row + 1);
    TAGFLOW_ASSIGN(
        Tensor places,
        Tensor::allocate(DataType::kInt64, {end - begin, rank - 1}, allocator));
    TAGFLOW_ASSIGN(Tensor found,
                   Tensor::allocate(values.dtype(), {end - begin}, allocator));
    for (int64_t i = begin; i < end; ++i)
      copy_elements(indices, i * rank + 1, places, (i - begin) * (rank - 1),
                    rank - 1);
    copy_elements(values, begin, found, 0, end - begin);
    return Element{std::move(places), std::move(found), row_shape};
  }

  Tensor indices, values, row_shape;
};

Result<DatasetParts> sparse_tensor_slice_dataset(const DatasetArgs& args) {
  const KernelContext& context = args.context();
  SparseRows rows{context.input(0), context.input(1), {}};
  const Tensor& dense_shape = context.input(2);
  if (rows.indices.rank() != 2 || rows.values.rank() != 1 ||
      dense_shape.rank() != 1)
    return context.fail(
        "indices must be a matrix, values and dense_shape vectors, but they "
        "are {}, {} and {}",
        rows.indices.describe(), rows.values.describe(),
        dense_shape.describe());
  const int64_t rank = dense_shape.dim(0);
  if (rows.values.dim(0) != rows.indices.dim(0) ||
      rank != rows.indices.dim(1) || rank == 0)
    return context.fail(
        "indices must have a row for each of {} values, and a column for each "
        "of {} dimensions, at least one, but are {}",
        rows.values.dim(0), rank, rows.indices.describe());
  const auto sizes = dense_shape.flat<int64_t>();
  TAGFLOW_RETURN_IF_ERROR(
      Shape::make(sizes).status().with_prefix("dense_shape: "));
  const auto all = rows.indices.flat<int64_t>();
  int64_t last = -1;
  for (int64_t i = 0; i < rows.indices.dim(0); ++i) {
    const int64_t here = all[size_t(i * rank)];
    if (here < last)
      return error(Code::kUnimplemented,
                   "[{}] the indices must be in the order of their first "
                   "column, but {} follows {} in row {}",
                   context.node().op(), here, last, i);
    last = here;
  }
  rows.row_shape = Tensor::of<int64_t>({rank - 1}, sizes.subspan(1));
  return DatasetParts{
      sizes[0],
      [rows, count = sizes[0]](Segment& segment,
                               const Dataset&) -> Result<StagePtr> {
        Allocator& allocator = segment.pipeline().allocator();
        return numbered(count, [rows, &allocator](int64_t row) {
          return rows.at(row, allocator);
        });
      },
      std::vector{DataType::kInt64, rows.values.dtype(), DataType::kInt64},
      {PartialShape({-1, rank - 1}), PartialShape({-1}),
       PartialShape({rank - 1})}};
}

Result<DatasetParts> range_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const int64_t start, args.number(0, "start"));
  TAGFLOW_ASSIGN(const int64_t stop, args.number(1, "stop"));
  TAGFLOW_ASSIGN(const int64_t step, args.number(2, "step"));
  if (step == 0) return args.context().fail("step must not be 0");
  // Unsigned, since the distance of two numbers may exceed an int64.
  const bool is_empty = step > 0 ? start >= stop : start <= stop;
  const uint64_t distance = step > 0 ? uint64_t(stop) - uint64_t(start)
                                     : uint64_t(start) - uint64_t(stop);
  const uint64_t width = step > 0 ? uint64_t(step) : -uint64_t(step);
  const uint64_t count =
      is_empty ? 0 : distance / width + (distance % width != 0 ? 1 : 0);
  if (count > uint64_t(std::numeric_limits<int64_t>::max()))
    return args.context().fail("the range has {} elements: too many", count);
  const DataType type =
      args.attr<std::vector<DataType>>("output_types", {DataType::kInt64})
          .front();
  if (!visit_real(type, [](auto) {}))
    return args.context().fail("output_types must be of real numbers, not {}",
                               dtype_name(type));
  return DatasetParts{
      int64_t(count),
      [=](Segment&, const Dataset&) -> Result<StagePtr> {
        return numbered(int64_t(count), [=](int64_t i) -> Result<Element> {
          const auto value =
              int64_t(uint64_t(start) + uint64_t(i) * uint64_t(step));
          Element element(1);
          visit_real(type, [&]<class T>(TypeTag<T>) {
            element[0] = Tensor::scalar(T(value));
          });
          return element;
        });
      },
      std::vector{type}};
}

}  // namespace

void register_dataset_source_kernels(KernelRegistry& registry) {
  add_dataset(registry, "TensorDataset", tensor_dataset);
  add_dataset(registry, "TensorSliceDataset", tensor_slice_dataset);
  add_dataset(registry, "SparseTensorSliceDataset",
              sparse_tensor_slice_dataset);
  add_dataset(registry, "RangeDataset", range_dataset);
}

}  // namespace tagflow::devices
