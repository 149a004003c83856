#include "net/serving/examples.h"

#include <algorithm>
#include <vector>

#include "graph/dtype_visit.h"
#include "graph/float16.h"
#include "net/proto/serving/predict.pb.h"

namespace tagflow::net::serving {
namespace {

using tensorflow::Example;
using tensorflow::Feature;

// The examples, and what each of them has besides.
struct ExampleRows {
  const google::protobuf::RepeatedPtrField<Example>* examples;
  const Example* context;  // null: none
};

ExampleRows rows_of(const tensorflow::serving::Input& input) {
  if (input.has_example_list_with_context()) {
    const auto& list = input.example_list_with_context();
    return {&list.examples(), &list.context()};
  }
  return {&input.example_list().examples(), nullptr};
}

bool takes_bytes(const ServedSignature& signature) {
  if (signature.inputs.size() != 1) return false;
  const TensorSpec& spec = signature.inputs.begin()->second;
  return spec.dtype == DataType::kString &&
         (!spec.shape.has_rank() || spec.shape.rank() == 1);
}

// ResourceExhausted if what the context repeats in each row is too large.
Status check_repeated(const ExampleRows& rows, int64_t bytes_of_a_row) {
  const int64_t count = rows.examples->size();
  if (bytes_of_a_row <= kMostRepeatedBytes / std::max<int64_t>(count, 1))
    return {};
  return error(Code::kResourceExhausted,
               "[examples] the context has {} bytes for each of {} examples, "
               "and may have {} for all of them",
               bytes_of_a_row, count, kMostRepeatedBytes);
}

Result<Tensor> as_bytes(const ExampleRows& rows) {
  const std::string context =
      rows.context == nullptr ? "" : rows.context->SerializeAsString();
  TAGFLOW_RETURN_IF_ERROR(check_repeated(rows, int64_t(context.size())));
  TAGFLOW_ASSIGN(
      Tensor tensor,
      Tensor::allocate(DataType::kString, Shape({rows.examples->size()})));
  // Two messages, one after the other, are one message with the fields of both.
  for (int i = 0; i < rows.examples->size(); ++i)
    tensor.mutable_data<std::string>()[i] =
        rows.examples->Get(i).SerializeAsString() + context;
  return tensor;
}

const Feature* find_feature(const Example* example, const std::string& name) {
  if (example == nullptr) return nullptr;
  const auto& features = example->features().feature();
  const auto found = features.find(name);
  return found == features.end() ? nullptr : &found->second;
}

int64_t count_values(const Feature& feature) {
  return int64_t{feature.bytes_list().value_size()} +
         feature.float_list().value_size() + feature.int64_list().value_size();
}

Status copy_values(const Feature& feature, std::string* to) {
  const auto& values = feature.bytes_list().value();
  if (values.size() != count_values(feature))
    return invalid_argument("its values are no strings");
  std::copy(values.begin(), values.end(), to);
  return {};
}

// Integers are numbers of any type, if they fit.
template <class T>
Status copy_values(const Feature& feature, T* to) {
  const auto& integers = feature.int64_list().value();
  const auto& floats = feature.float_list().value();
  if (feature.has_bytes_list())
    return invalid_argument("its values are strings");
  if constexpr (std::is_integral_v<T>) {
    if (!floats.empty()) return invalid_argument("its values have fractions");
    for (const int64_t value : integers) {
      if constexpr (!std::is_same_v<T, bool>)
        if (!std::in_range<T>(value))
          return invalid_argument("{} is no {}", value,
                                  dtype_name(kDataTypeOf<T>));
      *to++ = T(value);
    }
  } else {
    for (const int64_t value : integers) *to++ = T(float(value));
    for (const float value : floats) *to++ = T(value);
  }
  return {};
}

using FeatureRows = std::vector<const Feature*>;

int64_t count_bytes(const Feature& feature, DataType dtype) {
  int64_t bytes = count_values(feature) * int64_t(dtype_size(dtype));
  for (const std::string& value : feature.bytes_list().value())
    bytes += int64_t(value.size());
  return bytes;
}

// The feature of each example, or else that of the context. All have as many
// values.
Result<FeatureRows> find_rows(const ExampleRows& rows, const std::string& name,
                              const TensorSpec& spec) {
  FeatureRows features;
  const Feature* const common = find_feature(rows.context, name);
  if (common != nullptr)
    TAGFLOW_RETURN_IF_ERROR(
        check_repeated(rows, count_bytes(*common, spec.dtype)));
  for (const Example& example : *rows.examples) {
    const Feature* feature = find_feature(&example, name);
    if (feature == nullptr) feature = common;
    if (feature == nullptr)
      return invalid_argument(
          "[examples] example {} has no feature \"{}\", which is a {}",
          features.size(), name, spec.describe());
    features.push_back(feature);
    const int64_t count = count_values(*features[0]);
    if (count_values(*feature) != count)
      return invalid_argument(
          "[examples] feature \"{}\" has {} values in one example, and {} in "
          "another",
          name, count, count_values(*feature));
  }
  return features;
}

// That of a tensor with so many rows of so many values each.
Result<Shape> shape_of_rows(int64_t rows, int64_t count,
                            const std::string& name, const TensorSpec& spec) {
  std::vector<int64_t> dims{rows};
  if (spec.shape.has_rank()) {
    int free = 0;
    for (int i = 1; i < spec.shape.rank(); ++i) {
      free += spec.shape.dim_known(i) ? 0 : 1;
      dims.push_back(spec.shape.dim(i));
    }
    int64_t known = 1;
    for (size_t i = 1; i < dims.size(); ++i)
      known *= std::max<int64_t>(dims[i], 1);
    for (size_t i = 1; i < dims.size(); ++i)
      if (dims[i] < 0) dims[i] = free == 1 ? count / known : 1;
  } else if (count != 1) {
    dims.push_back(count);
  }
  TAGFLOW_ASSIGN(const Shape shape, Shape::make(dims));
  if (shape.num_elements() == count * rows) return shape;
  return invalid_argument(
      "[examples] feature \"{}\" has {} values, and must be a row of {}", name,
      count, spec.describe());
}

Result<Tensor> as_tensor(const ExampleRows& rows, const std::string& name,
                         const TensorSpec& spec) {
  TAGFLOW_ASSIGN(const FeatureRows features, find_rows(rows, name, spec));
  const int64_t count = count_values(*features[0]);
  TAGFLOW_ASSIGN(const Shape shape,
                 shape_of_rows(int64_t(features.size()), count, name, spec));
  TAGFLOW_ASSIGN(Tensor tensor, Tensor::allocate(spec.dtype, shape));
  Status filled =
      error(Code::kUnimplemented, "[examples] a feature cannot become {}",
            dtype_name(spec.dtype));
  detail::visit_among<std::string, float, double, int64_t, int32_t, uint8_t,
                      bool>(spec.dtype, [&]<class T>(TypeTag<T>) {
    filled = {};
    T* to = tensor.mutable_data<T>();
    for (size_t i = 0; filled.ok() && i < features.size(); ++i, to += count)
      filled = copy_values(*features[i], to)
                   .with_prefix(fmt::format(
                       "[examples] feature \"{}\" must be {}: ", name,
                       spec.describe()));
  });
  TAGFLOW_RETURN_IF_ERROR(filled);
  return tensor;
}

Status wrong_output(const std::string& name, const Tensor& value,
                    int64_t examples) {
  return invalid_argument(
      "[examples] output \"{}\" is {}, and has not the rows of {} examples, or "
      "is of another type",
      name, value.describe(), examples);
}

// The value of an output, or null if there is none.
Result<const Tensor*> find_output(const Tensors& outputs,
                                  const std::string& name, DataType dtype,
                                  int64_t examples) {
  const auto found = outputs.find(name);
  if (found == outputs.end()) return nullptr;
  const Tensor& value = found->second;
  if (value.dtype() == dtype && value.rank() >= 1 && value.rank() <= 2 &&
      value.dim(0) == examples)
    return &value;
  return wrong_output(name, value, examples);
}

}  // namespace

Result<int64_t> count_examples(const tensorflow::serving::Input& input) {
  const int count = rows_of(input).examples->size();
  if (count > 0) return int64_t{count};
  return invalid_argument("[examples] the request has no examples");
}

Result<Tensors> inputs_of_examples(const ServedSignature& signature,
                                   const tensorflow::serving::Input& input) {
  TAGFLOW_RETURN_IF_ERROR(count_examples(input).status());
  const ExampleRows rows = rows_of(input);
  Tensors inputs;
  if (takes_bytes(signature)) {
    TAGFLOW_ASSIGN(inputs[signature.inputs.begin()->first], as_bytes(rows));
    return inputs;
  }
  for (const auto& [name, spec] : signature.inputs) {
    if (spec.has_default) continue;
    TAGFLOW_ASSIGN(inputs[name], as_tensor(rows, name, spec));
  }
  return inputs;
}

Status classes_of(const Tensors& outputs, int64_t examples,
                  tensorflow::serving::ClassificationResult* result) {
  TAGFLOW_ASSIGN(const Tensor* classes,
                 find_output(outputs, "classes", DataType::kString, examples));
  TAGFLOW_ASSIGN(const Tensor* scores,
                 find_output(outputs, "scores", DataType::kFloat, examples));
  if (classes == nullptr && scores == nullptr)
    return invalid_argument(
        "[examples] a signature that classifies has the outputs \"classes\" "
        "and \"scores\", or one of them");
  const Tensor& one = classes != nullptr ? *classes : *scores;
  const int64_t count = one.num_elements() / examples;
  if (classes != nullptr && scores != nullptr &&
      classes->num_elements() != scores->num_elements())
    return wrong_output("scores", *scores, examples);
  for (int64_t i = 0; i < examples; ++i) {
    auto* const row = result->add_classifications();
    for (int64_t j = i * count; j < (i + 1) * count; ++j) {
      auto* const entry = row->add_classes();
      if (classes != nullptr) entry->set_label(classes->data<std::string>()[j]);
      if (scores != nullptr) entry->set_score(scores->data<float>()[j]);
    }
  }
  return {};
}

Status values_of(const Tensors& outputs, int64_t examples,
                 tensorflow::serving::RegressionResult* result) {
  const std::string name =
      outputs.size() == 1 ? outputs.begin()->first : "outputs";
  TAGFLOW_ASSIGN(const Tensor* values,
                 find_output(outputs, name, DataType::kFloat, examples));
  if (values == nullptr)
    return invalid_argument(
        "[examples] a signature that gives values has the output \"outputs\"");
  if (values->num_elements() != examples)
    return wrong_output(name, *values, examples);
  for (const float value : values->flat<float>())
    result->add_regressions()->set_value(value);
  return {};
}

}  // namespace tagflow::net::serving
