// The lists of features of SequenceExamples: a feature for each step. They are
// parsed in two passes, as features are.
#include "devices/kernels/parsing/feature_writer.h"

namespace tagflow::devices {

using Form = FeatureSpec::Form;

namespace {

constexpr uint32_t kFeatureLists = 2;
constexpr uint32_t kStep = 1;

// A list in the message.
struct ListView {
  std::string_view message;
  bool is_missing = true;
};

// What was counted of one list.
struct ListCounts {
  std::vector<int64_t> steps, values;  // as starts of rows
  std::vector<int64_t> widest;         // the values of a step
};

class ListParser {
 public:
  ListParser(KernelContext& context, const SerializedBatch& batch,
             const FeatureSet& lists)
      : context_(context),
        batch_(batch),
        lists_(lists),
        specs_(lists.specs()),
        width_(lists.keys().size()),
        views_(size_t(batch.size()) * width_),
        counts_(specs_.size()),
        most_steps_(specs_.size()) {}

  Status parse() {
    const auto rows = size_t(batch_.size());
    for (ListCounts& counts : counts_) {
      counts.steps.resize(rows + 1);
      counts.values.resize(rows + 1);
      counts.widest.resize(rows);
    }
    TAGFLOW_RETURN_IF_ERROR(
        batch_.for_each([this](int64_t row) { return find(row); }));
    for (size_t i = 0; i < specs_.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(allocate(i));
    return batch_.for_each([this](int64_t row) { return write(row); });
  }

 private:
  const ListView& view(int64_t row, const FeatureSpec& spec) const {
    return views_[size_t(row) * width_ + spec.key];
  }

  // Calls visit(step, feature) with each step of a list.
  template <class Visit>
  Status for_each_step(int64_t row, const FeatureSpec& spec,
                       const Visit& visit) const {
    WireReader reader(view(row, spec).message);
    int64_t step = 0;
    while (reader.next()) {
      if (!reader.is_bytes(kStep)) continue;
      FeatureView feature;
      if (!FeatureView::read(reader.bytes(), feature))
        return batch_.damaged(row);
      TAGFLOW_RETURN_IF_ERROR(visit(step++, feature));
    }
    return reader.ok() ? Status() : batch_.damaged(row);
  }

  // The first pass.
  Status find(int64_t row) {
    ListView* const views = views_.data() + size_t(row) * width_;
    if (!find_entries(batch_[row], kFeatureLists, lists_.keys(),
                      [&](size_t key, std::string_view list) {
                        views[key] = {list, false};
                        return true;
                      }))
      return batch_.damaged(row);
    for (size_t i = 0; i < specs_.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(count(row, i));
    return {};
  }

  Status count(int64_t row, size_t i) {
    const FeatureSpec& spec = specs_[i];
    if (view(row, spec).is_missing && !spec.may_be_missing)
      return feature_error(batch_, row, lists_.key_of(spec),
                           "is missing, and is not assumed to be empty");
    int64_t steps = 0, values = 0, widest = 0;
    TAGFLOW_RETURN_IF_ERROR(for_each_step(
        row, spec, [&](int64_t step, const FeatureView& feature) -> Status {
          TAGFLOW_RETURN_IF_ERROR(check_feature_type(
              batch_, row, lists_.key_of(spec), spec.type, feature));
          ++steps;
          if (spec.form == Form::kDense && feature.is_missing())
            return feature_error(batch_, row, lists_.key_of(spec),
                                 "has no values in step {}", step);
          const int64_t found = feature.is_missing() ? 0 : feature.count();
          if (found < 0) return batch_.damaged(row);
          if (spec.form == Form::kDense && found != spec.stride)
            return feature_error(
                batch_, row, lists_.key_of(spec),
                "has {} values in step {}, but its shape is {}", found, step,
                spec.row.to_string());
          values += found;
          widest = std::max(widest, found);
          return {};
        }));
    counts_[i].steps[size_t(row) + 1] = steps;
    counts_[i].values[size_t(row) + 1] = values;
    counts_[i].widest[size_t(row)] = widest;
    return {};
  }

  Status allocate(size_t i) {
    ListCounts& counts = counts_[i];
    most_steps_[i] = largest(counts.steps);
    if (specs_[i].form == Form::kDense) return allocate_dense(i);
    TAGFLOW_RETURN_IF_ERROR(add_up(context_, counts.steps));
    TAGFLOW_RETURN_IF_ERROR(add_up(context_, counts.values));
    TAGFLOW_RETURN_IF_ERROR(
        context_.allocate_output(specs_[i].values, {counts.values.back()})
            .status());
    return specs_[i].form == Form::kRagged ? allocate_splits(i)
                                           : allocate_sparse(i);
  }

  Status allocate_dense(size_t i) {
    const FeatureSpec& spec = specs_[i];
    Shape shape = spec.row;
    shape.insert_dim(0, most_steps_[i]);
    if (!batch_.is_single()) shape.insert_dim(0, batch_.size());
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_RETURN_IF_ERROR(
        context_.allocate_output(spec.values, shape).status());
    if (spec.splits < 0) return {};
    const Shape lengths =
        batch_.is_single() ? Shape{} : Shape{int64_t(batch_.size())};
    TAGFLOW_ASSIGN(Tensor * output,
                   context_.allocate_output(spec.splits, lengths));
    std::copy(counts_[i].steps.begin() + 1, counts_[i].steps.end(),
              output->mutable_data<int64_t>());
    return {};
  }

  Status allocate_splits(size_t i) {
    const FeatureSpec& spec = specs_[i];
    const std::vector<int64_t>& steps = counts_[i].steps;
    // The splits of steps; those of values are written later, and begin with 0.
    TAGFLOW_RETURN_IF_ERROR(
        set_splits(context_, spec, spec.indices, steps, batch_.is_single()));
    const int64_t values = counts_[i].values.back();
    if (spec.split_type == DataType::kInt32 &&
        values > std::numeric_limits<int32_t>::max())
      return context_.fail("{} values are too many for splits of int32",
                           values);
    TAGFLOW_ASSIGN(Tensor * inner,
                   context_.allocate_output(spec.splits, {steps.back() + 1}));
    store_split(*inner, 0, 0);
    return {};
  }

  Status allocate_sparse(size_t i) {
    const FeatureSpec& spec = specs_[i];
    const ListCounts& counts = counts_[i];
    const Shape indices = {counts.values.back(), batch_.is_single() ? 2 : 3};
    TAGFLOW_RETURN_IF_ERROR(
        context_.allocate_output(spec.indices, indices).status());
    const int64_t widest = largest(counts.widest);
    if (batch_.is_single())
      return set_numbers(context_, spec.shape, {most_steps_[i], widest});
    return set_numbers(context_, spec.shape,
                       {batch_.size(), most_steps_[i], widest});
  }

  static void store_split(Tensor& splits, int64_t at, int64_t value) {
    if (splits.dtype() == DataType::kInt32) {
      splits.mutable_data<int32_t>()[at] = int32_t(value);
    } else {
      splits.mutable_data<int64_t>()[at] = value;
    }
  }

  // The second pass.
  Status write(int64_t row) {
    for (size_t i = 0; i < specs_.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(
          with_feature_type(specs_[i].type, [&](const auto& value) {
            using T = std::decay_t<decltype(value)>;
            return specs_[i].form == Form::kDense ? write_dense<T>(row, i)
                                                  : write_values<T>(row, i);
          }));
    return {};
  }

  template <class T>
  Status write_dense(int64_t row, size_t i) {
    const FeatureSpec& spec = specs_[i];
    Tensor& output = context_.output(spec.values);
    const ElementWriter<T> writer(output);
    T* const to = output.mutable_data<T>() + row * most_steps_[i] * spec.stride;
    TAGFLOW_RETURN_IF_ERROR(
        for_each_step(row, spec, [&](int64_t step, const FeatureView& feature) {
          const int64_t count =
              feature.copy(to + step * spec.stride, spec.stride, writer);
          return count == spec.stride ? Status() : batch_.damaged(row);
        }));
    const int64_t written = counts_[i].steps[size_t(row) + 1];
    writer.fill(to + written * spec.stride,
                (most_steps_[i] - written) * spec.stride, T());
    return {};
  }

  template <class T>
  Status write_values(int64_t row, size_t i) {
    const FeatureSpec& spec = specs_[i];
    const int64_t end = counts_[i].values[size_t(row) + 1];
    const int64_t first_step = counts_[i].steps[size_t(row)];
    int64_t at = counts_[i].values[size_t(row)];
    Tensor& output = context_.output(spec.values);
    const ElementWriter<T> writer(output);
    return for_each_step(
        row, spec, [&](int64_t step, const FeatureView& feature) -> Status {
          int64_t count = 0;
          if (!feature.is_missing())
            count =
                feature.copy(output.mutable_data<T>() + at, end - at, writer);
          if (count < 0 || count > end - at) return batch_.damaged(row);
          if (spec.form == Form::kRagged) {
            store_split(context_.output(spec.splits), first_step + step + 1,
                        at + count);
          } else {
            write_indices(
                row, step, at, count,
                context_.output(spec.indices).template mutable_data<int64_t>());
          }
          at += count;
          return {};
        });
  }

  void write_indices(int64_t row, int64_t step, int64_t begin, int64_t count,
                     int64_t* indices) const {
    const int64_t rank = batch_.is_single() ? 2 : 3;
    int64_t* to = indices + begin * rank;
    for (int64_t k = 0; k < count; ++k) {
      if (!batch_.is_single()) *to++ = row;
      *to++ = step;
      *to++ = k;
    }
  }

  KernelContext& context_;
  const SerializedBatch& batch_;
  const FeatureSet& lists_;
  const std::span<const FeatureSpec> specs_;
  const size_t width_;           // keys
  std::vector<ListView> views_;  // of all keys in each row
  std::vector<ListCounts> counts_;
  std::vector<int64_t> most_steps_;  // of a row
};

}  // namespace

Status parse_feature_lists(KernelContext& context, const SerializedBatch& batch,
                           const FeatureSet& lists) {
  return ListParser(context, batch, lists).parse();
}

}  // namespace tagflow::devices
