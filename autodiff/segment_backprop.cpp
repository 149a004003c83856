// Note [Segments]
// The gradient of a loop that keeps few of its values (graph::Save) goes back
// segment by segment. A segment is trips `first` to `last` - 1. A call computes
// them again from the variables before the first one, keeps all their values,
// and returns the gradients by these variables (Note [Recomputation]).
//
//   every k  the forward loop saves the variables in each k-th trip; the
//            backward loop has a trip for each k trips, and ends with the first
//   log      nothing is saved but what enters. The backward loop has a stack of
//            segments, and begins with that of all trips. In each trip it takes
//            the last segment off. One that is short it goes back over; of
//            others it computes the variables in the middle, and puts back both
//            halves. So about log2(n) segments are on the stack.
//
// Sums of gradients by loop constants are inputs and outputs of each call, so
// they are summed in the same order as in the plain backward loop.
#include <algorithm>
#include <functional>
#include <map>

#include "autodiff/differentiate.h"
#include "autodiff/loop_work.h"
#include "autodiff/recomputation.h"
#include "autodiff/save_plan.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/node_name.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Leaf;
using graph::Outputs;
using graph::Scope;

namespace {

// The number of trips of a segment whose values are all kept, under kLog.
constexpr int64_t kShortSegment = 8;

using Values = std::vector<std::pair<Output, Output>>;

// All nodes of the loop, including those of inner loops.
NodeFlags members_of(const Analysis& analysis, graph::Graph& graph,
                     FrameId loop) {
  NodeFlags members(graph.end_id());
  for (const Node* node : graph.nodes()) {
    if (!analysis.knows(*node)) continue;
    if (analysis.is_within(analysis.inner_frame(*node), loop))
      members.set(*node);
  }
  return members;
}

}  // namespace

// One loop while its gradient is made in segments.
class Backprop::Segments {
 public:
  Segments(Backprop& outer, LoopWork& work, const SavePlan& plan)
      : outer_(outer),
        work_(work),
        plan_(plan),
        around_(outer.analysis().parent(work.loop.frame)),
        members_(members_of(outer.analysis(), outer.analysis().graph(),
                            work.loop.frame)),
        gradient_(outer.all_, around_, members_),
        advance_(outer.all_, around_, members_) {}

  Status run() {
    TAGFLOW_RETURN_IF_ERROR(make_gradient());
    TAGFLOW_RETURN_IF_ERROR(begin());
    return plan_.kind == graph::Save::Kind::kLog ? run_log() : run_every();
  }

 private:
  struct Constant {
    LoopConstant* of;
    Output sum = {};              // an argument; invalid: there is none
    std::vector<Leaf> sums = {};  // the initial values of its sums
  };

  Analysis& analysis() { return outer_.analysis(); }
  const Scope& scope() const { return outer_.scope(); }
  Region& region() { return outer_.region_; }
  const Loop& loop() const { return work_.loop; }
  size_t num_variables() const { return work_.variables.size(); }

  // The function that goes back over a segment.
  Status make_gradient() {
    Differentiand what;
    segment_ = gradient_.set_segment(loop());
    std::vector<Endpoint> merges;
    graph::WhileOptions options;
    begin_ = outer_.begin_gradients(work_, options);
    shapes_ = options.shapes;
    for (size_t i = 0; i < num_variables(); ++i) {
      merges.push_back({work_.variables[i].of->merge, 0});
      grads_.push_back(
          gradient_.add_argument(merges[i], begin_[i].output.dtype()));
    }
    TAGFLOW_RETURN_IF_ERROR(scope().status());
    TAGFLOW_RETURN_IF_ERROR(gradient_.copy(merges));
    for (const auto& variable : work_.variables) {
      what.ys.push_back(gradient_.state_at_end(*variable.of).endpoint());
      what.xs.push_back(gradient_.state(*variable.of).endpoint());
    }
    what.num_dense = num_variables();
    what.sums.resize(num_variables());
    for (LoopConstant& constant : work_.constants) {
      // A tensor that enters twice is one x with the gradient of both.
      const Endpoint x = gradient_.twin(constant.outside);
      if (x.node == nullptr || std::ranges::find(what.xs, x) != what.xs.end())
        continue;
      what.xs.push_back(x);
      constants_.push_back({&constant});
      // The type of the variable behind a handle may be unknown.
      const DataType type = type_of_sum(constant);
      if (type != DataType::kInvalid)
        constants_.back().sum =
            gradient_.add_plain_argument(constant.outside, type);
      what.sums.push_back({constants_.back().sum});
    }
    what.grad_of = [&](size_t i) { return Gradient{grads_[i]}; };
    what.stops = gradient_.stops();
    TAGFLOW_RETURN_IF_ERROR(gradient_.scope().status());
    TAGFLOW_ASSIGN(made_, differentiate(gradient_.scope(), what));
    std::vector<Output> results;
    for (size_t i = 0; i < made_.size(); ++i) {
      if (i < num_variables() && !made_[i].valid())
        made_[i] = {no_gradient(Output(what.xs[i]), begin_[i].output.dtype())};
      for (const Output& output : {made_[i].values, made_[i].indices})
        if (output.valid()) results.push_back(output);
    }
    return gradient_.finish(results);
  }

  DataType type_of_sum(const LoopConstant& constant) {
    const Endpoint& tensor = constant.outside;
    if (analysis().is_container(tensor)) return DataType::kVariant;
    const DataType type =
        remove_ref(tensor.node->output_dtypes()[size_t(tensor.port)]);
    return type == DataType::kResource ? DataType::kInvalid : type;
  }

  Output no_gradient(const Output& x, DataType type) {
    if (type == DataType::kVariant)
      return gradient_.scope().op("ZeroVariant", {});
    return ops::zeros_like(gradient_.scope(), x);
  }

  // The initial values of the backward loop's variables, and the variables of
  // the loop with which a segment begins.
  Status begin() {
    for (const LoopVariable& variable : loop().variables)
      if (gradient_.needs(variable)) states_.push_back(&variable);
    for (size_t i = 0; i < constants_.size(); ++i) {
      Constant& constant = constants_[i];
      const Gradient& grad = made_[num_variables() + i];
      if (!grad.valid()) continue;
      constant.sums = outer_.begin_sums(*constant.of, grad);
      for (const Leaf& sum : constant.sums) begin_.push_back(sum);
    }
    TAGFLOW_ASSIGN(const Endpoint trips, work_.forward.trips());
    trips_ = region().value(trips);
    return scope().status();
  }

  // Whether the calls compute its sum.
  bool goes_in(const Constant& constant) const {
    return constant.sums.size() == 1 && constant.sum.valid() &&
           gradient_.needs(constant.sum);
  }

  // The gradients at a segment's start, from `now`, those at its end.
  Outputs back(const Scope& in, const Outputs& now, const Outputs& states,
               const Output& first, const Output& last) {
    Values values{{segment_.first, first}, {segment_.last, last}};
    for (size_t i = 0; i < states_.size(); ++i)
      values.emplace_back(gradient_.state(*states_[i]), states[i]);
    for (size_t i = 0; i < num_variables(); ++i)
      values.emplace_back(grads_[i], now[i]);
    size_t at = num_variables();
    for (const Constant& constant : constants_) {
      if (goes_in(constant)) values.emplace_back(constant.sum, now[at]);
      at += constant.sums.size();
    }
    auto call = gradient_.call(in, region(), values);
    if (!call.ok()) {
      scope().fail(std::move(call).status());
      return {};
    }
    Outputs next;
    const auto take = [&](const Output& value) {
      LoopWork::narrow(analysis(), value, shape_of(begin_[next.size()]));
      next.push_back(value);
    };
    int port = 0;
    for (; port < int(num_variables()); ++port) take((*call)[port]);
    at = num_variables();
    for (size_t i = 0; i < constants_.size(); ++i) {
      const Constant& constant = constants_[i];
      Gradient grad = made_[num_variables() + i];
      if (!grad.valid()) continue;
      grad.values = (*call)[port++];
      if (grad.is_sparse()) grad.indices = (*call)[port++];
      Outputs before;
      for (size_t j = 0; j < constant.sums.size(); ++j)
        before.push_back(now[at++]);
      if (goes_in(constant)) {
        take(grad.values);
        continue;
      }
      for (const Leaf& sum : next_sums(in, constant.sums, before, grad))
        take(sum.output);
    }
    return next;
  }

  // The invariant shape of a variable of the backward loop.
  PartialShape shape_of(const Leaf& leaf) const {
    const auto known = shapes_.find(leaf.path);
    return known == shapes_.end() ? leaf.output.shape() : known->second;
  }

  // The backward loop: `more` are variables beside the gradients.
  using Body = std::function<std::vector<Leaf>(
      const Scope& in, const Outputs& more, const Outputs& grads)>;
  Status repeat(std::vector<Leaf> more, const Body& body) {
    const size_t count = more.size();
    std::vector<Leaf> vars = std::move(more);
    vars.insert(vars.end(), begin_.begin(), begin_.end());
    graph::WhileOptions options;
    options.name =
        graph::to_node_name(analysis().frame(loop().frame).name) + "_grad";
    options.parallel_iterations = 1;  // the smallest number of values
    options.shapes = shapes_;
    TAGFLOW_RETURN_IF_ERROR(scope().status());
    const Outputs results = graph::structure::while_loop(
        scope(),
        [](const Scope& in, const Outputs& v) {
          return ops::greater(in, v[0], 0);
        },
        [&](const Scope& in, const Outputs& v,
            const graph::structure::AddVariable&) {
          const auto middle = v.begin() + ptrdiff_t(count);
          return body(in, std::vector<Output>(v.begin(), middle),
                      std::vector<Output>(middle, v.end()));
        },
        vars, options);
    TAGFLOW_RETURN_IF_ERROR(scope().status());
    // In the order of hand_out(): one variable, then the gradients.
    size_t at = 1 + num_variables();
    for (const Constant& constant : constants_) {
      constant.of->result = at;
      at += constant.sums.size();
    }
    outer_.hand_out(work_,
                    std::vector<Output>(results.begin() + ptrdiff_t(count) - 1,
                                        results.end()));
    return {};
  }

  std::vector<Leaf> with_names(const std::vector<Leaf>& names,
                               const Outputs& values) const {
    std::vector<Leaf> leaves;
    for (size_t i = 0; i < names.size(); ++i)
      leaves.push_back({names[i].path, values[i]});
    return leaves;
  }

  static std::string state_path(const LoopVariable& variable) {
    return fmt::format("saved \"{}\"", variable.merge->name());
  }

  // --- Every k trips ---

  Result<Endpoint> every() {
    if (plan_.k_outside.node == nullptr) return work_.forward.integer(plan_.k);
    return work_.forward.at_least_one(plan_.k_outside);
  }

  Status run_every() {
    TAGFLOW_ASSIGN(const Endpoint k_outside, every());
    const Output k = region().value(k_outside);
    std::vector<Leaf> more{{"last", trips_}};
    for (const LoopVariable* state : states_) {
      TAGFLOW_ASSIGN(const Endpoint stack,
                     work_.forward.saved_every({state->merge, 0}, k_outside));
      analysis().note(loop().frame, {state->merge, 0}, Kept::kSavedEvery);
      more.push_back({state_path(*state), region().value(stack)});
    }
    return repeat(
        more, [&](const Scope& in, const Outputs& now, const Outputs& grads) {
          const Output before = ops::sub(in, now[0], 1);
          const Output first = ops::mul(in, ops::floor_div(in, before, k), k);
          Outputs rest{first}, values;
          for (size_t i = 0; i < states_.size(); ++i) {
            const graph::OpResult pop =
                in.op("PersistentStackPop", {now[1 + i]},
                      {{"elem_type", states_[i]->merge->output_dtypes()[0]}});
            rest.push_back(pop[0]);
            values.push_back(pop[1]);
          }
          std::vector<Leaf> next = with_names(more, rest);
          for (Leaf& leaf :
               with_names(begin_, back(in, grads, values, first, now[0])))
            next.push_back(std::move(leaf));
          return next;
        });
  }

  // --- Halves ---

  // The function from the variables at `first` to those at `last`.
  Status make_advance() {
    advance_segment_ = advance_.set_segment(loop());
    std::vector<Endpoint> merges;
    for (const LoopVariable* state : states_)
      merges.push_back({state->merge, 0});
    TAGFLOW_RETURN_IF_ERROR(advance_.copy(merges));
    std::vector<Output> results;
    for (const LoopVariable* state : states_)
      results.push_back(advance_.state_at_end(*state));
    return advance_.finish(results);
  }

  // The variables after trips first to last - 1.
  Outputs advanced(const Scope& in, const Outputs& states, const Output& first,
                   const Output& last) {
    if (states_.empty()) return {};
    Values values{{advance_segment_.first, first},
                  {advance_segment_.last, last}};
    for (size_t i = 0; i < states_.size(); ++i)
      values.emplace_back(advance_.state(*states_[i]), states[i]);
    auto call = advance_.call(in, region(), values);
    if (!call.ok()) {
      scope().fail(std::move(call).status());
      return {};
    }
    Outputs next;
    for (int i = 0; i < call->size(); ++i) next.push_back((*call)[i]);
    return next;
  }

  // Pushes a segment, `first`, `last` and the variables, onto the stack.
  static Outputs pushed(const Scope& in, const Outputs& stacks,
                        const Output& first, const Output& last,
                        const Outputs& states) {
    Outputs values{first, last}, next;
    for (const Output& state : states) values.push_back(state);
    for (size_t i = 0; i < values.size(); ++i)
      next.push_back(in.op("PersistentStackPush", {stacks[i], values[i]}));
    return next;
  }

  Status run_log() {
    if (!states_.empty()) TAGFLOW_RETURN_IF_ERROR(make_advance());
    TAGFLOW_ASSIGN(const Endpoint zero, work_.forward.integer(0));
    Outputs entering;
    std::vector<Leaf> more{
        {"segments", ops::cast(scope(), ops::greater(scope(), trips_, 0),
                               DataType::kInt64)}};
    const auto add_stack = [&](std::string path, DataType type) {
      more.push_back({std::move(path), scope().op("PersistentStack", {},
                                                  {{"elem_type", type}})});
      types_.push_back(type);
    };
    add_stack("first", DataType::kInt64);
    add_stack("last", DataType::kInt64);
    for (const LoopVariable* state : states_) {
      add_stack(state_path(*state), state->merge->output_dtypes()[0]);
      entering.push_back(region().value(state->enter->inputs()[0]));
    }
    Outputs stacks;
    for (size_t i = 1; i < more.size(); ++i) stacks.push_back(more[i].output);
    stacks = pushed(scope(), stacks, region().value(zero), trips_, entering);
    for (size_t i = 1; i < more.size(); ++i) more[i].output = stacks[i - 1];
    return repeat(
        more, [&](const Scope& in, const Outputs& now, const Outputs& grads) {
          return with_names(all_names(more), halved(in, now, grads));
        });
  }

  std::vector<Leaf> all_names(const std::vector<Leaf>& more) const {
    std::vector<Leaf> names = more;
    names.insert(names.end(), begin_.begin(), begin_.end());
    return names;
  }

  // A trip of the backward loop: back over the last segment, or into its half.
  Outputs halved(const Scope& in, const Outputs& now, const Outputs& grads) {
    Outputs rest, values;
    for (size_t i = 0; i < types_.size(); ++i) {
      const graph::OpResult pop =
          in.op("PersistentStackPop", {now[1 + i]}, {{"elem_type", types_[i]}});
      rest.push_back(pop[0]);
      values.push_back(pop[1]);
    }
    const Output first = values[0], last = values[1];
    const Outputs states =
        std::vector<Output>(values.begin() + 2, values.end());
    const Output size = ops::sub(in, last, first);
    const auto joined = [](const Output& segments, const Outputs& stacks,
                           const Outputs& gradients) {
      Outputs all{segments};
      for (const Output& stack : stacks) all.push_back(stack);
      for (const Output& gradient : gradients) all.push_back(gradient);
      return all;
    };
    const Outputs next = graph::cond(
        in, ops::less_equal(in, size, kShortSegment),
        [&](const Scope& branch) {
          return joined(ops::sub(branch, now[0], 1), rest,
                        back(branch, grads, states, first, last));
        },
        [&](const Scope& branch) {
          const Output middle =
              ops::add(branch, first, ops::floor_div(branch, size, 2));
          const Outputs there = advanced(branch, states, first, middle);
          Outputs stacks = pushed(branch, rest, first, middle, states);
          stacks = pushed(branch, stacks, middle, last, there);
          return joined(ops::add(branch, now[0], 1), stacks, grads);
        });
    for (size_t i = 0; i < begin_.size(); ++i)
      LoopWork::narrow(analysis(), next[next.size() - begin_.size() + i],
                       shape_of(begin_[i]));
    return next;
  }

  Backprop& outer_;
  LoopWork& work_;
  const SavePlan& plan_;
  const FrameId around_;
  const NodeFlags members_;
  Recomputation gradient_, advance_;
  Recomputation::Segment segment_, advance_segment_;
  std::vector<Output> grads_;  // arguments, by variable
  std::vector<Constant> constants_;
  std::vector<Gradient> made_;  // by variable, then by constant
  std::vector<const LoopVariable*> states_;
  std::vector<Leaf> begin_;  // by variable, then the sums
  std::map<std::string, PartialShape> shapes_;
  std::vector<DataType> types_;  // of the stacks of segments
  Output trips_;
};

void Backprop::run_segments(LoopWork& work, const SavePlan& plan) {
  if (!scope().ok()) return;
  Status status = Segments(*this, work, plan).run();
  if (!status.ok())
    scope().fail(std::move(status).with_prefix(fmt::format(
        "[gradients] loop \"{}\": ", analysis().frame(work.loop.frame).name)));
}

}  // namespace tagflow::autodiff
