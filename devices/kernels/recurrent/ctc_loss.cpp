// CTCLoss: the probability of labels, summed over all ways to say each of them
// for some steps, with blanks in between, and its gradient.
//
// The *symbols* of a row are its labels with a blank before, between and after
// them. Forward, `alpha[t][u]` is the logarithm of the probability to have said
// the symbols up to u at the end of step t, the last one in this step.
// Backward, `beta[t][u]` is that of saying the others after step t. So alpha +
// beta is that of all ways through u at t, and the sum of these at any t is
// that of the labels. A step leads from a symbol to itself, to the next one, or
// past a blank to the next label, unless that is the same one: this way needs
// the blank. If labels are not merged, a label lasts one step, and the same
// label may follow at once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/recurrent/ctc.h"

namespace tagflow::devices {

namespace {

using Labels = std::vector<int32_t>;

struct CtcOptions {
  bool collapses_labels = false;
  bool merges_repeated = true;
  bool ignores_longer_labels = false;
};

// The symbols of a row: symbol 2i + 1 is label i, the others are blanks.
struct CtcSymbols {
  std::span<const int32_t> labels;
  int32_t blank = 0;
  bool merges = true;

  int64_t size() const { return 2 * int64_t(labels.size()) + 1; }
  int32_t operator[](int64_t u) const {
    return u % 2 == 0 ? blank : labels[size_t(u / 2)];
  }
  bool may_stay(int64_t u) const { return merges || u % 2 == 0; }
  // Whether a step leads from u - 2 to u. REQUIRES: 2 <= u
  bool may_skip_to(int64_t u) const {
    return u % 2 == 1 && !(merges && (*this)[u] == (*this)[u - 2]);
  }
};

// One row of the batch. `scores` has the logarithms of the classes' shares in
// each step, `stride` apart, and becomes the gradient.
template <class T>
class CtcRow {
 public:
  CtcRow(const CtcSymbols& symbols, int64_t steps, int64_t classes, T* scores,
         int64_t stride, T* alpha)
      : symbols_(symbols),
        steps_(steps),
        classes_(classes),
        scores_(scores),
        stride_(stride),
        alpha_(alpha),
        size_(symbols.size()) {}

  // As many elements as `alpha` needs.
  static int64_t needed(int64_t symbols, int64_t steps) {
    return symbols * (steps + 2);
  }

  // The loss; infinite if there is no way.
  T compute(const KernelContext& context) {
    for (int64_t t = 0; t < steps_; ++t) {
      context.check_cancelled();
      go_forward(t);
    }
    const T* const last = alpha_ + (steps_ - 1) * size_;
    whole_ = size_ == 1 ? last[0] : log_add(last[size_ - 1], last[size_ - 2]);
    T* beta = alpha_ + steps_ * size_;
    T* before = beta + size_;
    std::fill_n(beta, size_, kNone);
    std::fill_n(beta + std::max<int64_t>(size_ - 2, 0),
                std::min<int64_t>(size_, 2), T(0));
    for (int64_t t = steps_ - 1; t >= 0; --t) {
      context.check_cancelled();
      if (t > 0) go_backward(t, beta, before);
      differentiate(t, beta);
      std::swap(beta, before);
    }
    return -whole_;
  }

 private:
  static constexpr T kNone = -std::numeric_limits<T>::infinity();

  T score(int64_t t, int64_t u) const {
    return scores_[t * stride_ + symbols_[u]];
  }

  void go_forward(int64_t t) {
    T* const now = alpha_ + t * size_;
    if (t == 0) {
      std::fill_n(now, size_, kNone);
      for (int64_t u = 0; u < std::min<int64_t>(size_, 2); ++u)
        now[u] = score(0, u);
      return;
    }
    const T* const before = now - size_;
    for (int64_t u = 0; u < size_; ++u) {
      T sum = symbols_.may_stay(u) ? before[u] : kNone;
      if (u > 0) sum = log_add(sum, before[u - 1]);
      if (u > 1 && symbols_.may_skip_to(u)) sum = log_add(sum, before[u - 2]);
      now[u] = sum + score(t, u);
    }
  }

  // From beta of step t that of the step before.
  void go_backward(int64_t t, const T* beta, T* before) const {
    for (int64_t u = 0; u < size_; ++u) {
      T sum = symbols_.may_stay(u) ? beta[u] + score(t, u) : kNone;
      if (u + 1 < size_) sum = log_add(sum, beta[u + 1] + score(t, u + 1));
      if (u + 2 < size_ && symbols_.may_skip_to(u + 2))
        sum = log_add(sum, beta[u + 2] + score(t, u + 2));
      before[u] = sum;
    }
  }

  // The share of each class, without the part of the ways through it. If there
  // is no way, nothing is subtracted, as in TensorFlow.
  void differentiate(int64_t t, const T* beta) {
    T* const gradient = scores_ + t * stride_;
    for (int64_t c = 0; c < classes_; ++c) gradient[c] = std::exp(gradient[c]);
    if (whole_ == kNone) return;
    const T* const alpha = alpha_ + t * size_;
    for (int64_t u = 0; u < size_; ++u)
      gradient[symbols_[u]] -= std::exp(alpha[u] + beta[u] - whole_);
  }

  const CtcSymbols symbols_;
  const int64_t steps_, classes_;
  T* const scores_;
  const int64_t stride_;
  T* const alpha_;
  const int64_t size_;
  T whole_ = 0;  // the logarithm of the labels' probability
};

// The labels by row, as they are given.
Result<std::vector<Labels>> given_labels(const KernelContext& context,
                                         int64_t batch) {
  const Tensor& indices = context.input(1);
  const Tensor& values = context.input(2);
  if (indices.rank() != 2 || indices.dim(1) != 2 || values.rank() != 1 ||
      values.dim(0) != indices.dim(0))
    return context.fail(
        "labels need indices [n, 2] and values [n], not {} and {}",
        indices.describe(), values.describe());
  std::vector<Labels> labels(static_cast<size_t>(batch));
  const auto* at = indices.data<int64_t>();
  for (int64_t i = 0; i < values.dim(0); ++i, at += 2) {
    context.check_cancelled();
    if (at[0] < 0 || at[0] >= batch || at[1] < 0)
      return context.fail(
          "labels_indices[{}] = [{}, {}] is in none of the {} "
          "rows of the batch",
          i, at[0], at[1], batch);
    if (i > 0 && (at[0] < at[-2] || (at[0] == at[-2] && at[1] <= at[-1])))
      return context.fail("labels_indices[{}] = [{}, {}] is not after [{}, {}]",
                          i, at[0], at[1], at[-2], at[-1]);
    labels[size_t(at[0])].push_back(values.data<int32_t>()[i]);
  }
  return labels;
}

template <class T, bool kBlankIsFirst>
class CtcLossKernel final : public Kernel {
 public:
  explicit CtcLossKernel(const KernelInfo& info)
      : options_{attr_of<bool>(info, "preprocess_collapse_repeated"),
                 attr_of<bool>(info, "ctc_merge_repeated"),
                 attr_of<bool>(info, "ignore_longer_outputs_than_inputs")} {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const CtcSizes sizes, ctc_sizes(context, 3, false));
    if (sizes.batch == 0) return context.fail("the batch is empty");
    TAGFLOW_ASSIGN(auto labels, given_labels(context, sizes.batch));
    std::vector<int64_t> begins(labels.size());
    int64_t needed = 0;
    for (int64_t row = 0; row < sizes.batch; ++row) {
      TAGFLOW_ASSIGN(const bool counts,
                     prepare(context, sizes, row, labels[size_t(row)]));
      begins[size_t(row)] = counts ? needed : -1;
      if (counts)
        needed += CtcRow<T>::needed(2 * int64_t(labels[size_t(row)].size()) + 1,
                                    sizes.lengths[row]);
    }
    TAGFLOW_ASSIGN(Tensor memory,
                   context.allocate_temp(kDataTypeOf<T>, Shape{needed}));
    TAGFLOW_ASSIGN(Tensor * loss,
                   context.allocate_output(0, Shape{sizes.batch}));
    TAGFLOW_ASSIGN(Tensor * gradient,
                   context.allocate_output(1, context.input(0).shape()));
    const double unit = double(sizes.steps) * (12 * double(sizes.classes) + 60);
    T* const alphas = memory.mutable_data<T>();
    T* const losses = loss->mutable_data<T>();
    T* const scores = gradient->mutable_data<T>();
    context.parallel_for(sizes.batch, unit, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = begins[size_t(row)];
        set_scores(context, sizes, row, at >= 0, scores);
        losses[row] = 0;
        if (at < 0) continue;
        const CtcSymbols symbols{labels[size_t(row)], blank(sizes),
                                 options_.merges_repeated};
        losses[row] =
            CtcRow<T>(symbols, sizes.lengths[row], sizes.classes,
                      scores + sizes.at(0, row), sizes.at(1, 0), alphas + at)
                .compute(context);
      }
    });
    return {};
  }

  double cost(const KernelContext& context) const override {
    return 500 + 15 * double(context.input(0).num_elements());
  }

 private:
  static int32_t blank(const CtcSizes& sizes) {
    return kBlankIsFirst ? 0 : int32_t(sizes.classes - 1);
  }

  // Checks the labels of a row, and leaves those that count. Whether the row
  // has a loss.
  Result<bool> prepare(const KernelContext& context, const CtcSizes& sizes,
                       int64_t row, Labels& labels) const {
    if (labels.empty())
      return context.fail("row {} of the batch has no labels", row);
    const int64_t length = sizes.lengths[row];
    const bool is_longer = int64_t(labels.size()) > length;
    if (is_longer && !options_.ignores_longer_labels)
      return context.fail(
          "row {} of the batch has {} labels, but {} steps: "
          "ignore_longer_outputs_than_inputs would leave it out",
          row, labels.size(), length);
    if (options_.collapses_labels)
      labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    TAGFLOW_RETURN_IF_ERROR(check_labels(context, sizes, row, labels));
    return length > 0 && !is_longer;
  }

  // Blanks, and what is beyond them, may follow the labels, and do not count.
  static Status check_labels(const KernelContext& context,
                             const CtcSizes& sizes, int64_t row,
                             Labels& labels) {
    const int64_t first = kBlankIsFirst ? 1 : 0;
    const int64_t end = kBlankIsFirst ? sizes.classes : sizes.classes - 1;
    const auto is_label = [&](int32_t label) { return label < end; };
    const auto last = kBlankIsFirst
                          ? labels.end()
                          : std::ranges::find_if_not(labels, is_label);
    if (std::any_of(last, labels.end(), is_label))
      return context.fail(
          "row {} of the batch has labels after a blank, which is {}", row,
          end);
    labels.erase(last, labels.end());
    for (const int32_t label : labels)
      if (label < first || label >= end)
        return context.fail(
            "row {} of the batch has label {}, outside [{}, {})", row, label,
            first, end);
    return {};
  }

  // The logarithms of the classes' shares; zeros past the row's length.
  static void set_scores(const KernelContext& context, const CtcSizes& sizes,
                         int64_t row, bool counts, T* scores) {
    const T* const logits = context.input(0).data<T>();
    for (int64_t t = 0; t < sizes.steps; ++t) {
      const int64_t at = sizes.at(t, row);
      if (!counts || t >= sizes.lengths[row]) {
        std::fill_n(scores + at, sizes.classes, T(0));
        continue;
      }
      const T sum = log_sum(logits + at, sizes.classes);
      for (int64_t c = at; c < at + sizes.classes; ++c)
        scores[c] = logits[c] - sum;
    }
  }

  const CtcOptions options_;
};

}  // namespace

void register_recurrent_ctc_loss_kernels(KernelRegistry& registry) {
  registry.add<CtcLossKernel<float, false>>("CTCLoss",
                                            {{"T", {DataType::kFloat}}});
  registry.add<CtcLossKernel<double, false>>("CTCLoss",
                                             {{"T", {DataType::kDouble}}});
  registry.add<CtcLossKernel<float, true>>("CTCLossV2");
}

}  // namespace tagflow::devices
