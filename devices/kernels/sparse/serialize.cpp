// SerializeSparse, SerializeManySparse, DeserializeSparse,
// DeserializeManySparse: sparse tensors as three strings each, or as three
// variants.
#include <string>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/parsing/message.h"
#include "devices/kernels/sparse/batch.h"
#include "devices/kernels/sparse/variants.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

constexpr int64_t kTensors = 3;  // of a sparse tensor

// A tensor in a variant.
class TensorValue final : public VariantValue {
 public:
  explicit TensorValue(Tensor value) : value_(std::move(value)) {}

  const Tensor& value() const { return value_; }
  std::string describe() const override { return "a part of a sparse tensor"; }
  size_t own_bytes() const override { return sizeof(*this); }

 private:
  const Tensor value_;
};

Variant part_variant(const Tensor& part) {
  return Variant(make_ref_counted<TensorValue>(part));
}

// Writes the three tensors as elements `at` and following of output 0.
Status write_item(KernelContext& context, const SparseItem& item, int64_t at,
                  Tensor& output) {
  for (const Tensor* part : {&item.indices, &item.values, &item.shape}) {
    context.check_cancelled();
    if (output.dtype() == DataType::kVariant) {
      output.mutable_data<Variant>()[at++] = part_variant(*part);
      continue;
    }
    TAGFLOW_ASSIGN(std::string bytes,
                   tensor_message(context, *part, StringForm::kContent));
    StringWriter(output).take(output.mutable_data<std::string>()[at++],
                              std::move(bytes));
  }
  return {};
}

class SerializeKernel final : public SparseKernel {
 public:
  explicit SerializeKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(check_sparse_ports(context));
    TAGFLOW_ASSIGN(Tensor * output,
                   context.allocate_output(0, Shape{kTensors}));
    return write_item(context,
                      {context.input(0), context.input(1), context.input(2)}, 0,
                      *output);
  }
};

class SerializeManyKernel final : public SparseKernel {
 public:
  explicit SerializeManyKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto rows, sparse_rows(context));
    TAGFLOW_ASSIGN(
        Tensor * output,
        context.allocate_output(0, Shape{int64_t(rows.size()), kTensors}));
    int64_t at = 0;
    for (const SparseItem& row : rows) {
      TAGFLOW_RETURN_IF_ERROR(write_item(context, row, at, *output));
      at += kTensors;
    }
    return {};
  }
};

// The first dimensions number the sparse tensors, the last one their parts.
class DeserializeKernel final : public SparseKernel {
 public:
  explicit DeserializeKernel(const KernelInfo& info)
      : dtype_(attr_of<DataType>(info, "dtype")),
        is_many_(info.node().op() == "DeserializeManySparse") {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (is_many_ && input.rank() != 2)
      return context.fail("the input must be a matrix, got {}",
                          input.describe());
    if (input.rank() < 1 || input.dim(input.rank() - 1) != kTensors)
      return context.fail("the last dimension of the input must be 3, got {}",
                          input.describe());
    Shape leading;
    for (int d = 0; d + 1 < input.rank(); ++d) leading.add_dim(input.dim(d));
    std::vector<SparseItem> items(size_t(input.num_elements() / kTensors));
    int64_t at = 0, repeated = kMostRepeatedBytes;
    for (SparseItem& item : items) {
      for (Tensor* part : {&item.indices, &item.values, &item.shape}) {
        context.check_cancelled();
        TAGFLOW_ASSIGN(*part, read_part(context, at++, repeated));
      }
    }
    return set_batch(context, items, leading, dtype_);
  }

 private:
  static Result<Tensor> read_part(const KernelContext& context, int64_t at,
                                  int64_t& repeated) {
    const Tensor& input = context.input(0);
    if (input.dtype() == DataType::kString)
      return parse_tensor(context, input.data<std::string>()[at], &repeated);
    const Variant& variant = input.data<Variant>()[at];
    if (const auto* part = value_as<TensorValue>(variant)) return part->value();
    return context.fail("element {} is {}, not a part of a sparse tensor", at,
                        describe_variant(variant));
  }

  const DataType dtype_;
  const bool is_many_;
};

}  // namespace

Result<Tensor> sparse_variants(const SparseItem& item, Allocator& allocator) {
  TAGFLOW_ASSIGN(Tensor variants,
                 Tensor::allocate(DataType::kVariant, {kTensors}, allocator));
  auto* at = variants.mutable_data<Variant>();
  for (const Tensor* part : {&item.indices, &item.values, &item.shape})
    *at++ = part_variant(*part);
  return variants;
}

void register_sparse_serialize_kernels(KernelRegistry& registry) {
  registry.add<SerializeKernel>("SerializeSparse");
  registry.add<SerializeManyKernel>("SerializeManySparse");
  registry.add<DeserializeKernel>("DeserializeSparse");
  registry.add<DeserializeKernel>("DeserializeManySparse");
}

}  // namespace tagflow::devices
