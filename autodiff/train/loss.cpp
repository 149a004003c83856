#include "autodiff/train/loss.h"

#include "autodiff/train/values.h"
#include "graph/builder/ops_activation.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff::losses {

namespace ops = graph::ops;
using graph::Input;
using graph::Scope;

namespace {

Output reduced(const Scope& s, const Output& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::kMean:
      return ops::reduce_mean(s, losses);
    case Reduction::kSum:
      return ops::reduce_sum(s, losses);
    case Reduction::kNone:
      break;
  }
  return losses;
}

// Predictions and labels of one type and shape.
struct Pair {
  Scope in;
  Output x, z;

  Pair(const Scope& s, const char* name, const Output& predictions,
       const Input& labels)
      : in(graph::ScopeAccess::construct_scope(s, name)), x(predictions) {
    z = typed_value(in, labels, x.dtype(), "labels");
    if (in.ok() && !x.shape().compatible(z.shape()))
      in.fail(invalid_argument(
          "[{}] \"{}\": labels of shape {} do not fit predictions of shape {}",
          name, graph::ScopeAccess::name(in), z.shape().to_string(),
          x.shape().to_string()));
  }
};

// Logits as a matrix, and the shape of the labels for its rows.
class Rows {
 public:
  Rows(const Scope& in, const Output& logits) : in_(in) {
    const PartialShape& shape = logits.shape();
    if (!in.ok() || (shape.has_rank() && shape.rank() == 2)) {
      matrix_ = logits;
      return;
    }
    if (shape.has_rank() && shape.rank() == 0) {
      in.fail(invalid_argument("[{}] logits \"{}\" are a scalar",
                               graph::ScopeAccess::name(in), logits.name()));
      return;
    }
    const Output all = ops::shape(in, logits);
    outer_ = ops::strided_slice(in, all, {0}, {-1}, {1});
    const Output classes =
        ops::strided_slice(in, all, {-1}, {0}, {1}, {.end_mask = 1});
    flat_ = ops::concat(
        in, {ops::reduce_prod(in, outer_, {0}, {.keep_dims = true}), classes},
        0);
    matrix_ = ops::reshape(in, logits, flat_);
  }

  const Output& matrix() const { return matrix_; }
  Output as_matrix(const Output& labels) const {
    return flat_.valid() ? ops::reshape(in_, labels, flat_) : labels;
  }
  Output as_vector(const Output& labels) const {
    return flat_.valid() ? ops::reshape(in_, labels, {-1}) : labels;
  }
  Output back(const Output& losses) const {
    return outer_.valid() ? ops::reshape(in_, losses, outer_) : losses;
  }

 private:
  const Scope& in_;
  Output matrix_, outer_, flat_;
};

}  // namespace

Output mean_squared_error(const Scope& s, const Output& predictions,
                          const Input& labels, Reduction reduction) {
  const Pair p(s, "mean_squared_error", predictions, labels);
  return reduced(p.in, ops::squared_difference(p.in, p.x, p.z), reduction);
}

Output softmax_cross_entropy(const Scope& s, const Output& logits,
                             const Input& labels, Reduction reduction) {
  const Pair p(s, "softmax_cross_entropy", logits, labels);
  const Rows rows(p.in, p.x);
  const Output losses =
      ops::softmax_cross_entropy(p.in, rows.matrix(), rows.as_matrix(p.z)).loss;
  return reduced(p.in, rows.back(losses), reduction);
}

Output sparse_softmax_cross_entropy(const Scope& s, const Output& logits,
                                    const Input& labels, Reduction reduction) {
  const Scope in =
      graph::ScopeAccess::construct_scope(s, "sparse_softmax_cross_entropy");
  const Output indices = in.resolve(labels, DataType::kInt64, "labels");
  const Rows rows(in, logits);
  const Output losses = ops::sparse_softmax_cross_entropy(
                            in, rows.matrix(), rows.as_vector(indices))
                            .loss;
  return reduced(in, rows.back(losses), reduction);
}

// Uses selects instead of max(x, 0) and |x|, whose slopes at 0 would not add up
// to that of the loss, 1/2 - z.
Output sigmoid_cross_entropy(const Scope& s, const Output& logits,
                             const Input& labels, Reduction reduction) {
  const auto [in, x, z] = Pair(s, "sigmoid_cross_entropy", logits, labels);
  const Output is_high = ops::greater_equal(in, x, 0);
  const Output high = ops::select(in, is_high, x, 0);
  const Output below = ops::select(in, is_high, ops::neg(in, x), x);
  const Output rest = ops::log1p(in, ops::exp(in, below));
  const Output losses =
      ops::add(in, ops::sub(in, high, ops::mul(in, x, z)), rest);
  return reduced(in, losses, reduction);
}

// With c = e within [-delta, delta], both cases are c (e - c / 2).
Output huber(const Scope& s, const Output& predictions, const Input& labels,
             double delta, Reduction reduction) {
  const Pair p(s, "huber", predictions, labels);
  if (!(delta > 0))
    p.in.fail(invalid_argument("[huber] \"{}\": delta {} is not positive",
                               graph::ScopeAccess::name(p.in), delta));
  const Output error = ops::sub(p.in, p.x, p.z);
  const Output near = ops::clip_by_value(p.in, error, -delta, delta);
  const Output far = ops::sub(p.in, error, ops::mul(p.in, near, 0.5));
  return reduced(p.in, ops::mul(p.in, near, far), reduction);
}

Output hinge(const Scope& s, const Output& logits, const Input& labels,
             Reduction reduction) {
  const Pair p(s, "hinge", logits, labels);
  const Output sign = ops::sub(p.in, ops::mul(p.in, p.z, 2), 1);
  const Output margin = ops::sub(p.in, 1, ops::mul(p.in, p.x, sign));
  return reduced(p.in, ops::relu(p.in, margin), reduction);
}

}  // namespace tagflow::autodiff::losses
