#include "devices/kernels/dataset/dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "devices/files/host_access.h"
#include "devices/kernels/containers/values.h"

namespace tagflow::devices {

// --- Specs ------------------------------------------------------------------

Status ElementSpec::check(const ElementSpec& made,
                          std::string_view what) const {
  if (types.size() != made.types.size())
    return invalid_argument("{} has elements of {} components, not of {}", what,
                            made.types.size(), types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != made.types[i])
      return invalid_argument("component {} of {} is of type {}, not {}", i,
                              what, dtype_name(made.types[i]),
                              dtype_name(types[i]));
    if (i < shapes.size() && i < made.shapes.size() &&
        !shapes[i].compatible(made.shapes[i]))
      return invalid_argument("component {} of {} has shape {}, not {}", i,
                              what, made.shapes[i].to_string(),
                              shapes[i].to_string());
  }
  return {};
}

Status ElementSpec::check(const Element& element) const {
  if (element.size() != types.size())
    return invalid_argument("the element has {} components, not {}",
                            element.size(), types.size());
  for (size_t i = 0; i < types.size(); ++i)
    if (element[i].dtype() != types[i] ||
        (i < shapes.size() && !accepts_shape_of(shapes[i], element[i])))
      return invalid_argument(
          "component {} of the element is {}, not {} of shape {}", i,
          element[i].describe(), dtype_name(types[i]),
          i < shapes.size() ? shapes[i].to_string() : "<unknown>");
  return {};
}

// --- Datasets ---------------------------------------------------------------

Dataset::~Dataset() { release_in_turn(std::move(parts_.start)); }

std::string Dataset::prefix() const {
  return fmt::format("[{} \"{}\"] ", op_, name_);
}

std::string Dataset::describe() const {
  return fmt::format("{} \"{}\"", op_, name_);
}

Result<StagePtr> Dataset::start(Segment& segment) const {
  const Segment::Depth deeper(segment, segment.depth() + 1);
  if (segment.depth() > kMostDepth)
    return error(Code::kResourceExhausted,
                 "{}datasets are nested in more than {} others", prefix(),
                 kMostDepth);
  Result<StagePtr> stage = parts_.start(segment, *this);
  if (!stage.ok()) return std::move(stage).status().with_prefix(prefix());
  return stage;
}

Result<std::vector<StagePtr>> start_all(const std::vector<DatasetRef>& datasets,
                                        Segment& segment) {
  std::vector<StagePtr> stages;
  for (const DatasetRef& dataset : datasets) {
    TAGFLOW_ASSIGN(StagePtr stage, dataset->start(segment));
    stages.push_back(std::move(stage));
  }
  return stages;
}

Result<DatasetRef> dataset_of(const Tensor& tensor, std::string_view what) {
  if (tensor.dtype() != DataType::kVariant || tensor.num_elements() != 1)
    return invalid_argument("{} must be a dataset, not {}", what,
                            tensor.describe());
  const auto& variant = *tensor.data<Variant>();
  const auto* const dataset = variant.get_if<Dataset>();
  if (dataset == nullptr)
    return invalid_argument("{} must be a dataset, not {}", what,
                            describe_variant(variant));
  return DatasetRef(dataset);
}

// --- Kernels ----------------------------------------------------------------

namespace {

template <class T>
Result<T> scalar_input(const KernelContext& context, int input,
                       std::string_view name) {
  const Tensor& tensor = context.input(input);
  if (tensor.dtype() != kDataTypeOf<T> || tensor.num_elements() != 1)
    return context.fail("{} must be a scalar of type {}, not {}", name,
                        dtype_name(kDataTypeOf<T>), tensor.describe());
  return *tensor.data<T>();
}

std::string type_names(const std::vector<DataType>& types) {
  std::string text;
  for (const DataType type : types)
    text += fmt::format("{}{}", text.empty() ? "(" : ", ", dtype_name(type));
  return text.empty() ? "()" : text + ")";
}

int depth_of_inputs(const KernelContext& context) {
  int depth = 0;
  for (const Tensor& input : context.inputs()) {
    if (input.dtype() != DataType::kVariant) continue;
    for (const Variant& variant : input.flat<Variant>())
      if (const auto* const dataset = variant.get_if<Dataset>())
        depth = std::max(depth, dataset->depth());
  }
  return depth;
}

class DatasetKernel final : public CheapKernel {
 public:
  DatasetKernel(const KernelInfo& info, MakeParts make) : make_(make) {
    for (const char* attr : {"output_types", "Toutput_types"})
      if (auto types = info.attr<std::vector<DataType>>(attr); types.ok())
        spec_.types = *std::move(types);
    if (auto shapes = info.attr<std::vector<PartialShape>>("output_shapes");
        shapes.ok())
      spec_.shapes = *std::move(shapes);
  }

  Status compute(KernelContext& context) const override {
    const int depth = 1 + depth_of_inputs(context);
    if (depth > Dataset::kMostDepth)
      return error(Code::kResourceExhausted,
                   "[{}] the dataset refers to more than {} others, one of "
                   "the other",
                   context.node().op(), Dataset::kMostDepth);
    TAGFLOW_ASSIGN(DatasetParts parts, make_(DatasetArgs(context)));
    ElementSpec spec = spec_;
    if (spec.types.empty() && parts.types) spec = {*parts.types, parts.shapes};
    if (parts.types && *parts.types != spec.types)
      return context.fail(
          "elements have components of types {}, but output_types are {}",
          type_names(*parts.types), type_names(spec.types));
    return new_value_output<Dataset>(context, 0, context.node().op(),
                                     context.node().name(), std::move(spec),
                                     std::move(parts), depth)
        .status();
  }
  bool is_bookkeeping() const override { return true; }

 private:
  const MakeParts make_;
  ElementSpec spec_;
};

}  // namespace

Result<DatasetRef> DatasetArgs::dataset(int input) const {
  return dataset_of(context_.input(input),
                    fmt::format("[{}] input {}", context_.node().op(), input));
}

Result<int64_t> DatasetArgs::number(int input, std::string_view name) const {
  if (context_.input(input).dtype() == DataType::kInt32) {
    TAGFLOW_ASSIGN(const int32_t value,
                   scalar_input<int32_t>(context_, input, name));
    return int64_t{value};
  }
  return scalar_input<int64_t>(context_, input, name);
}

Result<int64_t> DatasetArgs::at_least(int64_t least, int input,
                                      std::string_view name) const {
  TAGFLOW_ASSIGN(const int64_t value, number(input, name));
  if (value < least)
    return context_.fail("{} must be at least {}, but is {}", name, least,
                         value);
  return value;
}

Result<int64_t> DatasetArgs::parallel_calls(int input) const {
  TAGFLOW_ASSIGN(const int64_t calls, number(input, "num_parallel_calls"));
  if (calls < 1 && calls != -1)
    return context_.fail(
        "num_parallel_calls must be positive, or -1, but is {}", calls);
  return calls;
}

Result<bool> DatasetArgs::flag(int input, std::string_view name) const {
  return scalar_input<bool>(context_, input, name);
}

Result<std::string> DatasetArgs::text(int input, std::string_view name) const {
  return scalar_input<std::string>(context_, input, name);
}

int DatasetArgs::list_size(std::string_view name) const {
  return int(attr<std::vector<DataType>>(name, {}).size());
}

Result<CapturedFunction> DatasetArgs::function(std::string_view attr, int first,
                                               std::string_view types) const {
  TAGFLOW_ASSIGN(FunctionRef function, context_.node().attr<FunctionRef>(attr));
  const auto captured =
      context_.inputs().subspan(size_t(first), size_t(list_size(types)));
  return captured_function(context_, std::move(function),
                           {captured.begin(), captured.end()});
}

CapturedFunction captured_function(const KernelContext& context,
                                   FunctionRef function,
                                   std::vector<Tensor> captured) {
  const auto host = host_access_of(context).functions();
  return {std::move(function), std::move(captured),
          host == nullptr ? nullptr : host->own_functions()};
}

void add_dataset(KernelRegistry& registry, const char* op, MakeParts make) {
  registry.add<DatasetKernel>(op, {}, make);
}

}  // namespace tagflow::devices
