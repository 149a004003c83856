// RaggedTensorToVariant, RaggedTensorFromVariant and the gradient of the first:
// ragged tensors as variants, so that lists and loops can hold them.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/containers/variant_arithmetic.h"
#include "devices/kernels/sparse/args.h"
#include "devices/kernels/sparse/variants.h"
#include "devices/tensor_rows.h"

namespace tagflow::devices {

namespace {

// The row splits of one level: where each row begins, and the last one ends.
using RowSplits = std::vector<int64_t>;

bool equal_splits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  for (int64_t i = 0; i < a.num_elements(); ++i)
    if (index_at(a, i) != index_at(b, i)) return false;
  return true;
}

class RaggedValue final : public ArithmeticValue {
 public:
  RaggedValue(std::vector<Tensor> splits, Tensor values)
      : splits_(std::move(splits)), values_(std::move(values)) {}
  // Values may be variants, as deep as a loop makes them.
  ~RaggedValue() override { release_nested(std::move(values_)); }

  // Of the levels, the outermost first.
  const std::vector<Tensor>& splits() const { return splits_; }
  const Tensor& values() const { return values_; }

  std::string describe() const override {
    return fmt::format("RaggedTensor of {} levels with values {}",
                       splits_.size(), values_.describe());
  }
  size_t own_bytes() const override {
    return sizeof(*this) + splits_.capacity() * sizeof(Tensor);
  }
  Result<Variant> zeros_like(const KernelContext& context,
                             int depth) const override {
    TAGFLOW_ASSIGN(Tensor zeros,
                   zeros_like_tensor(context, values_, depth + 1));
    return Variant(make_ref_counted<RaggedValue>(splits_, std::move(zeros)));
  }
  Result<Variant> add(const KernelContext& context, const VariantValue& other,
                      int depth) const override {
    const auto* ragged = dynamic_cast<const RaggedValue*>(&other);
    if (ragged == nullptr ||
        !std::ranges::equal(splits_, ragged->splits_, equal_splits))
      return context.fail("cannot add {} and {}: the rows differ", describe(),
                          other.describe());
    TAGFLOW_ASSIGN(Tensor sum,
                   add_nested(context, values_, ragged->values_, depth + 1));
    return Variant(make_ref_counted<RaggedValue>(splits_, std::move(sum)));
  }

 private:
  const std::vector<Tensor> splits_;
  Tensor values_;
};

Result<Tensor> splits_tensor(KernelContext& context, DataType type,
                             const RowSplits& splits) {
  TAGFLOW_ASSIGN(Tensor tensor,
                 context.allocate_temp(type, Shape{int64_t(splits.size())}));
  for (size_t i = 0; i < splits.size(); ++i)
    TAGFLOW_RETURN_IF_ERROR(
        store_index(context, tensor, int64_t(i), splits[i]));
  return tensor;
}

// The splits of a level.
Result<RowSplits> read_splits(const KernelContext& context,
                              const Tensor& tensor, int level) {
  if (tensor.rank() != 1 || tensor.dim(0) < 1)
    return context.fail(
        "row splits of level {} must be a vector with an element, not {}",
        level, tensor.describe());
  RowSplits splits;
  for (int64_t i = 0; i < tensor.dim(0); ++i) {
    splits.push_back(index_at(tensor, i));
    if (splits.back() < (i == 0 ? 0 : splits[size_t(i) - 1]) ||
        (i == 0 && splits[0] != 0))
      return context.fail(
          "row splits of level {} must begin with 0 and ascend, but element {} "
          "is {}",
          level, i, splits.back());
  }
  return splits;
}

class RaggedToVariantKernel final : public SparseKernel {
 public:
  explicit RaggedToVariantKernel(const KernelInfo& info)
      : is_batch_(attr_of<bool>(info, "batched_input")) {}

  Status compute(KernelContext& context) const override {
    const int levels = context.num_inputs() - 1;
    if (!is_batch_) {
      const auto splits = context.inputs().first(size_t(levels));
      return new_value_output<RaggedValue>(
                 context, 0, std::vector<Tensor>(splits.begin(), splits.end()),
                 context.input(levels))
          .status();
    }
    if (levels == 0)
      return context.fail("a batch needs row splits, but there are none");
    std::vector<RowSplits> splits;
    for (int level = 0; level < levels; ++level) {
      TAGFLOW_ASSIGN(RowSplits read,
                     read_splits(context, context.input(level), level));
      if (level > 0 && splits.back().back() != int64_t(read.size()) - 1)
        return context.fail("level {} has {} rows, but level {} ends at {}",
                            level, read.size() - 1, level - 1,
                            splits.back().back());
      splits.push_back(std::move(read));
    }
    const Tensor& values = context.input(levels);
    if (values.rank() < 1 || values.dim(0) != splits.back().back())
      return context.fail("the last row ends at {}, but the values are {}",
                          splits.back().back(), values.describe());
    const auto rows = int64_t(splits[0].size()) - 1;
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, Shape{rows}));
    for (int64_t row = 0; row < rows; ++row) {
      context.check_cancelled();
      TAGFLOW_ASSIGN(output->mutable_data<Variant>()[row],
                     row_of(context, splits, row));
    }
    return {};
  }

 private:
  static Result<Variant> row_of(KernelContext& context,
                                const std::vector<RowSplits>& splits,
                                int64_t row) {
    int64_t begin = splits[0][size_t(row)], end = splits[0][size_t(row) + 1];
    std::vector<Tensor> inner;
    for (size_t level = 1; level < splits.size(); ++level) {
      const auto from = splits[level].begin();
      RowSplits part(from + begin, from + end + 1);
      begin = part.front(), end = part.back();
      for (int64_t& split : part) split -= begin;
      TAGFLOW_ASSIGN(
          Tensor tensor,
          splits_tensor(context, context.input(int(level)).dtype(), part));
      inner.push_back(std::move(tensor));
    }
    TAGFLOW_ASSIGN(Tensor values, copy_rows(context, context.inputs().back(),
                                            begin, end - begin));
    return Variant(
        make_ref_counted<RaggedValue>(std::move(inner), std::move(values)));
  }

  const bool is_batch_;
};

// Whether tensors of these shapes have rows, of one shape.
bool same_rows(const Shape& a, const Shape& b) {
  if (a.rank() < 1 || a.rank() != b.rank()) return false;
  for (int d = 1; d < a.rank(); ++d)
    if (a.dim(d) != b.dim(d)) return false;
  return true;
}

class RaggedFromVariantKernel final : public SparseKernel {
 public:
  explicit RaggedFromVariantKernel(const KernelInfo& info)
      : inner_(attr_of<int64_t>(info, "input_ragged_rank")),
        splits_type_(attr_of<DataType>(info, "Tsplits")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& encoded = context.input(0);
    const int64_t levels = context.num_outputs() - 1;
    const int64_t inner = inner_ < 0 ? levels - encoded.rank() : inner_;
    if (inner < 0 || inner + encoded.rank() != levels)
      return context.fail(
          "ragged tensors of {} levels in {} make no tensor of {} levels",
          inner, encoded.describe(), levels);
    std::vector<const RaggedValue*> items;
    for (const Variant& variant : encoded.flat<Variant>()) {
      const auto* item = value_as<RaggedValue>(variant);
      if (item == nullptr)
        return context.fail("element {} is {}, not a RaggedTensor",
                            items.size(), describe_variant(variant));
      TAGFLOW_RETURN_IF_ERROR(check(context, *item, items.size(), inner));
      items.push_back(item);
    }
    if (encoded.is_scalar()) {
      for (int level = 0; level < int(levels); ++level)
        context.set_output(level, items[0]->splits()[size_t(level)]);
      context.set_output(int(levels), items[0]->values());
      return {};
    }
    return join(context, items, int(inner));
  }

 private:
  Status check(const KernelContext& context, const RaggedValue& item, size_t i,
               int64_t levels) const {
    const DataType type = context.node().output_dtypes().back();
    if (int64_t(item.splits().size()) != levels)
      return context.fail("element {} is {}, not one of {} levels", i,
                          item.describe(), levels);
    if (item.values().dtype() != type)
      return context.fail("element {} is {}, not one of {}", i, item.describe(),
                          dtype_name(type));
    for (const Tensor& splits : item.splits())
      if (splits.dtype() != splits_type_)
        return context.fail("element {} has row splits of {}, not of {}", i,
                            dtype_name(splits.dtype()),
                            dtype_name(splits_type_));
    return {};
  }

  Status set_level(KernelContext& context, int output,
                   const RowSplits& splits) const {
    TAGFLOW_ASSIGN(context.output(output),
                   splits_tensor(context, splits_type_, splits));
    return {};
  }

  // Of `rows` rows of one length. Without elements, they may be very many.
  static Status set_uniform_level(KernelContext& context, int output,
                                  int64_t rows, int64_t length) {
    if (rows == std::numeric_limits<int64_t>::max())
      return context.fail("{} has too many rows", context.input(0).describe());
    TAGFLOW_ASSIGN(const Shape shape, Shape::make({{rows + 1}}));
    TAGFLOW_ASSIGN(Tensor * splits, context.allocate_output(output, shape));
    for (int64_t row = 0; row <= rows; ++row) {
      if (row % 65536 == 0) context.check_cancelled();
      TAGFLOW_RETURN_IF_ERROR(store_index(context, *splits, row, row * length));
    }
    return {};
  }

  // The dimensions of the variant become levels, all but the last one of rows
  // of one length; then come those of the elements.
  Status join(KernelContext& context,
              const std::vector<const RaggedValue*>& items, int inner) const {
    const Tensor& encoded = context.input(0);
    int output = 0;
    int64_t rows = encoded.dim(0);
    for (int d = 1; d < encoded.rank(); ++d) {
      const auto inside = checked_multiply(rows, encoded.dim(d));
      if (!inside)
        return context.fail("{} has too many rows", encoded.describe());
      TAGFLOW_RETURN_IF_ERROR(
          set_uniform_level(context, output++, rows, encoded.dim(d)));
      rows = *inside;
    }
    std::vector<RowSplits> levels(size_t(inner) + 1, RowSplits{0});
    for (const RaggedValue* item : items) {
      context.check_cancelled();
      int64_t count = 0;  // of rows, or of values
      for (int level = 0; level < inner; ++level) {
        TAGFLOW_ASSIGN(
            const RowSplits splits,
            read_splits(context, item->splits()[size_t(level)], level));
        if (level > 0 && int64_t(splits.size()) - 1 != count)
          return context.fail("a level of {} has {} rows, but {} are wanted",
                              item->describe(), splits.size() - 1, count);
        if (level == 0)
          levels[0].push_back(levels[0].back() + int64_t(splits.size()) - 1);
        RowSplits& joined = levels[size_t(level) + 1];
        const int64_t base = joined.back();
        for (size_t i = 1; i < splits.size(); ++i)
          joined.push_back(base + splits[i]);
        count = splits.back();
      }
      const Tensor& values = item->values();
      if (!same_rows(values.shape(), items[0]->values().shape()) ||
          (inner > 0 && values.dim(0) != count))
        return context.fail("{} does not fit {}, or its row splits",
                            item->describe(), items[0]->describe());
      if (inner == 0) levels[0].push_back(levels[0].back() + values.dim(0));
    }
    for (const RowSplits& splits : levels)
      TAGFLOW_RETURN_IF_ERROR(set_level(context, output++, splits));
    return join_values(context, items, output);
  }

  static Status join_values(KernelContext& context,
                            const std::vector<const RaggedValue*>& items,
                            int output) {
    std::vector<Tensor> parts;
    std::vector<int64_t> lengths;
    Shape rest;
    for (const RaggedValue* item : items) {
      parts.push_back(item->values());
      lengths.push_back(parts.back().dim(0));
      rest = parts.back().shape();
      rest.remove_dim(0);
    }
    return join_rows(context, parts, lengths, rest, output);
  }

  const int64_t inner_;
  const DataType splits_type_;
};

// The values of the elements, joined; zeros for those without a gradient.
class RaggedVariantGradKernel final : public SparseKernel {
 public:
  explicit RaggedVariantGradKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& encoded = context.input(0);
    const Tensor& splits = context.input(1);
    Shape::Dims dims;
    TAGFLOW_RETURN_IF_ERROR(
        index_vector(context, 2, "dense_values_shape", dims));
    TAGFLOW_ASSIGN(const Shape shape, Shape::make(std::span<const int64_t>(
                                          dims.data(), dims.size())));
    const DataType type = context.node().output_dtypes()[0];
    std::vector<Tensor> parts;
    for (const Variant& variant : encoded.flat<Variant>()) {
      context.check_cancelled();
      if (const auto* item = value_as<RaggedValue>(variant)) {
        parts.push_back(item->values());
      } else {
        TAGFLOW_ASSIGN(Tensor part, zeros(context, splits, shape,
                                          int64_t(parts.size()), type));
        parts.push_back(std::move(part));
      }
      if (parts.back().dtype() != type || parts.back().rank() != shape.rank())
        return context.fail(
            "the gradient of element {} is {}, but those of "
            "values {} of {} are wanted",
            parts.size() - 1, parts.back().describe(), shape.to_string(),
            dtype_name(type));
    }
    if (encoded.is_scalar() && parts[0].shape() == shape) {
      context.set_output(0, parts[0]);
      return {};
    }
    return join(context, parts, shape);
  }

 private:
  static Result<Tensor> zeros(const KernelContext& context,
                              const Tensor& splits, Shape shape, int64_t i,
                              DataType type) {
    if (context.input(0).is_scalar()) return make_zeros(context, type, shape);
    if (splits.rank() != 1 || i + 1 >= splits.dim(0) || shape.rank() < 1)
      return context.fail("element {} has no row in {}", i, splits.describe());
    const int64_t rows = index_at(splits, i + 1) - index_at(splits, i);
    if (rows < 0 || rows > shape.dim(0))
      return context.fail("row {} has {} values of {}", i, rows,
                          shape.to_string());
    shape.set_dim(0, rows);
    return make_zeros(context, type, shape);
  }

  static Status join(KernelContext& context, const std::vector<Tensor>& parts,
                     const Shape& shape) {
    std::vector<int64_t> lengths;
    int64_t rows = 0;
    for (const Tensor& part : parts) {
      if (!same_rows(part.shape(), shape))
        return context.fail("the gradient {} does not fit values {}",
                            part.describe(), shape.to_string());
      lengths.push_back(part.dim(0));
      rows += part.dim(0);
    }
    if (shape.rank() == 0 || rows != shape.dim(0))
      return context.fail("the gradients have {} rows, the values are {}", rows,
                          shape.to_string());
    Shape rest = shape;
    rest.remove_dim(0);
    return join_rows(context, parts, lengths, rest);
  }
};

}  // namespace

Result<Tensor> ragged_variant(std::vector<Tensor> splits, Tensor values,
                              Allocator& allocator) {
  TAGFLOW_ASSIGN(Tensor variant,
                 Tensor::allocate(DataType::kVariant, {}, allocator));
  *variant.mutable_data<Variant>() = Variant(
      make_ref_counted<RaggedValue>(std::move(splits), std::move(values)));
  return variant;
}

void register_ragged_variant_kernels(KernelRegistry& registry) {
  registry.add<RaggedToVariantKernel>("RaggedTensorToVariant");
  registry.add<RaggedFromVariantKernel>("RaggedTensorFromVariant");
  registry.add<RaggedVariantGradKernel>("RaggedTensorToVariantGradient");
}

}  // namespace tagflow::devices
