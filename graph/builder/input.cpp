#include "graph/builder/input.h"

#include <limits>

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_variable.h"
#include "graph/builder/scope_access.h"

namespace tagflow::graph {

namespace {

// What fills a queue by an operation, which `threads` run.
QueueRunnerDef runner_of(const Scope& s, const ops::Queue& queue,
                         const Output& put, int64_t threads = 1) {
  const auto name_of = [](const Output& op) {
    return op.valid() ? op.node()->name() : std::string();
  };
  QueueRunnerDef runner;
  runner.queue = name_of(queue.handle);
  runner.enqueue_ops.assign(size_t(threads), name_of(put));
  runner.close_op = name_of(ops::close_queue(s.named("close"), queue));
  runner.cancel_op =
      name_of(ops::close_queue(s.named("cancel"), queue, {true}));
  runner.closed_codes = {Code::kOutOfRange, Code::kCancelled};
  return runner;
}

// A queue of the rows of a tensor, which get into it again and again.
Result<FileNames> produce(const Scope& s, const Input& given, DataType dtype,
                          const ProducerOptions& options) {
  if (options.epochs < 0 || options.capacity < 1)
    return invalid_argument(
        "[producer] \"{}\": the number of epochs, {}, must not be negative, "
        "and the capacity, {}, must be positive",
        ScopeAccess::name(s), options.epochs, options.capacity);
  Output rows = s.resolve(given, dtype, "rows");
  TAGFLOW_RETURN_IF_ERROR(s.status());
  if (rows.dtype() != dtype ||
      !rows.shape().compatible({PartialShape::kUnknown}))
    return invalid_argument(
        "[producer] \"{}\": \"{}\" must be a vector of {}, not {}{}",
        ScopeAccess::name(s), rows.name(), dtype_name(dtype),
        dtype_name(rows.dtype()), rows.shape().to_string());
  // Otherwise a runner would spin.
  const Output some = ops::greater(s, ops::size(s, rows), 0);
  const Output is_checked =
      s.op("Assert",
           {some, s.constant(Tensor::scalar("there is nothing to produce"))});
  Outputs before = is_checked;
  FileNames result;
  if (options.epochs > 0) {
    const ops::Variable epochs = ops::variable(
        s.named("epochs"), DataType::kInt64, PartialShape::scalar());
    result.initializer = ops::assign(s.named("initialize"), epochs,
                                     s.constant(Tensor::scalar<int64_t>(0)));
    before.push_back(
        s.op("ResourceCountUpTo", {epochs.handle},
             {{"limit", options.epochs}, {"T", DataType::kInt64}}));
  }
  rows = ops::identity(s.with_control_dependencies(before), rows);
  if (options.shuffle)
    rows = s.op("RandomShuffle", {rows},
                {{"seed", options.seeds.seed}, {"seed2", options.seeds.seed2}});
  result.queue = ops::fifo_queue(
      s.named("queue"), {dtype},
      {.capacity = options.capacity, .shapes = {PartialShape::scalar()}});
  result.runners = {
      runner_of(s, result.queue,
                ops::enqueue_many(s.named("put"), result.queue, {rows}))};
  TAGFLOW_RETURN_IF_ERROR(s.status());
  return result;
}

// The shapes of elements in batches.
Result<ops::QueueArgs> elements_of(const Scope& s, const Outputs& components,
                                   const BatchOptions& o,
                                   std::vector<DataType>& dtypes) {
  if (o.batch_size < 1 || o.capacity < o.batch_size || o.threads < 1 ||
      o.threads > 1024 || o.batch_size > std::numeric_limits<int32_t>::max())
    return invalid_argument(
        "[batch] \"{}\": batch_size {}, capacity {} and threads {} must be "
        "positive, with at most 1024 threads, and room for a batch",
        ScopeAccess::name(s), o.batch_size, o.capacity, o.threads);
  if (components.empty())
    return invalid_argument("[batch] \"{}\": there are no components",
                            ScopeAccess::name(s));
  ops::QueueArgs args{.capacity = o.capacity};
  for (const Output& component : components) {
    PartialShape shape = component.shape();
    if (o.enqueue_many && shape.has_rank() && shape.rank() > 0)
      shape = PartialShape(shape.dims().subspan(1));
    else if (o.enqueue_many)
      shape = PartialShape();
    if (!component.has_tensor() ||
        !(o.dynamic_pad ? shape.has_rank() : shape.fully_known()))
      return invalid_argument(
          "[batch] \"{}\": \"{}\" of shape {} cannot be put into batches: {} "
          "must be known",
          ScopeAccess::name(s), component.name(), component.shape().to_string(),
          o.dynamic_pad ? "the rank" : "without padding the shape");
    args.shapes.push_back(std::move(shape));
    dtypes.push_back(remove_ref(component.dtype()));
  }
  return args;
}

Result<Batches> fill(const Scope& s, const Outputs& components,
                     const ops::Queue& queue, const BatchOptions& o) {
  Inputs inputs;
  inputs.add(components);
  const Output put = o.enqueue_many
                         ? ops::enqueue_many(s.named("put"), queue, inputs)
                         : ops::enqueue(s.named("put"), queue, inputs);
  const Input size = s.constant(Tensor::scalar(int32_t(o.batch_size)));
  Batches result;
  result.runners = {runner_of(s, queue, put, o.threads)};
  result.components = o.allow_smaller_final_batch
                          ? ops::dequeue_up_to(s, queue, size)
                          : ops::dequeue_many(s, queue, size);
  TAGFLOW_RETURN_IF_ERROR(s.status());
  return result;
}

// The result, or the failure of the scope.
template <class T>
T or_fail(const Scope& s, Result<T> result) {
  if (result.ok()) return *std::move(result);
  if (s.ok()) s.fail(std::move(result).status());
  return {};
}

}  // namespace

FileNames string_input_producer(const Scope& outer, const Input& names,
                                const ProducerOptions& options) {
  if (!outer.ok()) return {};
  const Scope s = ScopeAccess::construct_scope(outer, "input_producer");
  return or_fail(s, produce(s, names, DataType::kString, options));
}

MatchedNames match_filenames_once(const Scope& outer, const Input& pattern) {
  if (!outer.ok()) return {};
  const Scope s = ScopeAccess::construct_scope(outer, "matching_filenames");
  const ops::Variable names = ops::variable(s.named("names"), DataType::kString,
                                            {PartialShape::kUnknown});
  MatchedNames result;
  result.initializer = ops::assign(s.named("initialize"), names,
                                   s.op("MatchingFiles", {pattern}));
  result.names = ops::read(s, names);
  return result;
}

Slices slice_input_producer(const Scope& outer, const Outputs& tensors,
                            const ProducerOptions& options) {
  if (!outer.ok()) return {};
  const Scope s = ScopeAccess::construct_scope(outer, "input_producer");
  const auto build = [&]() -> Result<Slices> {
    int64_t rows = PartialShape::kUnknown;
    for (const Output& tensor : tensors) {
      const PartialShape shape = tensor.shape();
      if (!tensor.has_tensor() || !shape.has_rank() || shape.rank() == 0 ||
          !shape.dim_known(0) ||
          (rows != PartialShape::kUnknown && rows != shape.dim(0)))
        return invalid_argument(
            "[slice_input_producer] \"{}\": \"{}\" of shape {} has not {}",
            ScopeAccess::name(s), tensor.name(), shape.to_string(),
            rows == PartialShape::kUnknown
                ? std::string("a known number of rows")
                : fmt::format("{} rows", rows));
      rows = shape.dim(0);
    }
    if (tensors.empty() || rows > std::numeric_limits<int32_t>::max())
      return invalid_argument(
          "[slice_input_producer] \"{}\": there are no tensors, or too many "
          "rows",
          ScopeAccess::name(s));
    const Output numbers = ops::range(s, 0, int(rows), 1);
    TAGFLOW_ASSIGN(const FileNames produced,
                   produce(s, numbers, DataType::kInt32, options));
    Slices result;
    result.initializer = produced.initializer;
    result.runners = produced.runners;
    const Output row = ops::dequeue(s, produced.queue)[0];
    for (const Output& tensor : tensors)
      result.components.push_back(ops::gather(s, tensor, row));
    TAGFLOW_RETURN_IF_ERROR(s.status());
    return result;
  };
  return or_fail(s, build());
}

Batches batch(const Scope& outer, const Outputs& components,
              const BatchOptions& options) {
  if (!outer.ok()) return {};
  const Scope s = ScopeAccess::construct_scope(outer, "batch");
  const auto build = [&]() -> Result<Batches> {
    std::vector<DataType> dtypes;
    TAGFLOW_ASSIGN(auto args, elements_of(s, components, options, dtypes));
    const Scope named = s.named("queue");
    return fill(s, components,
                options.dynamic_pad
                    ? ops::padding_fifo_queue(named, dtypes, std::move(args))
                    : ops::fifo_queue(named, dtypes, std::move(args)),
                options);
  };
  return or_fail(s, build());
}

Batches shuffle_batch(const Scope& outer, const Outputs& components,
                      int64_t min_after_dequeue, const BatchOptions& options,
                      ops::Seeds seeds) {
  if (!outer.ok()) return {};
  const Scope s = ScopeAccess::construct_scope(outer, "shuffle_batch");
  const auto build = [&]() -> Result<Batches> {
    std::vector<DataType> dtypes;
    if (options.dynamic_pad)
      return invalid_argument(
          "[shuffle_batch] \"{}\": elements cannot be padded",
          ScopeAccess::name(s));
    TAGFLOW_ASSIGN(auto args, elements_of(s, components, options, dtypes));
    if (min_after_dequeue < 0 || min_after_dequeue >= options.capacity)
      return invalid_argument(
          "[shuffle_batch] \"{}\": min_after_dequeue, {}, must be less than "
          "the capacity of {}",
          ScopeAccess::name(s), min_after_dequeue, options.capacity);
    return fill(
        s, components,
        ops::random_shuffle_queue(s.named("queue"), dtypes, min_after_dequeue,
                                  std::move(args), seeds),
        options);
  };
  return or_fail(s, build());
}

}  // namespace tagflow::graph
