#include "devices/kernels/elementwise/elementwise.h"

#include <algorithm>

#include "devices/broadcast.h"

namespace tagflow::devices {

namespace {

const std::byte* bytes_of(const Tensor& tensor) {
  return static_cast<const std::byte*>(tensor.raw());
}

}  // namespace

bool same_dims(const Tensor& x, const Tensor& y) {
  if (x.rank() != y.rank()) return false;
  for (int i = 0; i < x.rank(); ++i)
    if (x.dim(i) != y.dim(i)) return false;
  return true;
}

Status check_addends(const KernelContext& context) {
  const auto inputs = context.inputs();
  for (size_t i = 1; i < inputs.size(); ++i)
    if (!same_dims(inputs[0], inputs[i]))
      return context.fail("inputs 0 and {} have different shapes: {}, {}", i,
                          inputs[0].describe(), inputs[i].describe());
  return {};
}

bool may_take_long(const KernelInfo& info, double cost) {
  constexpr double kShort = 1000;  // nanoseconds
  const PartialShape& shape = info.node().output_shape(0);
  return !shape.fully_known() || double(shape.num_elements()) * cost > kShort;
}

double UnaryBase::cost(const KernelContext& context) const {
  return loop_.cost * double(context.input(0).num_elements());
}

Status UnaryBase::compute_tensor(KernelContext& context) const {
  const Tensor& x = context.input(0);
  TAGFLOW_ASSIGN(Tensor * out, context.forward_or_allocate(0, 0, x.shape()));
  const std::byte* from = bytes_of(x);
  auto* to = static_cast<std::byte*>(out->mutable_raw());
  shard(context, x.num_elements(), 1, loop_.cost,
        [&](int64_t begin, int64_t end) {
          loop_.row(from + size_t(begin) * loop_.in_size,
                    to + size_t(begin) * loop_.out_size, end - begin);
        });
  return {};
}

double BinaryBase::cost(const KernelContext& context) const {
  // A lower bound: broadcasting both may give more elements.
  return loop_.cost * double(std::max(context.input(0).num_elements(),
                                      context.input(1).num_elements()));
}

Status BinaryBase::refuse(KernelContext& context, int64_t index) const {
  return context.fail("{} (element {} of input 1, {})", loop_.refusal, index,
                      context.input(1).describe());
}

Status BinaryBase::check(KernelContext& context, const Tensor& y) const {
  if (loop_.find_refused == nullptr) return {};
  const int64_t index = loop_.find_refused(y.raw(), y.num_elements());
  if (index < 0) return {};
  return refuse(context, index);
}

Status BinaryBase::compute_tensors(KernelContext& context) const {
  const Tensor& x = context.input(0);
  const Tensor& y = context.input(1);
  if (same_dims(x, y)) return compute_flat(context, true, true);
  if (y.rank() <= x.rank() && y.num_elements() == 1)
    return compute_flat(context, true, false);
  if (x.rank() <= y.rank() && x.num_elements() == 1)
    return compute_flat(context, false, true);
  return compute_broadcast(context);
}

Status BinaryBase::compute_flat(KernelContext& context, bool x_moves,
                                bool y_moves) const {
  const Tensor& x = context.input(0);
  const Tensor& y = context.input(1);
  const Tensor& like = x_moves ? x : y;
  const int64_t count = like.num_elements();
  if (count > 0) TAGFLOW_RETURN_IF_ERROR(check(context, y));
  const bool reuse_x = x_moves && (!y_moves || x.unique());
  TAGFLOW_ASSIGN(Tensor * out,
                 context.forward_or_allocate(reuse_x ? 0 : 1, 0, like.shape()));
  const std::byte* a = bytes_of(x);
  const std::byte* b = bytes_of(y);
  auto* to = static_cast<std::byte*>(out->mutable_raw());
  shard(context, count, 1, loop_.cost, [&](int64_t begin, int64_t end) {
    const size_t from = size_t(begin) * loop_.in_size;
    loop_.row(a + (x_moves ? from : 0), x_moves, b + (y_moves ? from : 0),
              y_moves, to + size_t(begin) * loop_.out_size, end - begin);
  });
  return {};
}

Status BinaryBase::compute_broadcast(KernelContext& context) const {
  const Tensor& x = context.input(0);
  const Tensor& y = context.input(1);
  const Shape x_shape = x.shape();
  const Shape y_shape = y.shape();
  Result<Shape> shape = broadcast_shapes({&x_shape, &y_shape});
  if (!shape.ok()) return context.fail("{}", shape.status().message());
  TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, *shape));
  if (out->num_elements() == 0) return {};
  TAGFLOW_RETURN_IF_ERROR(check(context, y));
  const BroadcastPlan plan(*shape, {&x_shape, &y_shape});
  const std::byte* a = bytes_of(x);
  const std::byte* b = bytes_of(y);
  auto* to = static_cast<std::byte*>(out->mutable_raw());
  const int64_t n = plan.row_size();
  shard(context, plan.rows(), n, loop_.cost, [&](int64_t begin, int64_t end) {
    plan.for_each_row(begin, end, [&](int64_t row, const auto& offsets) {
      loop_.row(a + size_t(offsets[0]) * loop_.in_size, plan.moves(0),
                b + size_t(offsets[1]) * loop_.in_size, plan.moves(1),
                to + size_t(row * n) * loop_.out_size, n);
    });
  });
  return {};
}

}  // namespace tagflow::devices
