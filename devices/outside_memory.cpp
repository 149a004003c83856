#include "devices/outside_memory.h"

#include <algorithm>

#include "devices/string_writer.h"
#include "graph/handle.h"

namespace tagflow::devices {
namespace {

// Whether only this execution holds the output: others must not be changed,
// and were counted when they were made. One that was changed in place is an
// input, too.
bool is_own(const KernelContext& context, const Tensor& output) {
  if (output.unique()) return true;
  return output.buffer()->refs.load(std::memory_order_acquire) == 2 &&
         std::ranges::any_of(context.inputs(), [&](const Tensor& input) {
           return input.buffer() == output.buffer();
         });
}

Status count_strings(KernelContext& context, Tensor& output) {
  if (!output.buffer()->allocator->counts_outside() && output.unique()) {
    TAGFLOW_ASSIGN(Tensor own,
                   context.allocate_temp(DataType::kString, output.shape()));
    std::ranges::move(output.mutable_flat<std::string>(),
                      own.mutable_data<std::string>());
    output = std::move(own);
  }
  return settle_strings(output);
}

Status count_variants(const KernelContext& context, Tensor& output) {
  for (const Variant& variant : output.flat<Variant>()) {
    VariantValue* const value = variant.get();
    if (value == nullptr || !value->unique() ||
        value->settle(context.allocator()))
      continue;
    return out_of_memory(context.allocator(), value->describe(),
                         value->own_bytes());
  }
  return {};
}

}  // namespace

Status copy_kept_strings(const KernelContext& context,
                         std::span<Tensor> values) {
  for (Tensor& value : values) {
    if (value.dtype() != DataType::kString || value.buffer() == nullptr ||
        value.buffer()->allocator->counts_outside())
      continue;
    TAGFLOW_ASSIGN(value, copy_strings(value, context.allocator()));
  }
  return {};
}

Status count_outside(KernelContext& context) {
  Status status;
  for (Tensor& output : context.mutable_outputs()) {
    const bool is_text = output.dtype() == DataType::kString;
    if (!is_text && output.dtype() != DataType::kVariant) continue;
    if (!output.valid() || !is_own(context, output)) continue;
    status = is_text ? count_strings(context, output)
                     : count_variants(context, output);
    if (!status.ok()) break;
  }
  if (status.ok()) return status;
  return std::move(status).with_prefix(
      fmt::format("[{}] ", context.node().op()));
}

}  // namespace tagflow::devices
