// Replicas whose variables are on servers.
#include "autodiff/sum.h"
#include "autodiff/train/replicas.h"
#include "autodiff/train/values.h"
#include "graph/builder/builder.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Outputs;
using graph::Scope;
using graph::ScopedVariable;

namespace {

// The mean of one gradient of all replicas, at the server.
Gradient mean_of(const Scope& at, const std::vector<Gradient>& terms) {
  std::vector<Output> values, indices;
  for (const Gradient& term : terms) {
    values.push_back(term.values);
    if (term.is_sparse()) indices.push_back(term.indices);
  }
  const auto count = int64_t(terms.size());
  if (indices.empty())
    return {ops::real_div(at, sum_of(at, std::move(values)), count)};
  return {ops::real_div(at, joined(at, std::move(values)), count),
          joined(at, std::move(indices))};
}

// Keeps the gradients by one variable until there are enough.
Output make_accumulator(const Scope& at, const ScopedVariable& variable) {
  return at.named("gradients")
      .op("ResourceConditionalAccumulator", {},
          {{"dtype", variable.dtype()},
           {"shape", PartialShape(variable.shape())},
           {"reduction_type", std::string("MEAN")}});
}

}  // namespace

Scope Replicas::at_server(const Scope& s, size_t variable) const {
  return s.with_device(options_.servers[variable % options_.servers.size()]);
}

// With several of them, placement puts each op where its variable is.
Scope Replicas::at_servers(const Scope& s) const {
  return s.with_device(options_.servers.size() == 1 ? options_.servers[0] : "");
}

bool Replicas::check_servers(const Scope& s, const char* what) const {
  if (s.ok() && !has_servers())
    s.fail(invalid_argument(
        "[Replicas] {} needs servers, and the variables are mirrored", what));
  return s.ok();
}

Output Replicas::apply(const Scope& in, const Optimizer& optimizer,
                       const std::vector<Gradient>& gradients,
                       const Outputs& before,
                       const ApplyOptions& options) const {
  std::vector<VariableGradient> list;
  for (size_t i = 0; i < bases_.size(); ++i)
    list.push_back({bases_[i], gradients[i]});
  return optimizer.apply_gradients(
      at_servers(in).with_control_dependencies(before), list, options);
}

Outputs Replicas::values(const Scope& in, const Output& done) const {
  const Scope after = in.with_control_dependencies({done});
  Outputs values;
  for (size_t i = 0; i < bases_.size(); ++i)
    values.push_back(bases_[i].read(at_server(after, i)));
  return values;
}

Outputs Replicas::copy_to(const Scope& in, size_t replica,
                          const Outputs& values) const {
  Outputs assigned;
  for (size_t i = 0; i < bases_.size(); ++i)
    assigned.push_back(
        copies_[replica].trainable[i].assign(at(in, replica), values[i]));
  return assigned;
}

Output Replicas::minimize_at_servers(const Scope& s, const Scope& in,
                                     const OptimizerFn& make,
                                     const ApplyOptions& options) const {
  GradientLists lists;
  for (size_t k = 0; k < copies_.size(); ++k) lists.push_back(gradients(in, k));
  if (!in.ok()) return {};
  std::vector<Gradient> means(bases_.size());
  for (size_t i = 0; i < bases_.size(); ++i) {
    std::vector<Gradient> terms;
    for (const auto& list : lists)
      if (list[i].gradient.valid()) terms.push_back(list[i].gradient);
    if (!terms.empty()) means[i] = mean_of(at_server(in, i), terms);
  }
  const Output done = apply(in, make(vars_), means, losses_, options);
  if (!in.ok()) return {};
  const Outputs fresh = values(in, done);
  Outputs copied;
  for (size_t k = 0; k < copies_.size(); ++k)
    copied.push_back(ops::group(at(in, k), copy_to(in, k, fresh)));
  return ops::group(s, copied);
}

Outputs Replicas::minimize_each(const Scope& s, const OptimizerFn& make,
                                const ApplyOptions& options) const {
  if (!check_servers(s, "an asynchronous training")) return {};
  const Optimizer optimizer = make(vars_);
  Outputs steps;
  for (size_t k = 0; k < copies_.size() && s.ok(); ++k) {
    const Scope in = s.sub_scope("minimize");
    std::vector<Gradient> own;
    for (const VariableGradient& one : gradients(in, k))
      own.push_back(one.gradient);
    if (!s.ok()) break;
    const Output done = apply(in, optimizer, own, {losses_[k]}, options);
    if (!s.ok()) break;
    steps.push_back(ops::group(at(s, k), copy_to(in, k, values(in, done))));
  }
  return s.ok() ? steps : Outputs();
}

BackupSteps Replicas::minimize_first(const Scope& s, int enough,
                                     const OptimizerFn& make,
                                     const ApplyOptions& options) const {
  if (!check_servers(s, "a training with backup replicas")) return {};
  const Scope in = s.sub_scope("minimize");
  const ScopedVariable& counter = options.global_step;
  if (counter.parts().size() != 1)
    s.fail(invalid_argument(
        "[Replicas] a training with backup replicas needs a global step"));
  if (enough < 1 || size_t(enough) > copies_.size())
    s.fail(invalid_argument(
        "[Replicas] {} gradients of {} replicas cannot be enough", enough,
        copies_.size()));
  // The device of the global step.
  const auto at_counter = [&](const Scope& scope) {
    return scope.with_device(
        counter.parts()[0].variable.handle.node()->device());
  };
  if (!in.ok()) return {};

  std::vector<Output> accumulators(bases_.size());
  std::vector<ops::Queue> tokens;
  BackupSteps steps;
  Outputs begin;
  for (size_t k = 0; k < copies_.size() && in.ok(); ++k) {
    const Scope here = at(in, k);
    tokens.push_back(ops::fifo_queue(here.named("tokens"), {DataType::kInt64},
                                     {.shapes = {PartialShape({})}}));
    // The step whose variables the copy has.
    const ScopedVariable own_step =
        copies_[k].vars.get(here, "step", {},
                            {.dtype = DataType::kInt64,
                             .initializer = graph::initializers::zeros(),
                             .trainable = false});
    const Output step = own_step.read(here);
    const auto list = gradients(in, k);
    Outputs given{losses_[k]};
    for (size_t i = 0; i < bases_.size() && in.ok(); ++i) {
      if (!list[i].gradient.valid()) continue;
      const Shape& shape = bases_[i].shape();
      const Output dense = dense_rows(here, list[i].gradient,
                                      shape.rank() > 0 ? shape.dim(0) : 0);
      const Scope there = at_server(in, i);
      if (!accumulators[i].valid())
        accumulators[i] = make_accumulator(there, bases_[i]);
      given.push_back(Output(there
                                 .op("ResourceAccumulatorApplyGradient",
                                     {accumulators[i], step, dense},
                                     {{"dtype", bases_[i].dtype()}})
                                 .node()));
    }
    if (!in.ok()) return {};
    const Outputs token =
        ops::dequeue(here.with_control_dependencies(given), tokens[k]);
    // The step is read before the variables, which so are of it or newer.
    const auto copy_after = [&](const Outputs& before) {
      const Output now =
          counter.read(at_counter(in).with_control_dependencies(before));
      Outputs copied = copy_to(in, k, values(in, now));
      copied.push_back(own_step.assign(here, now));
      return copied;
    };
    for (const Output& one : copy_after({})) begin.push_back(one);
    // A restored queue may have tokens of steps that its replica begins again.
    begin.push_back(ops::dequeue_many(here, tokens[k],
                                      ops::queue_size(here, tokens[k]))[0]);
    const Outputs copied = copy_after({token[0]});
    steps.replicas.push_back(ops::group(at(s, k), copied));
  }

  // Gradients of earlier steps are dropped from now on; after a restore this is
  // how accumulators learn the step.
  const Output step = counter.read(at_counter(in));
  std::vector<Gradient> means(bases_.size());
  for (size_t i = 0; i < bases_.size() && in.ok(); ++i) {
    if (!accumulators[i].valid()) continue;
    const Scope there = at_server(in, i);
    const Output is_set(
        there.op("ResourceAccumulatorSetGlobalStep", {accumulators[i], step})
            .node());
    means[i] = {there.with_control_dependencies({is_set}).op(
        "ResourceAccumulatorTakeGradient", {accumulators[i], enough},
        {{"dtype", bases_[i].dtype()}})};
  }
  const Output done = apply(in, make(vars_), means, {}, options);
  if (!in.ok()) return {};
  const Output next =
      counter.read(at_counter(in).with_control_dependencies({done}));
  Outputs sent;
  for (size_t k = 0; k < copies_.size(); ++k)
    sent.push_back(ops::enqueue(at(in, k), tokens[k], {next}));
  steps.update = ops::group(s, sent);
  steps.begin = ops::group(in, begin);
  return in.ok() ? steps : BackupSteps();
}

}  // namespace tagflow::autodiff
