#include "devices/state/variable.h"

#include "devices/copy.h"
#include "devices/element_mover.h"

namespace tagflow::devices {
namespace {

std::atomic<int64_t> bytes_copied_count{0};

// A copy of the elements, in the memory of the kernel.
Result<Tensor> copy_of(const KernelContext& context, const Tensor& from) {
  if (from.buffer() == nullptr) return from;
  TAGFLOW_ASSIGN(Tensor copy, Tensor::allocate(from.dtype(), from.shape(),
                                               context.allocator()));
  StridedCopy all;
  all.add(from.num_elements(), 1, 1);
  if (from.num_elements() > 0) strided_copy(context, all, from, copy);
  bytes_copied_count.fetch_add(int64_t(from.bytes()),
                               std::memory_order_relaxed);
  return copy;
}

}  // namespace

int64_t Variable::bytes_copied() {
  return bytes_copied_count.load(std::memory_order_relaxed);
}

std::string Variable::describe() const {
  return fmt::format("variable \"{}\" of {}{}", name_, dtype_name(dtype_),
                     shape_.to_string());
}

Result<PartialShape> declared_shape(const graph::Node& maker) {
  TAGFLOW_ASSIGN(PartialShape shape, maker.attr<PartialShape>("shape"));
  // For the oldest op, a scalar shape means an unknown shape.
  if (maker.op() == "Variable" && shape.has_rank() && shape.rank() == 0)
    return PartialShape();
  return shape;
}

bool Variable::is_as_declared(const graph::Node& maker) const {
  const Result<DataType> dtype = maker.attr<DataType>("dtype");
  const Result<PartialShape> shape = tagflow::devices::declared_shape(maker);
  return dtype.ok() && *dtype == dtype_ && shape.ok() &&
         shape_.compatible(*shape);
}

Status Variable::check_initialized() const {
  if (is_initialized()) [[likely]]
    return {};
  TAGFLOW_RETURN_IF_ERROR(ended());
  return error(Code::kFailedPrecondition,
               "[state] {} is not initialized: nothing was assigned to it, or "
               "restored",
               describe());
}

Status Variable::check_readable(const KernelContext& context) const {
  TAGFLOW_RETURN_IF_ERROR(check_initialized());
  const Buffer* buffer = value_.buffer();
  if (buffer == nullptr || !is_plain(dtype_) ||
      context.allocator().shares_memory(*buffer->allocator) ||
      (mover_of(context) != nullptr && buffer->allocator->host_visible()))
    return {};
  return error(Code::kFailedPrecondition,
               "[state] {} is in {}, where this kernel cannot reach it",
               describe(), buffer->allocator->describe());
}

Result<Tensor> Variable::read(const KernelContext& context) const {
  TAGFLOW_RETURN_IF_ERROR(check_readable(context));
  if (!is_read_by_copy()) return value_;
  return copy_of(context, value_);
}

Status Variable::set(Tensor value) {
  TAGFLOW_RETURN_IF_ERROR(ended());
  count_change();
  value_ = std::move(value);
  bytes_hint_.store(value_.bytes(), std::memory_order_relaxed);
  return {};
}

Result<Tensor*> Variable::place_of_update(const KernelContext& context,
                                          Tensor& fresh) {
  TAGFLOW_RETURN_IF_ERROR(check_readable(context));
  count_change();
  if (value_.unique() && can_change(context, value_)) return &value_;
  TAGFLOW_ASSIGN(fresh, Tensor::allocate(value_.dtype(), value_.shape(),
                                         context.allocator()));
  return &fresh;
}

Result<Tensor*> Variable::change(const KernelContext& context) {
  TAGFLOW_RETURN_IF_ERROR(check_readable(context));
  count_change();
  if (!value_.unique()) {
    TAGFLOW_ASSIGN(value_, copy_of(context, value_));
  }
  return &value_;
}

Result<Tensor*> Variable::change_rows(const KernelContext& context) {
  read_by_copy_ = true;
  return change(context);
}

}  // namespace tagflow::devices
