// raw_rnn().
#include <optional>

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/rnn_steps.h"
#include "graph/builder/scope_access.h"
#include "graph/builder/structured_control_flow.h"

namespace tagflow::graph {

namespace {

// One raw_rnn(): a loop whose variables are the time, flags of finished
// sequences, the input, the parts of the state, the variables of the function,
// and the flows of emitted tensors, in that order.
class RawRnn {
 public:
  RawRnn(const Scope& s, const RawRnnFn& fn, const RnnOptions& options)
      : scope_(s), name_(ScopeAccess::name(s)), fn_(fn), options_(options) {}

  Result<RawRnnResult> build(const VariableScope& vars, const RnnCell& cell) {
    if (!fn_)
      return invalid_argument("[raw_rnn] \"{}\": there is no function", name_);
    const Output zero = scope_.resolve(0, DataType::kInt32, "zero");
    one_ = scope_.resolve(1, DataType::kInt32, "one");
    const RawRnnNext first = fn_(scope_, zero, nullptr);
    TAGFLOW_RETURN_IF_ERROR(scope_.status());
    TAGFLOW_RETURN_IF_ERROR(take(first));
    cell_.emplace(scope_, "raw_rnn", vars.sub_scope(options_.scope), cell,
                  first.input.shape().dim(1), batch_, first.input.dtype());
    TAGFLOW_RETURN_IF_ERROR(scope_.status());
    TAGFLOW_RETURN_IF_ERROR(cell_->check_state("the first state", first.state));
    TAGFLOW_RETURN_IF_ERROR(make_arrays(first, cell));
    const Outputs last = structure::while_loop(
        scope_,
        [](const Scope& in, const Outputs& v) {
          return ops::logical_not(in, ops::reduce_all(in, v[1]));
        },
        [this](const Scope& in, const Outputs& v,
               const structure::AddVariable&) { return body(in, v); },
        leaves(zero, first.finished, first.input, first.state, first.loop_state,
               emitted_),
        {.parallel_iterations = options_.parallel_iterations});
    TAGFLOW_RETURN_IF_ERROR(scope_.status());
    RawRnnResult result;
    result.state = part(last, kState, states());
    result.loop_state = part(last, kState + states(), variables_);
    result.emitted = with_flows(last);
    return result;
  }

 private:
  static constexpr size_t kState = 3;  // the first of the state's variables
  size_t states() const { return cell_->state().size(); }

  static Outputs part(const Outputs& all, size_t first, size_t count) {
    Outputs some;
    for (size_t i = 0; i < count; ++i) some.push_back(all[first + i]);
    return some;
  }
  std::vector<TensorArray> with_flows(const Outputs& all) const {
    std::vector<TensorArray> arrays;
    for (size_t i = 0; i < emitted_.size(); ++i)
      arrays.push_back(
          emitted_[i].with_flow(all[kState + states() + variables_ + i]));
    return arrays;
  }

  // Takes the results of the first call.
  Status take(const RawRnnNext& first) {
    TAGFLOW_RETURN_IF_ERROR(check(first));
    const PartialShape shape = first.input.shape();
    if (!first.input.has_tensor() || !is_floating(first.input.dtype()) ||
        !shape.has_rank() || shape.rank() != 2 || !shape.dim_known(1))
      return invalid_argument(
          "[raw_rnn] \"{}\": the first input must be floating-point numbers of "
          "[batch, size], of a size that is known, not {}{} (\"{}\")",
          name_, dtype_name(first.input.dtype()), shape.to_string(),
          first.input.name());
    batch_ = rnn_size(scope_, first.input, 0);
    variables_ = first.loop_state.size();
    return {};
  }

  Status check(const RawRnnNext& next) const {
    const Output& finished = next.finished;
    const PartialShape shape = finished.shape();
    if (finished.dtype() == DataType::kBool && shape.has_rank() &&
        shape.rank() == 1)
      return {};
    return invalid_argument(
        "[raw_rnn] \"{}\": which sequences are finished must be bools of "
        "[batch], not {}{} (\"{}\")",
        name_, dtype_name(finished.dtype()), shape.to_string(),
        finished.name());
  }

  Status make_arrays(const RawRnnNext& first, const RnnCell& cell) {
    std::vector<std::pair<DataType, Shape>> emits;
    for (const Output& example : first.emit) {
      const auto shape = example.shape().to_shape();
      if (!example.has_tensor() || !shape)
        return invalid_argument(
            "[raw_rnn] \"{}\": the shape of emitted tensors must be known, "
            "that of \"{}\" is {}",
            name_, example.name(), example.shape().to_string());
      emits.emplace_back(remove_ref(example.dtype()), *shape);
    }
    emits_output_ = emits.empty();
    if (emits_output_)
      emits.emplace_back(first.input.dtype(), Shape{cell.output_size()});
    for (const auto& [dtype, shape] : emits) {
      PartialShape element{batch_.known};
      for (const int64_t dim : shape.dims()) element.add_dim(dim);
      emitted_.emplace_back(
          scope_.named("emitted"), 0, dtype,
          TensorArrayOptions{.element_shape = element, .dynamic_size = true});
      zeros_.push_back(rnn_zeros(scope_, batch_, shape, dtype));
    }
    return scope_.status();
  }

  std::vector<Leaf> leaves(const Output& time, const Output& finished,
                           const Output& input, const Outputs& state,
                           const Outputs& variables,
                           const std::vector<TensorArray>& emitted) const {
    std::vector<Leaf> all = {{"the time", time},
                             {"which sequences are finished", finished},
                             {"the input", input}};
    size_t i = 0;
    for (const Output& value : state)
      all.push_back({cell_->state()[i++].name, value});
    i = 0;
    for (const Output& value : variables)
      all.push_back({fmt::format("loop_state[{}]", i++), value});
    i = 0;
    for (const TensorArray& array : emitted)
      all.push_back(
          {fmt::format("emit[{}]", i++), array.flow(), array.handle()});
    return all;
  }

  // `before` in the rows of finished sequences, `after` in the others.
  static Output unless(const Scope& in, const Output& finished,
                       const Output& before, const Output& now) {
    return in.op("Select", {finished, before, now});
  }

  std::vector<Leaf> body(const Scope& in, const Outputs& v) const {
    const Outputs state = part(v, kState, states());
    const Outputs variables = part(v, kState + states(), variables_);
    const CellStep step = (*cell_)(in, v[2], state);
    if (!in.ok()) return {};
    const Output time = ops::add(in, v[0], one_);
    const RawRnnNow now{step.output, step.state, variables};
    RawRnnNext next = fn_(in, time, &now);
    if (!in.ok()) return {};
    Status status = check(next);
    if (status.ok()) status = cell_->check_state("the next state", next.state);
    if (emits_output_ && next.emit.empty()) next.emit = step.output;
    if (status.ok() && next.emit.size() != emitted_.size())
      status = invalid_argument(
          "[raw_rnn] \"{}\": {} tensors are emitted, at first there were {}",
          name_, next.emit.size(), emitted_.size());
    if (!status.ok()) {
      in.fail(std::move(status));
      return {};
    }
    Outputs kept;
    for (size_t i = 0; i < states(); ++i)
      kept.push_back(with_known_shape(in,
                                      unless(in, v[1], state[i], next.state[i]),
                                      cell_->state_shape(i)));
    std::vector<TensorArray> arrays = with_flows(v);
    for (size_t i = 0; i < arrays.size(); ++i)
      arrays[i] =
          arrays[i].write(in, v[0], unless(in, v[1], zeros_[i], next.emit[i]));
    return leaves(time, ops::logical_or(in, v[1], next.finished), next.input,
                  kept, next.loop_state, arrays);
  }

  const Scope& scope_;
  const std::string name_;
  const RawRnnFn& fn_;
  const RnnOptions& options_;
  RnnSize batch_;
  Output one_;
  std::optional<RnnSteps> cell_;
  size_t variables_ = 0;  // of the function
  bool emits_output_ = false;
  std::vector<TensorArray> emitted_;
  Outputs zeros_;
};

}  // namespace

RawRnnResult raw_rnn(const Scope& outer, const VariableScope& vars,
                     const RnnCell& cell, const RawRnnFn& fn,
                     const RnnOptions& options) {
  if (!outer.ok()) return {};
  const Scope s = ScopeAccess::construct_scope(outer, "rnn");
  Result<RawRnnResult> result = RawRnn(s, fn, options).build(vars, cell);
  if (result.ok()) return *std::move(result);
  s.fail(std::move(result).status());
  return {};
}

}  // namespace tagflow::graph
