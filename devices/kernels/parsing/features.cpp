// The features of Examples, and the context of SequenceExamples.
//
// A first pass over the Examples finds where the values lie, and counts them
// where their number may vary. Then all outputs can be allocated, and a second
// pass copies each value once. Examples are independent of one another in both.
#include "devices/kernels/parsing/feature_writer.h"

namespace tagflow::devices {

namespace {

using Form = FeatureSpec::Form;

constexpr uint32_t kFeatures = 1;

class FeatureParser {
 public:
  FeatureParser(KernelContext& context, const SerializedBatch& batch,
                const FeatureSet& features)
      : context_(context),
        batch_(batch),
        features_(features),
        specs_(features.specs()),
        width_(features.keys().size()),
        views_(size_t(batch.size()) * width_),
        starts_(specs_.size()),
        most_(specs_.size()) {}

  Status parse() {
    for (size_t i = 0; i < specs_.size(); ++i)
      if (specs_[i].form != Form::kDense)
        starts_[i].resize(size_t(batch_.size()) + 1);
    TAGFLOW_RETURN_IF_ERROR(
        batch_.for_each([this](int64_t row) { return find(row); }));
    for (size_t i = 0; i < specs_.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(allocate(i));
    return batch_.for_each([this](int64_t row) { return write(row); });
  }

 private:
  const FeatureView& view(int64_t row, const FeatureSpec& spec) const {
    return views_[size_t(row) * width_ + spec.key];
  }

  // The first pass.
  Status find(int64_t row) {
    FeatureView* const views = views_.data() + size_t(row) * width_;
    if (!find_entries(batch_[row], kFeatures, features_.keys(),
                      [&](size_t key, std::string_view feature) {
                        return FeatureView::read(feature, views[key]);
                      }))
      return batch_.damaged(row);
    for (size_t i = 0; i < specs_.size(); ++i) {
      const FeatureSpec& spec = specs_[i];
      const FeatureView& found = view(row, spec);
      TAGFLOW_RETURN_IF_ERROR(check_feature_type(
          batch_, row, features_.key_of(spec), spec.type, found));
      if (spec.form == Form::kDense || found.is_missing()) continue;
      const int64_t count = found.count();
      if (count < 0) return batch_.damaged(row);
      if (spec.form == Form::kPadded && count % spec.stride != 0)
        return feature_error(batch_, row, features_.key_of(spec),
                             "has {} values, which are not rows of shape {}",
                             count, spec.row.to_string());
      starts_[i][size_t(row) + 1] = count;
    }
    return {};
  }

  // The outputs of a feature, but for what write() writes.
  Status allocate(size_t i) {
    const FeatureSpec& spec = specs_[i];
    std::vector<int64_t>& starts = starts_[i];
    Shape shape = spec.row;
    most_[i] = largest(starts);
    if (spec.form == Form::kPadded) shape.insert_dim(0, most_[i] / spec.stride);
    if (spec.form == Form::kDense || spec.form == Form::kPadded) {
      if (!batch_.is_single()) shape.insert_dim(0, batch_.size());
      TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
      return context_.allocate_output(spec.values, shape).status();
    }
    TAGFLOW_RETURN_IF_ERROR(add_up(context_, starts));
    TAGFLOW_RETURN_IF_ERROR(
        context_.allocate_output(spec.values, {starts.back()}).status());
    if (spec.form == Form::kRagged)
      return set_splits(context_, spec, spec.splits, starts,
                        batch_.is_single());
    const Shape indices = {starts.back(), batch_.is_single() ? 1 : 2};
    TAGFLOW_RETURN_IF_ERROR(
        context_.allocate_output(spec.indices, indices).status());
    if (batch_.is_single())
      return set_numbers(context_, spec.shape, {most_[i]});
    return set_numbers(context_, spec.shape, {batch_.size(), most_[i]});
  }

  // The second pass.
  Status write(int64_t row) {
    for (size_t i = 0; i < specs_.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(
          with_feature_type(specs_[i].type, [&](const auto& value) {
            return write_values<std::decay_t<decltype(value)>>(row, i);
          }));
    return {};
  }

  template <class T>
  Status write_values(int64_t row, size_t i) {
    const FeatureSpec& spec = specs_[i];
    const FeatureView& found = view(row, spec);
    Tensor& output = context_.output(spec.values);
    const ElementWriter<T> writer(output);
    T* to = output.mutable_data<T>();
    if (spec.form == Form::kDense) {
      to += row * spec.stride;
      if (found.is_missing()) return write_fallback(row, spec, to, writer);
      const int64_t count = found.copy(to, spec.stride, writer);
      if (count < 0) return batch_.damaged(row);
      if (count != spec.stride)
        return feature_error(batch_, row, features_.key_of(spec),
                             "has {} values, but its shape is {}", count,
                             spec.row.to_string());
      return {};
    }
    const int64_t begin =
        spec.form == Form::kPadded ? row * most_[i] : starts_[i][size_t(row)];
    const int64_t count = spec.form == Form::kPadded
                              ? starts_[i][size_t(row) + 1]
                              : starts_[i][size_t(row) + 1] - begin;
    if (!found.is_missing() && found.copy(to + begin, count, writer) != count)
      return batch_.damaged(row);
    if (spec.form == Form::kPadded) {
      writer.fill(to + begin + count, most_[i] - count,
                  spec.fallback.template scalar_value<T>());
    } else if (spec.form == Form::kSparse) {
      write_indices(row, begin, count,
                    context_.output(spec.indices).mutable_data<int64_t>());
    }
    return {};
  }

  template <class T>
  Status write_fallback(int64_t row, const FeatureSpec& spec, T* to,
                        const ElementWriter<T>& writer) const {
    if (spec.fallback.num_elements() == 0)
      return feature_error(batch_, row, features_.key_of(spec),
                           "is missing, and has no default");
    writer.copy(spec.fallback.data<T>(), spec.stride, to);
    return {};
  }

  void write_indices(int64_t row, int64_t begin, int64_t count,
                     int64_t* indices) const {
    if (batch_.is_single()) {
      for (int64_t k = 0; k < count; ++k) indices[begin + k] = k;
      return;
    }
    for (int64_t k = 0; k < count; ++k) {
      indices[2 * (begin + k)] = row;
      indices[2 * (begin + k) + 1] = k;
    }
  }

  KernelContext& context_;
  const SerializedBatch& batch_;
  const FeatureSet& features_;
  const std::span<const FeatureSpec> specs_;
  const size_t width_;              // keys
  std::vector<FeatureView> views_;  // of all keys in each row
  // For each feature whose number of values may vary: a 0 and the numbers in
  // rows; later the sums before each, unless they are padded.
  std::vector<std::vector<int64_t>> starts_;
  std::vector<int64_t> most_;  // values of a row
};

}  // namespace

Status parse_features(KernelContext& context, const SerializedBatch& batch,
                      const FeatureSet& features) {
  return FeatureParser(context, batch, features).parse();
}

}  // namespace tagflow::devices
