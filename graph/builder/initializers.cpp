#include "graph/builder/initializers.h"

#include <Eigen/QR>
#include <cmath>
#include <random>

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/scope_access.h"

namespace tagflow::graph::initializers {

namespace {

// Of a normal distribution truncated at two standard deviations.
constexpr double kTruncatedDeviation = 0.87962566103423978;

Output dims_of(const Scope& s, const Shape& shape) {
  return s.constant(Tensor::of<int64_t>({shape.rank()}, shape.dims()), "shape");
}

// The part's slice of a value of the whole.
Output slice_of(const Scope& s, const Output& whole, const InitialPart& part) {
  const Tensor begin =
      Tensor::of<int64_t>({part.shape.rank()}, std::span(part.offset));
  return ops::slice(s, whole, begin, dims_of(s, part.shape));
}

bool same_shape(const Scope& s, const PartialShape& shape,
                const InitialPart& part) {
  if (shape.compatible(part.whole)) return true;
  s.fail(invalid_argument(
      "[initializers] \"{}\": the value is of shape {}, the variable of {}",
      ScopeAccess::name(s), shape.to_string(), part.whole.to_string()));
  return false;
}

Initializer filled(double number) {
  return [number](const Scope& s, const InitialPart& part) {
    Input value = number;
    if (part.dtype == DataType::kBool) value = number != 0;
    if (part.dtype == DataType::kString) value = std::string();
    const Output scalar = s.resolve(value, part.dtype, "value");
    return Output(ops::fill(s, dims_of(s, part.shape), scalar));
  };
}

// scale * numbers + shift, with random numbers from `op`.
Output drawn(const Scope& s, const char* name, const char* op,
             const InitialPart& part, double scale, double shift,
             ops::Seeds seeds) {
  if (!is_floating(part.dtype)) {
    s.fail(invalid_argument(
        "[initializers] \"{}\": {} is for floating-point types, not {}",
        ScopeAccess::name(s), name, dtype_name(part.dtype)));
    return {};
  }
  Output value = s.op(
      op, {dims_of(s, part.shape)},
      {{"dtype", part.dtype}, {"seed", seeds.seed}, {"seed2", seeds.seed2}});
  if (scale != 1) value = ops::mul(s, value, scale);
  if (shift != 0) value = ops::add(s, value, shift);
  return value;
}

struct Fans {
  double in = 1, out = 1;
};

Fans fans_of(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {};
  if (rank == 1) return {double(shape.dim(0)), double(shape.dim(0))};
  double field = 1;  // positions of a filter
  for (int i = 0; i < rank - 2; ++i) field *= double(shape.dim(i));
  return {double(shape.dim(rank - 2)) * field,
          double(shape.dim(rank - 1)) * field};
}

double fan_of(const Shape& shape, VarianceScaling::Fan fan) {
  const Fans fans = fans_of(shape);
  switch (fan) {
    case VarianceScaling::Fan::kIn:
      return fans.in;
    case VarianceScaling::Fan::kOut:
      return fans.out;
    case VarianceScaling::Fan::kAverage:
      return (fans.in + fans.out) / 2;
  }
  return fans.in;
}

// The Q of a random matrix, with signs that make its distribution uniform.
Eigen::MatrixXd orthogonal_matrix(int64_t rows, int64_t columns,
                                  ops::Seeds seeds) {
  std::seed_seq sequence{uint32_t(seeds.seed),  uint32_t(seeds.seed >> 32),
                         uint32_t(seeds.seed2), uint32_t(seeds.seed2 >> 32),
                         uint32_t(rows),        uint32_t(columns)};
  std::mt19937_64 engine(sequence);
  std::normal_distribution<double> normal;
  const int64_t tall = std::max(rows, columns), wide = std::min(rows, columns);
  const Eigen::MatrixXd random = Eigen::MatrixXd::NullaryExpr(
      tall, wide, [&](Eigen::Index) { return normal(engine); });
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(random);
  Eigen::MatrixXd q = qr.householderQ() * Eigen::MatrixXd::Identity(tall, wide);
  for (int64_t i = 0; i < wide; ++i)
    if (qr.matrixQR()(i, i) < 0) q.col(i) = -q.col(i);
  if (rows < columns) return q.transpose();
  return q;
}

Result<Tensor> orthogonal_value(const InitialPart& part, double gain,
                                ops::Seeds seeds) {
  const int rank = part.whole.rank();
  if (!is_floating(part.dtype) || part.shape != part.whole || rank < 2)
    return invalid_argument(
        "orthogonal is for whole variables of floating-point "
        "types and two or more dimensions, not {}{}{}",
        part.shape == part.whole ? "" : "a part of ", dtype_name(part.dtype),
        part.whole.to_string());
  const int64_t columns = part.whole.dim(rank - 1);
  const int64_t rows = columns == 0 ? 0 : part.whole.num_elements() / columns;
  Tensor wide = Tensor::make(DataType::kDouble, part.whole);
  if (rows > 0) {
    using Matrix = Eigen::Matrix<double, -1, -1, Eigen::RowMajor>;
    Eigen::Map<Matrix>(wide.mutable_data<double>(), rows, columns) =
        gain * orthogonal_matrix(rows, columns, seeds);
  }
  return weak_to_dtype(wide, part.dtype);
}

}  // namespace

Initializer zeros() { return filled(0); }
Initializer ones() {
  return [](const Scope& s, const InitialPart& part) {
    if (part.dtype != DataType::kString) return filled(1)(s, part);
    s.fail(invalid_argument("[initializers] \"{}\": strings cannot be one",
                            ScopeAccess::name(s)));
    return Output();
  };
}

Initializer constant(Input value) {
  return [value = std::move(value)](const Scope& s, const InitialPart& part) {
    const Output whole = s.resolve(value, part.dtype, "value");
    if (!whole.valid()) return Output();
    if (whole.shape() == PartialShape::scalar() && part.whole.rank() > 0)
      return Output(ops::fill(s, dims_of(s, part.shape), whole));
    if (!same_shape(s, whole.shape(), part)) return Output();
    return part.shape == part.whole ? whole : slice_of(s, whole, part);
  };
}

Initializer random_uniform(double low, double high, ops::Seeds seeds) {
  return [=](const Scope& s, const InitialPart& part) {
    return drawn(s, "random_uniform", "RandomUniform", part, high - low, low,
                 seeds);
  };
}

Initializer random_normal(double mean, double stddev, ops::Seeds seeds) {
  return [=](const Scope& s, const InitialPart& part) {
    return drawn(s, "random_normal", "RandomStandardNormal", part, stddev, mean,
                 seeds);
  };
}

Initializer truncated_normal(double mean, double stddev, ops::Seeds seeds) {
  return [=](const Scope& s, const InitialPart& part) {
    return drawn(s, "truncated_normal", "TruncatedNormal", part, stddev, mean,
                 seeds);
  };
}

Initializer variance_scaling(VarianceScaling options) {
  return [=](const Scope& s, const InitialPart& part) {
    if (!(options.scale > 0)) {
      s.fail(invalid_argument(
          "[initializers] \"{}\": the scale {} is not positive",
          ScopeAccess::name(s), options.scale));
      return Output();
    }
    const double variance =
        options.scale / std::max(1.0, fan_of(part.whole, options.fan));
    const double deviation = std::sqrt(variance);
    switch (options.distribution) {
      case VarianceScaling::Draw::kUniform: {
        const double limit = std::sqrt(3 * variance);
        return random_uniform(-limit, limit, options.seeds)(s, part);
      }
      case VarianceScaling::Draw::kNormal:
        return random_normal(0, deviation, options.seeds)(s, part);
      case VarianceScaling::Draw::kTruncatedNormal:
        break;
    }
    return truncated_normal(0, deviation / kTruncatedDeviation, options.seeds)(
        s, part);
  };
}

Initializer glorot_uniform(ops::Seeds seeds) {
  return variance_scaling({1, VarianceScaling::Fan::kAverage,
                           VarianceScaling::Draw::kUniform, seeds});
}
Initializer glorot_normal(ops::Seeds seeds) {
  return variance_scaling({1, VarianceScaling::Fan::kAverage,
                           VarianceScaling::Draw::kTruncatedNormal, seeds});
}
Initializer he_uniform(ops::Seeds seeds) {
  return variance_scaling(
      {2, VarianceScaling::Fan::kIn, VarianceScaling::Draw::kUniform, seeds});
}
Initializer he_normal(ops::Seeds seeds) {
  return variance_scaling({2, VarianceScaling::Fan::kIn,
                           VarianceScaling::Draw::kTruncatedNormal, seeds});
}

Initializer orthogonal(double gain, ops::Seeds seeds) {
  return [=](const Scope& s, const InitialPart& part) {
    if (!s.ok()) return Output();
    Result<Tensor> value = orthogonal_value(part, gain, seeds);
    if (value.ok()) return s.constant(*std::move(value), "value");
    s.fail(std::move(value).status().with_prefix(
        fmt::format("[initializers] \"{}\": ", ScopeAccess::name(s))));
    return Output();
  };
}

}  // namespace tagflow::graph::initializers
