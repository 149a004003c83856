#include "graph/builder/rnn.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/rnn_steps.h"
#include "graph/builder/scope_access.h"
#include "graph/builder/structured_control_flow.h"

namespace tagflow::graph {

namespace {

// The size of the inputs of a cell, or why there is none.
Result<int64_t> input_size_of(const std::string& name, const Output& inputs) {
  if (!inputs.has_tensor())
    return invalid_argument("[dynamic_rnn] \"{}\": the inputs are not a tensor",
                            name);
  const PartialShape shape = inputs.shape();
  if (!is_floating(inputs.dtype()) || !shape.has_rank() || shape.rank() != 3 ||
      !shape.dim_known(2))
    return invalid_argument(
        "[dynamic_rnn] \"{}\": the inputs must be floating-point numbers of "
        "three dimensions, of which the last is known, not {}{} (\"{}\")",
        name, dtype_name(inputs.dtype()), shape.to_string(), inputs.name());
  return shape.dim(2);
}

// The lengths as int32, limited to `steps`: [batch].
Output checked_lengths(const Scope& s, const Input& given, const RnnSize& batch,
                       const RnnSize& steps) {
  Output lengths = s.resolve(given, DataType::kInt32, "lengths");
  if (!s.ok()) return {};
  const DataType dtype = lengths.dtype();
  if ((dtype != DataType::kInt32 && dtype != DataType::kInt64) ||
      !lengths.shape().compatible({batch.known})) {
    s.fail(invalid_argument(
        "[dynamic_rnn] \"{}\": the sequence lengths must be int32 or int64 of "
        "shape {}, not {}{} (\"{}\")",
        ScopeAccess::name(s), PartialShape{batch.known}.to_string(),
        dtype_name(dtype), lengths.shape().to_string(), lengths.name()));
    return {};
  }
  if (lengths.shape() != PartialShape{batch.known})
    lengths = ops::ensure_shape(s, lengths, {batch.known});
  if (!lengths.shape().fully_known()) {
    const Output count = ops::gather(s, ops::shape(s, lengths), 0);
    const Output check = ops::assert_(
        s.named("lengths"), ops::equal(s, count, batch.value),
        {fmt::format("[dynamic_rnn] \"{}\": not as many sequence lengths as "
                     "sequences:",
                     ScopeAccess::name(s)),
         count, batch.value});
    lengths = ops::with_dependencies(s, check, lengths);
  }
  if (dtype == DataType::kInt32) return ops::minimum(s, lengths, steps.value);
  const Output most = ops::cast(s, steps.value, dtype);
  return ops::cast(s, ops::minimum(s, lengths, most), DataType::kInt32);
}

bool is_given(const Input& input) {
  return input.is_literal() || input.output().valid();
}

// One dynamic_rnn(): a loop whose variables are the time, the flow of the array
// of outputs, and the parts of the state.
class DynamicRnn {
 public:
  DynamicRnn(const Scope& s, const VariableScope& vars, const RnnCell& cell,
             const Output& inputs, int64_t input_size,
             const RnnOptions& options)
      : scope_(s),
        options_(options),
        dtype_(inputs.dtype()),
        input_size_(input_size),
        inputs_(swapped(inputs)),
        steps_(rnn_size(s, inputs_, 0)),
        batch_(rnn_size(s, inputs_, 1)),
        cell_(s, "dynamic_rnn", vars.sub_scope(options.scope), cell, input_size,
              batch_, dtype_),
        output_size_(cell.output_size()) {}

  Result<RnnResult> build() {
    TAGFLOW_RETURN_IF_ERROR(scope_.status());
    TAGFLOW_ASSIGN(std::vector<Leaf> vars, start());
    const Outputs last = structure::while_loop(
        scope_,
        [this](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], bound_);
        },
        [this](const Scope& in, const Outputs& v,
               const structure::AddVariable&) { return body(in, v); },
        vars, {.parallel_iterations = options_.parallel_iterations});
    TAGFLOW_RETURN_IF_ERROR(scope_.status());
    RnnResult result;
    const Output all = outputs_.with_flow(last[1]).stack(scope_);
    result.outputs = swapped(with_known_shape(
        scope_, all, {steps_.known, batch_.known, output_size_}));
    for (size_t i = 2; i < last.size(); ++i) result.state.push_back(last[i]);
    return result;
  }

 private:
  // Swaps the batch and time dimensions.
  Output swapped(const Output& x) const {
    if (options_.time_major) return x;
    return ops::transpose(scope_, x, {1, 0, 2});
  }

  // Makes the initial values of the variables, and tensors for all steps.
  Result<std::vector<Leaf>> start() {
    const Scope& s = scope_;
    Outputs state = options_.initial_state;
    if (state.empty()) {
      for (const StatePart& part : cell_.state())
        state.push_back(rnn_zeros(s, batch_, {part.size}, dtype_));
    }
    TAGFLOW_RETURN_IF_ERROR(s.status());
    TAGFLOW_RETURN_IF_ERROR(cell_.check_state("the initial state", state));
    bound_ = steps_.value;
    if (is_given(options_.sequence_length)) {
      const Output lengths =
          checked_lengths(s, options_.sequence_length, batch_, steps_);
      TAGFLOW_RETURN_IF_ERROR(s.status());
      // Steps after the longest sequence are zero; a cell runs at least once.
      const Output longest = ops::maximum(s, ops::reduce_max(s, lengths), 1);
      bound_ = ops::minimum(s, steps_.value, longest);
      lengths_ = ops::expand_dims(s, lengths, 1);
      zeros_ = rnn_zeros(s, batch_, {output_size_}, dtype_);
    }
    elements_ = TensorArray(s.named("inputs"), steps_.value, dtype_)
                    .unstack(s, inputs_);
    outputs_ = TensorArray(s.named("outputs"), steps_.value, dtype_,
                           {.element_shape = {batch_.known, output_size_}});
    one_ = s.resolve(1, DataType::kInt32, "one");
    TAGFLOW_RETURN_IF_ERROR(s.status());
    std::vector<Leaf> vars = {
        {"the time", s.resolve(0, DataType::kInt32, "zero")},
        {"the outputs", outputs_.flow(), outputs_.handle()}};
    for (size_t i = 0; i < state.size(); ++i) {
      // The loop keeps the known shape of the state.
      const Output part =
          state[i].shape() == cell_.state_shape(i)
              ? state[i]
              : Output(ops::ensure_shape(s, state[i], cell_.state_shape(i)));
      vars.push_back({cell_.state()[i].name, part});
    }
    return vars;
  }

  std::vector<Leaf> body(const Scope& in, const Outputs& v) const {
    Outputs state;
    for (size_t i = 2; i < v.size(); ++i) state.push_back(v[i]);
    const Output x = with_known_shape(in, elements_.read(in, v[0]),
                                      {batch_.known, input_size_});
    CellStep step = cell_(in, x, state);
    if (!in.ok()) return {};
    if (lengths_.valid()) {
      const Output goes_on = ops::less(in, v[0], lengths_);
      step.output = ops::select(in, goes_on, step.output, zeros_);
      Outputs kept;
      for (size_t i = 0; i < state.size(); ++i)
        kept.push_back(with_known_shape(
            in, ops::select(in, goes_on, step.state[i], state[i]),
            cell_.state_shape(i)));
      step.state = kept;
    }
    const TensorArray written =
        outputs_.with_flow(v[1]).write(in, v[0], step.output);
    std::vector<Leaf> next = {
        {"the time", ops::add(in, v[0], one_)},
        {"the outputs", written.flow(), written.handle()}};
    for (size_t i = 0; i < state.size(); ++i)
      next.push_back({cell_.state()[i].name, step.state[i]});
    return next;
  }

  const Scope& scope_;
  const RnnOptions& options_;
  const DataType dtype_;
  const int64_t input_size_;
  const Output inputs_;  // [time, batch, size]
  const RnnSize steps_, batch_;
  const RnnSteps cell_;
  const int64_t output_size_;
  Output bound_, one_;
  Output lengths_, zeros_;  // [batch, 1], [batch, outputs]; invalid if unused
  TensorArray elements_, outputs_;
};

}  // namespace

RnnResult dynamic_rnn(const Scope& outer, const VariableScope& vars,
                      const RnnCell& cell, const Output& inputs,
                      const RnnOptions& options) {
  if (!outer.ok()) return {};
  const Scope s = ScopeAccess::construct_scope(outer, "rnn");
  const Result<int64_t> size = input_size_of(ScopeAccess::name(s), inputs);
  if (!size.ok()) {
    s.fail(size.status());
    return {};
  }
  Result<RnnResult> result =
      DynamicRnn(s, vars, cell, inputs, *size, options).build();
  if (result.ok()) return *std::move(result);
  s.fail(std::move(result).status());
  return {};
}

BidirectionalResult bidirectional_dynamic_rnn(
    const Scope& outer, const VariableScope& vars, const RnnCell& forward,
    const RnnCell& backward, const Output& inputs,
    const BidirectionalOptions& options) {
  if (!outer.ok()) return {};
  const Scope s = ScopeAccess::construct_scope(outer, "bidirectional_rnn");
  const VariableScope own = vars.sub_scope(options.scope);
  RnnOptions rnn;
  rnn.time_major = options.time_major;
  rnn.parallel_iterations = options.parallel_iterations;
  const int time = options.time_major ? 0 : 1;
  Output lengths;
  if (is_given(options.sequence_length)) {
    if (Status status = input_size_of(ScopeAccess::name(s), inputs).status();
        !status.ok()) {
      s.fail(std::move(status));
      return {};
    }
    lengths = checked_lengths(s, options.sequence_length,
                              rnn_size(s, inputs, 1 - time),
                              rnn_size(s, inputs, time));
    if (!s.ok()) return {};
    rnn.sequence_length = lengths;
  }
  const auto reversed = [&](const Output& x) -> Output {
    if (!lengths.valid()) return ops::reverse(s, x, {time});
    return s.op("ReverseSequence", {x, lengths},
                {{"seq_dim", time}, {"batch_dim", 1 - time}});
  };
  BidirectionalResult result;
  rnn.scope = "fw";
  rnn.initial_state = options.initial_state_forward;
  result.forward = dynamic_rnn(s.named("fw"), own, forward, inputs, rnn);
  if (!s.ok()) return {};
  rnn.scope = "bw";
  rnn.initial_state = options.initial_state_backward;
  result.backward =
      dynamic_rnn(s.named("bw"), own, backward, reversed(inputs), rnn);
  if (!s.ok()) return {};
  result.backward.outputs = reversed(result.backward.outputs);
  return result;
}

}  // namespace tagflow::graph
