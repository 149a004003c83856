#include "graph/builder/bucket.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/scope_access.h"

namespace tagflow::graph {

namespace {

// Each bucket needs a queue.
constexpr int64_t kMostBuckets = 10'000;

class BucketQueues {
 public:
  BucketQueues(const Scope& s, const Outputs& components, int64_t count,
               const BucketOptions& options)
      : s_(s),
        name_(ScopeAccess::name(s)),
        components_(components),
        count_(count),
        o_(options) {}

  Result<Buckets> build(const Input& bucket) {
    TAGFLOW_RETURN_IF_ERROR(check());
    const Output number = s_.resolve(bucket, DataType::kInt32, "bucket");
    TAGFLOW_RETURN_IF_ERROR(s_.status());
    if (number.dtype() != DataType::kInt32 ||
        !number.shape().compatible(PartialShape::scalar()))
      return invalid_argument(
          "[bucket] \"{}\": the number of the bucket must be int32[], not "
          "{}{} (\"{}\")",
          name_, dtype_name(number.dtype()), number.shape().to_string(),
          number.name());
    make_queues();
    Buckets result;
    result.runners = {fill(number), collect()};
    const Outputs batch = ops::dequeue(s_, batches_);
    TAGFLOW_RETURN_IF_ERROR(s_.status());
    result.bucket = batch[0];
    for (size_t i = 0; i < components_.size(); ++i)
      result.components.push_back(batch[i + 1]);
    return result;
  }

 private:
  Status check() const {
    if (o_.batch_size < 1 || o_.capacity < 1 || o_.threads < 1 ||
        o_.threads > 1024 || count_ < 1 || count_ > kMostBuckets)
      return invalid_argument(
          "[bucket] \"{}\": batch_size {}, capacity {}, threads {} and {} "
          "buckets must be positive, at most 1024 threads and {} buckets",
          name_, o_.batch_size, o_.capacity, o_.threads, count_, kMostBuckets);
    if (o_.capacity < o_.batch_size)
      return invalid_argument(
          "[bucket] \"{}\": a capacity of {} never holds a batch of {}", name_,
          o_.capacity, o_.batch_size);
    if (components_.empty())
      return invalid_argument("[bucket] \"{}\": there are no components",
                              name_);
    for (const Output& component : components_) {
      const PartialShape shape = component.shape();
      if (component.has_tensor() &&
          (o_.pad ? shape.has_rank() : shape.fully_known()))
        continue;
      return invalid_argument(
          "[bucket] \"{}\": \"{}\" of shape {} cannot be put into batches: {} "
          "must be known",
          name_, component.name(), shape.to_string(),
          o_.pad ? "the rank" : "without padding the shape");
    }
    return {};
  }

  void make_queues() {
    std::vector<DataType> dtypes, of_batch = {DataType::kInt32};
    ops::QueueArgs args{.capacity = o_.capacity};
    for (const Output& component : components_) {
      dtypes.push_back(remove_ref(component.dtype()));
      of_batch.push_back(dtypes.back());
      args.shapes.push_back(component.shape());
    }
    for (int64_t i = 0; i < count_; ++i) {
      const Scope named = s_.named(fmt::format("bucket_{}", i));
      queues_.push_back(o_.pad ? ops::padding_fifo_queue(named, dtypes, args)
                               : ops::fifo_queue(named, dtypes, args));
    }
    batches_ = ops::fifo_queue(s_.named("batches"), of_batch,
                               {.capacity = o_.capacity});
  }

  static std::string name_of(const Output& op) {
    return op.valid() ? op.node()->name() : "";
  }

  // Puts elements into their buckets repeatedly.
  QueueRunnerDef fill(const Output& number) {
    const auto into = [&](const Scope& in, size_t i) {
      return Outputs(ops::enqueue(in, queues_[i], components_));
    };
    std::vector<BranchFn> branches;
    for (size_t i = 0; i < queues_.size(); ++i)
      branches.emplace_back([&, i](const Scope& in) { return into(in, i); });
    const auto dropped = [](const Scope& in) {
      return Outputs(ops::no_op(in));
    };
    const Outputs put =
        switch_case(s_.named("fill"), number, branches, dropped);
    QueueRunnerDef runner;
    runner.queue = name_of(queues_[0].handle);
    const std::string put_name = name_of(ops::group(s_.named("put"), put));
    runner.enqueue_ops.assign(size_t(o_.threads), put_name);
    runner.close_op = close_all("close_buckets", false);
    runner.cancel_op = close_all("cancel_buckets", true);
    runner.closed_codes = {Code::kOutOfRange, Code::kCancelled};
    return runner;
  }

  std::string close_all(const char* name, bool cancels) {
    Outputs all;
    for (const ops::Queue& queue : queues_)
      all.push_back(ops::close_queue(s_, queue, {cancels}));
    return name_of(ops::group(s_.named(name), all));
  }

  // Moves batches of each bucket to the queue of batches.
  QueueRunnerDef collect() {
    QueueRunnerDef runner;
    runner.queue = name_of(batches_.handle);
    for (size_t i = 0; i < queues_.size(); ++i) {
      const auto take =
          o_.smaller_final_batch ? ops::dequeue_up_to : ops::dequeue_many;
      const Input size = s_.resolve(o_.batch_size, DataType::kInt32, "size");
      Inputs batch{s_.resolve(int64_t(i), DataType::kInt32, "number")};
      batch.add(take(s_, queues_[i], size));
      runner.enqueue_ops.push_back(
          name_of(ops::enqueue(s_.named("collect"), batches_, batch)));
    }
    runner.close_op =
        name_of(ops::close_queue(s_.named("close_batches"), batches_));
    runner.cancel_op =
        name_of(ops::close_queue(s_.named("cancel_batches"), batches_, {true}));
    runner.closed_codes = {Code::kOutOfRange, Code::kCancelled};
    return runner;
  }

  const Scope& s_;
  const std::string name_;
  const Outputs& components_;
  const int64_t count_;
  const BucketOptions& o_;
  std::vector<ops::Queue> queues_;
  ops::Queue batches_;
};

// The number of boundaries up to the length.
Result<Output> bucket_of(const Scope& s, const Output& length,
                         const std::vector<int64_t>& boundaries) {
  const DataType dtype = length.dtype();
  if (!length.has_tensor() ||
      (dtype != DataType::kInt32 && dtype != DataType::kInt64) ||
      !length.shape().compatible(PartialShape::scalar()))
    return invalid_argument(
        "[bucket_by_sequence_length] \"{}\": the length must be an int32 or "
        "int64 scalar, not {}{} (\"{}\")",
        ScopeAccess::name(s), dtype_name(dtype), length.shape().to_string(),
        length.name());
  for (size_t i = 0; i < boundaries.size(); ++i) {
    if (boundaries[i] > (i == 0 ? 0 : boundaries[i - 1])) continue;
    return invalid_argument(
        "[bucket_by_sequence_length] \"{}\": the boundaries must be positive "
        "and ascend, but boundary {} is {}",
        ScopeAccess::name(s), i, boundaries[i]);
  }
  const Output limits = s.constant(
      Tensor::of<int64_t>({int64_t(boundaries.size())}, std::span(boundaries)),
      "boundaries");
  const Output wide = dtype == DataType::kInt64
                          ? length
                          : Output(ops::cast(s, length, DataType::kInt64));
  const Output passed =
      ops::cast(s, ops::greater_equal(s, wide, limits), DataType::kInt32);
  return Output(ops::reduce_sum(s, passed, 0));
}

}  // namespace

Buckets bucket(const Scope& outer, const Input& bucket,
               const Outputs& components, int64_t count,
               const BucketOptions& options) {
  if (!outer.ok()) return {};
  const Scope s = ScopeAccess::construct_scope(outer, "bucket");
  Result<Buckets> result =
      BucketQueues(s, components, count, options).build(bucket);
  if (result.ok()) return *std::move(result);
  s.fail(std::move(result).status());
  return {};
}

LengthBuckets bucket_by_sequence_length(const Scope& outer,
                                        const Output& length,
                                        const Outputs& components,
                                        const std::vector<int64_t>& boundaries,
                                        const BucketOptions& options) {
  if (!outer.ok()) return {};
  const Scope s =
      ScopeAccess::construct_scope(outer, "bucket_by_sequence_length");
  const Result<Output> number = bucket_of(s, length, boundaries);
  if (!number.ok()) {
    s.fail(number.status());
    return {};
  }
  Outputs all{length};
  for (const Output& component : components) all.push_back(component);
  const Buckets made =
      bucket(s, *number, all, int64_t(boundaries.size()) + 1, options);
  if (!s.ok()) return {};
  LengthBuckets result;
  result.lengths = made.components[0];
  for (size_t i = 0; i < components.size(); ++i)
    result.components.push_back(made.components[i + 1]);
  result.runners = made.runners;
  return result;
}

}  // namespace tagflow::graph
