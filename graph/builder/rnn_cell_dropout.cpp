// dropout_cell().
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/rnn_cell.h"

namespace tagflow::graph {

namespace {

// One probability, applied to tensors of `size` columns.
class Dropout {
 public:
  // `number` distinguishes the random ops of a cell.
  Dropout(const Scope& s, const char* what, const Input& keep, int64_t size,
          int number, const DropoutOptions& options, DataType dtype)
      : dtype_(dtype), seeds_(options.seeds) {
    if (keep.is_literal() && !check(s, what, keep)) return;
    if (keep.is_literal() && is_one(keep)) return;
    // With equal nonzero seeds all would drop the same values.
    if (seeds_.seed != 0 || seeds_.seed2 != 0) seeds_.seed2 += number;
    keep_ = s.resolve(keep, dtype, what);
    if (keep_.has_tensor() && keep_.dtype() != dtype)
      keep_ = ops::cast(s, keep_, dtype);
    if (options.variational)
      mask_ =
          mask_of(s, ops::random_uniform(s, {int64_t{1}, size}, dtype, seeds_));
  }

  Output operator()(const Scope& in, const Output& x) const {
    if (!keep_.valid()) return x;
    const Output mask =
        mask_.valid() ? mask_
                      : mask_of(in, ops::random_uniform(in, ops::shape(in, x),
                                                        dtype_, seeds_));
    return ops::mul(in, ops::real_div(in, x, keep_), mask);
  }

 private:
  static bool is_one(const Input& keep) {
    return keep.is_weak() && keep.literal().dtype() == DataType::kDouble &&
           keep.literal().rank() == 0 &&
           keep.literal().scalar_value<double>() == 1;
  }
  static bool check(const Scope& s, const char* what, const Input& keep) {
    Result<Tensor> value =
        keep.is_weak() ? weak_to_dtype(keep.literal(), DataType::kDouble)
                       : Result<Tensor>(keep.literal());
    if (value.ok() && value->rank() == 0 &&
        (value->dtype() != DataType::kDouble ||
         (value->scalar_value<double>() > 0 &&
          value->scalar_value<double>() <= 1)))
      return true;
    s.fail(invalid_argument(
        "[dropout_cell] {} is the probability of keeping a value, above 0 and "
        "at most 1, not {}",
        what, keep.literal().describe()));
    return false;
  }
  // 1 with the probability, otherwise 0; `drawn` has numbers in [0, 1).
  Output mask_of(const Scope& s, const Output& drawn) const {
    return ops::floor(s, ops::add(s, drawn, keep_));
  }

  DataType dtype_;
  ops::Seeds seeds_;
  Output keep_;  // invalid: no dropout
  Output mask_;  // for all steps
};

class DropoutCell final : public RnnCell {
 public:
  DropoutCell(RnnCellPtr cell, DropoutOptions options)
      : cell_(std::move(cell)), o_(std::move(options)) {}

  std::vector<StatePart> state() const override {
    return cell_ == nullptr ? std::vector<StatePart>() : cell_->state();
  }
  int64_t output_size() const override {
    return cell_ == nullptr ? 0 : cell_->output_size();
  }
  CellFn build(const Scope& s, const VariableScope& vars, int64_t input_size,
               DataType dtype) const override {
    if (cell_ == nullptr)
      s.fail(invalid_argument("[dropout_cell] there is no cell"));
    if (!s.ok()) return {};
    const CellFn step = cell_->build(s, vars, input_size, dtype);
    int number = 0;
    const auto make = [&](const char* what, const Input& keep, int64_t size) {
      return Dropout(s, what, keep, size, number++, o_, dtype);
    };
    const Dropout input = make("input_keep", o_.input_keep, input_size);
    const Dropout output = make("output_keep", o_.output_keep, output_size());
    std::vector<Dropout> state_parts;
    for (const StatePart& part : state())
      state_parts.push_back(make("state_keep",
                                 part.is_memory ? Input(1.0) : o_.state_keep,
                                 part.size));
    if (!s.ok()) return {};
    return [=](const Scope& in, const Output& x,
               const Outputs& state) -> CellStep {
      const CellStep result = step(in, input(in, x), state);
      CellStep all{output(in, result.output), {}};
      for (size_t i = 0; i < state_parts.size(); ++i)
        all.state.push_back(state_parts[i](in, result.state[i]));
      return all;
    };
  }

 private:
  const RnnCellPtr cell_;
  const DropoutOptions o_;
};

}  // namespace

RnnCellPtr dropout_cell(RnnCellPtr cell, DropoutOptions options) {
  return std::make_shared<DropoutCell>(std::move(cell), std::move(options));
}

}  // namespace tagflow::graph
