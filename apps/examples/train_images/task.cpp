#include "apps/examples/train_images/task.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "autodiff/train/clip.h"
#include "autodiff/train/loss.h"
#include "autodiff/train/optimizers.h"
#include "autodiff/train/replicas.h"
#include "autodiff/train/schedule.h"
#include "graph/builder/builder.h"

namespace tagflow::train_images {
namespace {

using namespace graph;     // NOLINT: the builder's vocabulary
using namespace autodiff;  // NOLINT

constexpr int64_t kTestBatch = 500;

// The feeds and metrics of a phase, or of a replica's part of it.
struct Side {
  Output images, labels, loss, accuracy;

  std::vector<std::string> feeds() const {
    return {images.name(), labels.name()};
  }
  training::Phase phase(training::BatchFn batch) const {
    return {.feeds = feeds(),
            .metrics = {{"loss", loss.name()}, {"accuracy", accuracy.name()}},
            .batch = std::move(batch)};
  }
};

Side add_inputs(const Scope& s, int64_t batch, int64_t side) {
  return {
      .images = ops::placeholder(s.named("images"), DataType::kUInt8,
                                 {batch, side, side}),
      .labels = ops::placeholder(s.named("labels"), DataType::kUInt8, {batch})};
}

// Adds model, loss and accuracy. `step` is invalid in the evaluation.
void add_model(const Scope& s, const VariableScope& vars,
               const TaskOptions& options, const Output& step, Side& side) {
  // The mean and deviation of all pixels of the training set, scaled to 1.
  constexpr float kMean = 0.286f, kDeviation = 0.353f, kWhite = 255;
  const Output bright =
      ops::mul(s, ops::cast(s, side.images, DataType::kFloat), 1 / kWhite);
  const Output scaled = ops::mul(s, ops::sub(s, bright, kMean), 1 / kDeviation);
  const Output logits =
      apply_model(s, vars, options.model,
                  {.images = scaled, .step = step, .seed = options.seed});
  const Output labels = ops::cast(s, side.labels, DataType::kInt64);
  const Output loss = losses::sparse_softmax_cross_entropy(s, logits, labels);
  side.loss = ops::identity(s.named("loss"), loss);
  const Output is_right = ops::equal(s, ops::arg_max(s, logits, 1), labels);
  side.accuracy = ops::reduce_mean(s.named("accuracy"),
                                   ops::cast(s, is_right, DataType::kFloat));
}

// Builds the part of a task that trains.
class TrainSide {
 public:
  TrainSide(const Scope& s, const VariableScope& vars,
            const TaskOptions& options, int64_t side, TrainBatches batches)
      : s_(s),
        in_(s.sub_scope("train")),
        vars_(vars),
        options_(options),
        side_(side),
        batches_(std::move(batches)),
        counter_(global_step(s, vars)),
        step_(counter_.read(s)) {
    // A step of an asynchronous replica is one of so many.
    const int64_t counts =
        options.style == Style::kAsync ? replicas() : int64_t{1};
    const Output rate = schedules::cosine_decay(
        s, options.learning_rate, step_,
        {.decay_steps = counts * options.epochs * batches_.steps_per_epoch});
    make_ = [rate](const VariableScope& own) {
      return optimizers::adam(own, rate);
    };
    rate_ = rate.name();
  }

  training::Trainee build() {
    training::Trainee trainee{.init = "init", .train = "step"};
    trainee.steps_per_epoch = batches_.steps_per_epoch;
    if (replicas() == 1) {
      add_alone(trainee);
    } else if (options_.style == Style::kRing ||
               options_.style == Style::kServer) {
      add_together(trainee);
    } else {
      add_beside(trainee);
    }
    trainee.numbers = {{"learning_rate", rate_}};
    const Scope reads = s_.sub_scope("weights");
    for (const ScopedVariable& weights : vars_.trainable_variables())
      trainee.spreads.push_back({weights.name(), weights.read(reads).name()});
    return trainee;
  }

 private:
  int64_t replicas() const {
    return std::max<int64_t>(1, int64_t(options_.devices.size()));
  }
  int64_t rows() const { return options_.batch / replicas(); }  // of a replica
  ApplyOptions apply_options() const {
    constexpr double kLongestGradient = 5;
    return {.global_step = counter_,
            .transform = clipping_to(kLongestGradient)};
  }
  ReplicaOptions replica_options() const {
    ReplicaOptions replicas{.devices = options_.devices};
    if (options_.style != Style::kRing)
      replicas.servers = {options_.devices[0]};
    return replicas;
  }
  // Other elements are dropped in each replica.
  TaskOptions options_of(const Replica& r) const {
    TaskOptions own = options_;
    own.seed = options_.seed * uint64_t(replicas()) + r.index;
    return own;
  }

  void add_alone(training::Trainee& trainee) {
    Side whole = add_inputs(in_, options_.batch, side_);
    add_model(in_, vars_, options_, step_, whole);
    make_(vars_).minimize(s_.named("step"), whole.loss,
                          vars_.trainable_variables(), apply_options());
    vars_.initialize(s_.named("init"));
    trainee.step = whole.phase(std::move(batches_.batch));
  }

  // Each replica gets its part of what is fed.
  void add_together(training::Trainee& trainee) {
    Side whole = add_inputs(in_, options_.batch, side_);
    Outputs losses, accuracies;
    const Replicas replicas(
        in_, vars_, replica_options(), [&](const Replica& r) {
          const auto part_of = [&](const Output& all,
                                   std::vector<int64_t> size) {
            std::vector<int64_t> begin(size.size(), 0);
            begin[0] = int64_t(r.index) * rows();
            const auto rank = int64_t(size.size());
            return ops::slice(in_, all,
                              Tensor::of<int64_t>({rank}, std::span(begin)),
                              Tensor::of<int64_t>({rank}, std::span(size)));
          };
          Side part{.images = part_of(whole.images, {rows(), side_, side_}),
                    .labels = part_of(whole.labels, {rows()})};
          add_model(r.s, r.vars, options_of(r), step_, part);
          losses.push_back(part.loss);
          accuracies.push_back(part.accuracy);
          return part.loss;
        });
    if (!s_.ok()) return;
    whole.loss = ops::reduce_mean(in_.named("loss"), ops::pack(in_, losses));
    whole.accuracy =
        ops::reduce_mean(in_.named("accuracy"), ops::pack(in_, accuracies));
    replicas.minimize(s_.named("step"), make_, apply_options());
    replicas.initialize(s_.named("init"));
    trainee.step = whole.phase(std::move(batches_.batch));
  }

  // Replicas have feeds and runs of their own. Their losses and accuracies go
  // through a queue to the steps.
  void add_beside(training::Trainee& trainee) {
    const ops::Queue queue = ops::fifo_queue(
        in_.named("metrics"), {DataType::kFloat},
        {.capacity = 4 * replicas(), .shapes = {PartialShape({2})}});
    std::vector<Side> parts;
    Outputs reports;
    const Replicas replicas(
        in_, vars_, replica_options(), [&](const Replica& r) {
          Side part = add_inputs(r.s, rows(), side_);
          add_model(r.s, r.vars, options_of(r), step_, part);
          const Output metrics = ops::pack(r.s, {part.loss, part.accuracy});
          reports.push_back(ops::enqueue(in_, queue, {metrics}));
          parts.push_back(part);
          return part.loss;
        });
    // What the runs of a session before have reported, and no step has taken.
    Outputs begin = ops::dequeue_many(in_, queue, ops::queue_size(in_, queue));
    Outputs steps;
    const bool is_async = options_.style == Style::kAsync;
    const int64_t enough = this->replicas() - (is_async ? 0 : options_.backups);
    // What a step takes: as much as came, or as much as it is made of.
    Output count = s_.resolve(enough, DataType::kInt32);
    Scope after = in_;
    if (is_async) {
      steps = replicas.minimize_each(in_, make_, apply_options());
    } else {
      const BackupSteps made =
          replicas.minimize_first(in_, int(enough), make_, apply_options());
      steps = made.replicas;
      if (!s_.ok()) return;
      begin.push_back(made.begin);
      after = in_.with_control_dependencies({made.update});
      count = ops::maximum(in_, ops::queue_size(after, queue), 1);
    }
    const Outputs metrics = ops::dequeue_many(after, queue, count);
    const Output means = ops::reduce_mean(in_, metrics[0], {0});
    Side whole;
    whole.loss = ops::gather(in_.named("loss"), means, 0);
    whole.accuracy = ops::gather(in_.named("accuracy"), means, 1);
    ops::group(s_.named("step"), {means});
    trainee.begin = ops::group(in_.named("begin"), begin).name();
    replicas.initialize(s_.named("init"));
    if (!s_.ok()) return;
    trainee.step = whole.phase([](int64_t) { return std::vector<Tensor>(); });
    trainee.step.feeds.clear();
    trainee.step.rows = rows() * enough;
    const training::BatchFn batch = shared(std::move(batches_.batch));
    const int64_t stride = this->replicas();
    for (size_t k = 0; k < parts.size(); ++k)
      trainee.beside.push_back({parts[k].feeds(),
                                {steps[k].name(), reports[k].name()},
                                [batch, stride, k](int64_t index) {
                                  return batch((index - 1) * stride +
                                               int64_t(k) + 1);
                                }});
  }

  // `batch`, for several threads.
  static training::BatchFn shared(training::BatchFn batch) {
    auto mutex = std::make_shared<std::mutex>();
    return [batch = std::move(batch), mutex](int64_t index) {
      const std::lock_guard lock(*mutex);
      return batch(index);
    };
  }

  const Scope s_, in_;
  const VariableScope vars_;
  const TaskOptions& options_;
  const int64_t side_;
  TrainBatches batches_;
  const ScopedVariable counter_;
  const Output step_;
  OptimizerFn make_;
  std::string rate_;  // the learning rate's tensor
};

// InvalidArgument unless the replicas are possible.
Status check_replicas(const TaskOptions& options) {
  const auto replicas = std::max<int64_t>(1, int64_t(options.devices.size()));
  if (options.batch % replicas != 0)
    return invalid_argument(
        "[train_images] {} replicas cannot have equal parts of a batch of {}: "
        "make --batch a multiple of {}",
        replicas, options.batch, replicas);
  if (options.style == Style::kBackup && options.backups >= replicas)
    return invalid_argument(
        "[train_images] of {} replicas, {} cannot be backups", replicas,
        options.backups);
  return {};
}

}  // namespace

Result<Task> make_task(const TaskOptions& options, io::ImageSet train,
                       io::ImageSet test) {
  const int64_t side = train.images.dim(1);
  if (test.images.dim(1) != side)
    return invalid_argument(
        "[train_images] pictures to train with are of {} x {} pixels, and "
        "those to test with of {} x {}",
        side, side, test.images.dim(1), test.images.dim(1));
  TAGFLOW_RETURN_IF_ERROR(check_replicas(options));
  // Replicas that go on by themselves take batches of their own.
  const bool is_beside =
      options.devices.size() > 1 &&
      (options.style == Style::kAsync || options.style == Style::kBackup);
  const int64_t parts = is_beside ? int64_t(options.devices.size()) : 1;
  training::DataSum data;
  data.add(train.images.flat<uint8_t>());
  data.add(train.labels.flat<uint8_t>());
  training::Subject subject = {
      {"model", std::string(defaults_of(options.model).name)},
      {"data", data.describe(train.images.dim(0), "pictures")}};
  TAGFLOW_ASSIGN(TrainBatches batches,
                 train_batches(std::move(train), options.batch / parts,
                               options.seed, options.is_augmented));
  batches.steps_per_epoch /= parts;
  TestBatches tests = test_batches(std::move(test), kTestBatch);

  Task task;
  const Scope s =
      Scope(task.graph)
          .with_device(options.devices.empty() ? "" : options.devices[0]);
  const VariableScope vars;
  task.trainee = TrainSide(s, vars, options, side, std::move(batches)).build();
  task.trainee.subject = std::move(subject);
  const Scope test_scope = s.sub_scope("test");
  Side tested = add_inputs(test_scope, -1, side);
  add_model(test_scope, vars, options, {}, tested);
  TAGFLOW_RETURN_IF_ERROR(s.status());
  task.trainee.evaluation = tested.phase(std::move(tests.batch));
  task.trainee.evaluation_batches = tests.count;
  task.trainee.examples = "images";
  return task;
}

}  // namespace tagflow::train_images
