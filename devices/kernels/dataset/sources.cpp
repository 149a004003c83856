// TensorDataset, TensorSliceDataset and RangeDataset.
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
  add_dataset(registry, "RangeDataset", range_dataset);
}

}  // namespace tagflow::devices
