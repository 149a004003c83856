#include "devices/kernels/parsing/feature_set.h"

#include <algorithm>
#include <limits>

#include "graph/counted.h"

namespace tagflow::devices {

using Form = FeatureSpec::Form;

Status FeatureSet::check_counts(Keys keys, Types types) const {
  if (keys.size() == types.size()) return {};
  return context_.fail("there are {} for features of {}",
                       counted(keys.size(), "key"),
                       counted(types.size(), "type"));
}

Status FeatureSet::add_sparse(Keys keys, Types types) {
  TAGFLOW_RETURN_IF_ERROR(check_counts(keys, types));
  const int count = int(types.size());
  for (int i = 0; i < count; ++i) {
    FeatureSpec& spec = specs_.emplace_back();
    spec.form = Form::kSparse;
    spec.type = types[size_t(i)];
    spec.key = keys_.add(keys[size_t(i)]);
    spec.indices = next_ + i;
    spec.values = next_ + count + i;
    spec.shape = next_ + 2 * count + i;
  }
  next_ += 3 * count;
  return {};
}

Status FeatureSet::add_dense(Keys keys, Types types, Shapes shapes,
                             int first_fallback) {
  TAGFLOW_RETURN_IF_ERROR(check_counts(keys, types));
  for (size_t i = 0; i < types.size(); ++i) {
    FeatureSpec& spec = specs_.emplace_back();
    spec.type = types[i];
    spec.key = keys_.add(keys[i]);
    spec.values = next_++;
    spec.fallback = context_.input(first_fallback + int(i));
    // The shape function has checked these.
    std::span<const int64_t> dims = shapes[i].dims();
    if (!dims.empty() && dims[0] < 0) {
      spec.form = Form::kPadded;
      dims = dims.subspan(1);
    }
    TAGFLOW_ASSIGN(spec.row, Shape::make(dims));
    spec.stride = spec.row.num_elements();
    if (spec.form == Form::kPadded) {
      if (spec.stride == 0)
        return context_.fail("feature {:?} of shape {} has no values", keys[i],
                             shapes[i].to_string());
      if (spec.fallback.num_elements() != 1)
        return context_.fail(
            "the default of feature {:?}, whose shape {} varies, must be one "
            "value to pad with, not {}",
            keys[i], shapes[i].to_string(), spec.fallback.describe());
    } else if (spec.fallback.num_elements() > 0 &&
               spec.fallback.shape() != spec.row) {
      return context_.fail(
          "the default of feature {:?} of shape {} must have that shape, or no "
          "elements, but is {}",
          keys[i], spec.row.to_string(), spec.fallback.describe());
    }
  }
  return {};
}

Status FeatureSet::add_ragged(Ragged kind, Keys keys, Types types,
                              Types split_types) {
  const bool is_list = kind == Ragged::kList;
  TAGFLOW_RETURN_IF_ERROR(check_counts(keys, types));
  const int count = int(types.size());
  for (int i = 0; i < count; ++i) {
    FeatureSpec& spec = specs_.emplace_back();
    spec.form = Form::kRagged;
    spec.type = types[size_t(i)];
    spec.split_type = split_types[size_t(i)];
    spec.counts_single = kind != Ragged::kExample;
    spec.key = keys_.add(keys[size_t(i)]);
    spec.values = next_ + i;
    spec.indices = next_ + count + i;
    spec.splits = spec.indices + (is_list ? count : 0);
  }
  next_ += (is_list ? 3 : 2) * count;
  return {};
}

Status FeatureSet::add_dense_lists(Keys keys, Types types, Shapes shapes,
                                   bool has_lengths) {
  TAGFLOW_RETURN_IF_ERROR(check_counts(keys, types));
  const int count = int(types.size());
  for (int i = 0; i < count; ++i) {
    FeatureSpec& spec = specs_.emplace_back();
    spec.type = types[size_t(i)];
    spec.key = keys_.add(keys[size_t(i)]);
    spec.values = next_ + i;
    spec.splits = has_lengths ? next_ + count + i : -1;
    TAGFLOW_ASSIGN(spec.row, Shape::make(shapes[size_t(i)].dims()));
    spec.stride = spec.row.num_elements();
    spec.may_be_missing = false;
  }
  next_ += (has_lengths ? 2 : 1) * count;
  return {};
}

Result<std::span<const std::string>> keys_input(const KernelContext& context,
                                                int input) {
  const Tensor& keys = context.input(input);
  if (keys.rank() != 1)
    return context.fail("keys must be a vector, not {}", keys.describe());
  return keys.flat<std::string>();
}

Result<std::vector<std::string>> key_inputs(const KernelContext& context,
                                            int first, size_t count) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < count; ++i) {
    const Tensor& key = context.input(first + int(i));
    if (key.num_elements() != 1)
      return context.fail("a key must be a scalar, not {}", key.describe());
    keys.push_back(key.scalar_value<std::string>());
  }
  return keys;
}

namespace {

template <class T>
Status fill_splits(KernelContext& context, Tensor& output,
                   std::span<const int64_t> starts) {
  if (!starts.empty() && starts.back() > std::numeric_limits<T>::max())
    return context.fail("{} values are too many for splits of {}",
                        starts.back(), dtype_name(output.dtype()));
  std::ranges::transform(starts, output.mutable_data<T>(),
                         [](int64_t start) { return T(start); });
  return {};
}

}  // namespace

Status set_splits(KernelContext& context, const FeatureSpec& spec, int port,
                  std::span<const int64_t> starts, bool is_single) {
  Shape shape = {int64_t(starts.size())};
  if (is_single) {
    starts = starts.last(spec.counts_single ? 1 : 0);
    shape = spec.counts_single ? Shape{} : Shape{0};
  }
  TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(port, shape));
  return spec.split_type == DataType::kInt32
             ? fill_splits<int32_t>(context, *output, starts)
             : fill_splits<int64_t>(context, *output, starts);
}

Status set_numbers(KernelContext& context, int port,
                   std::initializer_list<int64_t> numbers) {
  TAGFLOW_ASSIGN(Tensor * output,
                 context.allocate_output(port, {int64_t(numbers.size())}));
  std::ranges::copy(numbers, output->mutable_data<int64_t>());
  return {};
}

}  // namespace tagflow::devices
