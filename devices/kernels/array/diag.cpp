// Diag, DiagPart, MatrixDiag, MatrixDiagPart, MatrixSetDiag and their V2 and V3
// twins, MatrixBandPart.
#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

// Diagonals lower..upper of matrices; 0 is the main one, those above it are
// positive. Packed, they are rows of `width` elements from upper down to
// lower, the shorter ones aligned to the left or to the right.
struct Band {
  int64_t lower = 0, upper = 0;
  int64_t rows = 0, cols = 0;
  int64_t width = 0;

  int64_t count() const { return upper - lower + 1; }
  int64_t length(int64_t diagonal) const {
    return std::min(rows + std::min<int64_t>(diagonal, 0),
                    cols - std::max<int64_t>(diagonal, 0));
  }
};

// Reads the attribute "align"; V2 and V1 align to the left.
class Alignment {
 public:
  explicit Alignment(const KernelInfo& info) {
    const auto align = attr_of<std::string>(info, "align");
    right_above_ = align.starts_with("RIGHT");
    right_below_ = align.ends_with("RIGHT");
  }
  // The offset in its row where the elements of a diagonal start.
  int64_t offset(const Band& band, int64_t diagonal) const {
    const bool left =
        (diagonal >= 0 && !right_above_) || (diagonal <= 0 && !right_below_);
    return left ? 0 : band.width - band.length(diagonal);
  }

 private:
  bool right_above_, right_below_;
};

// Copies all diagonals from `batch` matrices to packed rows, or back.
void copy_diagonals(const KernelContext& context, const Band& band,
                    const Alignment& alignment, int64_t batch, bool to_matrix,
                    const Tensor& from, Tensor& to) {
  if (from.num_elements() == 0 || to.num_elements() == 0) return;
  const int64_t last = std::max(band.lower, -band.rows);
  for (int64_t d = std::min(band.upper, band.cols); d >= last; --d) {
    if (band.length(d) <= 0) continue;
    StridedCopy copy;
    copy.from = std::max<int64_t>(d, 0) + std::max<int64_t>(-d, 0) * band.cols;
    copy.to = (band.upper - d) * band.width + alignment.offset(band, d);
    copy.add(batch, band.rows * band.cols, band.count() * band.width);
    copy.add(band.length(d), band.cols + 1, 1);
    if (to_matrix) copy.reverse();
    strided_copy(context, std::move(copy), from, to);
  }
}

// Reads one or two integers, lower <= upper, near enough to 0 that sums with
// dimensions cannot overflow.
Status read_band(const KernelContext& context, int input, Band& band) {
  const Tensor& k = context.input(input);
  if (k.rank() > 1 || k.num_elements() < 1 || k.num_elements() > 2)
    return context.fail("k must be a scalar or a vector of one or two, is {}",
                        k.describe());
  band.lower = index_at(k, 0);
  band.upper = index_at(k, k.num_elements() - 1);
  if (band.lower > band.upper)
    return context.fail("k[0] = {} is over k[1] = {}", band.lower, band.upper);
  return {};
}

// The matrices of an input [..., rows, cols]; checks that the band is inside.
Status fit_band(const KernelContext& context, const Tensor& matrices,
                Band& band) {
  if (matrices.rank() < 2)
    return context.fail("the input must be at least a matrix, is {}",
                        matrices.describe());
  band.rows = matrices.dim(matrices.rank() - 2);
  band.cols = matrices.dim(matrices.rank() - 1);
  for (int64_t d : {band.lower, band.upper})
    if (d != 0 && (d <= -band.rows || d >= band.cols))
      return context.fail("diagonal {} is outside {}", d, matrices.describe());
  band.width = std::min(band.rows + std::min<int64_t>(band.upper, 0),
                        band.cols - std::max<int64_t>(band.lower, 0));
  return {};
}

// The shape of packed diagonals of matrices of this shape.
Shape packed_shape(const Shape& matrices, const Band& band) {
  Shape shape(matrices.dims().first(size_t(matrices.rank()) - 2));
  if (band.count() > 1) shape.add_dim(band.count());
  shape.add_dim(band.width);
  return shape;
}

class MatrixDiagPartKernel : public BytesKernel {
 public:
  explicit MatrixDiagPartKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs), alignment_(info) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    Band band;
    const bool has_band = context.num_inputs() == 3;
    if (has_band) {
      TAGFLOW_RETURN_IF_ERROR(read_band(context, 1, band));
      if (context.input(2).num_elements() != 1)
        return context.fail("padding_value must be a scalar, is {}",
                            context.input(2).describe());
    }
    TAGFLOW_RETURN_IF_ERROR(fit_band(context, input, band));
    const Shape whole = input.shape();
    TAGFLOW_ASSIGN(Tensor * output,
                   context.allocate_output(0, packed_shape(whole, band)));
    if (output->num_elements() == 0) return {};
    if (has_band && band.count() > 1)
      fill_elements(context, context.input(2), *output);
    copy_diagonals(context, band, alignment_,
                   product(whole.dims(), 0, whole.rank() - 2), false, input,
                   *output);
    return {};
  }

 private:
  Alignment alignment_;
};

class MatrixSetDiagKernel : public BytesKernel {
 public:
  explicit MatrixSetDiagKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs), alignment_(info) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    const Tensor& diagonal = context.input(1);
    Band band;
    if (context.num_inputs() == 3)
      TAGFLOW_RETURN_IF_ERROR(read_band(context, 2, band));
    TAGFLOW_RETURN_IF_ERROR(fit_band(context, input, band));
    const Shape shape = input.shape();
    const Shape wanted = packed_shape(shape, band);
    if (!(diagonal.shape() == wanted))
      return context.fail("the diagonals of {} are {}, got {}",
                          input.describe(), wanted.to_string(),
                          diagonal.describe());
    TAGFLOW_ASSIGN(Tensor * output, input_as_output(context));
    copy_diagonals(context, band, alignment_,
                   product(shape.dims(), 0, shape.rank() - 2), true, diagonal,
                   *output);
    return {};
  }

 private:
  Alignment alignment_;
};

class MatrixDiagKernel : public BytesKernel {
 public:
  explicit MatrixDiagKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs), alignment_(info) {}

  Status compute(KernelContext& context) const override {
    const Tensor& diagonal = context.input(0);
    if (diagonal.rank() < 1)
      return context.fail("diagonal must be at least a vector, is {}",
                          diagonal.describe());
    Band band;
    const bool has_band = context.num_inputs() == 5;
    if (has_band) TAGFLOW_RETURN_IF_ERROR(read_band(context, 1, band));
    band.width = diagonal.dim(diagonal.rank() - 1);
    band.rows = band.cols = band.width;
    const int batch_rank = diagonal.rank() - (band.count() > 1 ? 2 : 1);
    if (batch_rank < 0 ||
        (band.count() > 1 && diagonal.dim(batch_rank) != band.count()))
      return context.fail("diagonals {} to {} do not fit {}", band.lower,
                          band.upper, diagonal.describe());
    if (has_band) TAGFLOW_RETURN_IF_ERROR(read_size(context, band));

    const Shape packed = diagonal.shape();
    Shape shape(packed.dims().first(size_t(batch_rank)));
    shape.add_dim(band.rows);
    shape.add_dim(band.cols);
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    if (has_band) {
      fill_elements(context, context.input(4), *output);
    } else {
      zero_elements(context, *output);
    }
    copy_diagonals(context, band, alignment_,
                   product(packed.dims(), 0, batch_rank), true, diagonal,
                   *output);
    return {};
  }

 private:
  // Inputs 2 and 3, the number of rows and columns; -1 means as few as the
  // diagonals need, and twice -1 a square.
  static Status read_size(const KernelContext& context, Band& band) {
    constexpr const char* kNames[] = {"num_rows", "num_cols", "padding_value"};
    for (int i = 2; i < 5; ++i)
      if (!context.input(i).is_scalar())
        return context.fail("{} must be a scalar, is {}", kNames[i - 2],
                            context.input(i).describe());
    TAGFLOW_ASSIGN(band.rows, index_scalar(context, 2, "num_rows"));
    TAGFLOW_ASSIGN(band.cols, index_scalar(context, 3, "num_cols"));
    int64_t rows = 0, cols = 0;
    if (__builtin_sub_overflow(band.width, std::min<int64_t>(band.upper, 0),
                               &rows) ||
        __builtin_add_overflow(band.width, std::max<int64_t>(band.lower, 0),
                               &cols))
      return context.fail("diagonals {} to {} of {} are too long", band.lower,
                          band.upper, context.input(0).describe());
    if (band.rows == -1 && band.cols == -1) {
      band.rows = band.cols = std::max(rows, cols);
    } else if (band.rows == -1) {
      band.rows = rows;
    } else if (band.cols == -1) {
      band.cols = cols;
    }
    if (band.rows < rows || band.cols < cols ||
        (band.rows != rows && band.cols != cols))
      return context.fail(
          "{} rows and {} columns do not fit diagonals {} to {} of {}",
          band.rows, band.cols, band.lower, band.upper,
          context.input(0).describe());
    return {};
  }

  Alignment alignment_;
};

// Keeps the main diagonal, and so many above and below; the rest becomes zeros;
// negative numbers mean all.
class MatrixBandPartKernel : public BytesKernel {
 public:
  explicit MatrixBandPartKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.3) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (input.rank() < 2)
      return context.fail("the input must be at least a matrix, is {}",
                          input.describe());
    const int64_t rows = input.dim(input.rank() - 2);
    const int64_t cols = input.dim(input.rank() - 1);
    for (int i : {1, 2})
      if (!context.input(i).is_scalar())
        return context.fail("{} must be a scalar, got {}",
                            i == 1 ? "num_lower" : "num_upper",
                            context.input(i).describe());
    TAGFLOW_ASSIGN(int64_t lower, index_scalar(context, 1, "num_lower"));
    TAGFLOW_ASSIGN(int64_t upper, index_scalar(context, 2, "num_upper"));
    if (lower > rows || upper > cols)
      return context.fail("a band of {} below and {} above is over {}", lower,
                          upper, input.describe());
    if (lower < 0) lower = rows;
    if (upper < 0) upper = cols;
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    if (output->num_elements() == 0) return {};
    zero_elements(context, *output);
    for (int64_t i = 0; i < input.num_elements() / cols; ++i) {
      context.check_cancelled();
      const int64_t row = i % rows;
      const int64_t begin = std::max<int64_t>(row - lower, 0);
      const int64_t end = std::min(row + upper + 1, cols);
      copy_elements(input, i * cols + begin, *output, i * cols + begin,
                    end - begin);
    }
    return {};
  }
};

class DiagKernel : public BytesKernel {
 public:
  explicit DiagKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& diagonal = context.input(0);
    if (diagonal.rank() < 1)
      return context.fail("diagonal must be at least a vector, is {}",
                          diagonal.describe());
    Shape shape = diagonal.shape();
    for (int i = 0; i < diagonal.rank(); ++i) shape.add_dim(diagonal.dim(i));
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    zero_elements(context, *output);
    StridedCopy copy;
    copy.add(diagonal.num_elements(), 1, diagonal.num_elements() + 1);
    strided_copy(context, std::move(copy), diagonal, *output);
    return {};
  }
};

class DiagPartKernel : public BytesKernel {
 public:
  explicit DiagPartKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    const int half = input.rank() / 2;
    bool fits = input.rank() > 0 && input.rank() % 2 == 0;
    Shape shape;
    for (int i = 0; fits && i < half; ++i) {
      fits = input.dim(i) == input.dim(half + i);
      shape.add_dim(input.dim(i));
    }
    if (!fits)
      return context.fail("the two halves of the shape of {} must agree",
                          input.describe());
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    StridedCopy copy;
    copy.add(output->num_elements(), output->num_elements() + 1, 1);
    strided_copy(context, std::move(copy), input, *output);
    return {};
  }
};

}  // namespace

void register_array_diag_kernels(KernelRegistry& registry) {
  for (const char* op :
       {"MatrixDiag", "BatchMatrixDiag", "MatrixDiagV2", "MatrixDiagV3"})
    registry.add<MatrixDiagKernel>(op);
  for (const char* op : {"MatrixDiagPart", "BatchMatrixDiagPart",
                         "MatrixDiagPartV2", "MatrixDiagPartV3"})
    registry.add<MatrixDiagPartKernel>(op);
  for (const char* op : {"MatrixSetDiag", "BatchMatrixSetDiag",
                         "MatrixSetDiagV2", "MatrixSetDiagV3"})
    registry.add<MatrixSetDiagKernel>(op);
  registry.add<MatrixBandPartKernel>("MatrixBandPart");
  registry.add<MatrixBandPartKernel>("BatchMatrixBandPart");
  registry.add<DiagKernel>("Diag");
  registry.add<DiagPartKernel>("DiagPart");
}

}  // namespace tagflow::devices
