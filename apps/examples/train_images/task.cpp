#include "apps/examples/train_images/task.h"

#include "autodiff/train/clip.h"
#include "autodiff/train/loss.h"
#include "autodiff/train/optimizers.h"
#include "autodiff/train/schedule.h"
#include "graph/builder/builder.h"

namespace tagflow::train_images {
namespace {

using namespace graph;     // NOLINT: the builder's vocabulary
using namespace autodiff;  // NOLINT

constexpr int64_t kTestBatch = 500;

// The feeds and metrics of a phase.
struct Side {
  Output images, labels, loss, accuracy;

  training::Phase phase(training::BatchFn batch) const {
    return {.feeds = {images.name(), labels.name()},
            .metrics = {{"loss", loss.name()}, {"accuracy", accuracy.name()}},
            .batch = std::move(batch)};
  }
};

// Adds inputs, model, loss and accuracy. `step` is invalid in the evaluation.
Side add_side(const Scope& s, const VariableScope& vars,
              const TaskOptions& options, int64_t batch, int64_t side,
              const Output& step) {
  // The mean and deviation of all pixels of the training set, scaled to 1.
  constexpr float kMean = 0.286f, kDeviation = 0.353f, kWhite = 255;
  Side result;
  result.images = ops::placeholder(s.named("images"), DataType::kUInt8,
                                   {batch, side, side});
  result.labels =
      ops::placeholder(s.named("labels"), DataType::kUInt8, {batch});
  const Output bright =
      ops::mul(s, ops::cast(s, result.images, DataType::kFloat), 1 / kWhite);
  const Output scaled = ops::mul(s, ops::sub(s, bright, kMean), 1 / kDeviation);
  const Output logits =
      apply_model(s, vars, options.model,
                  {.images = scaled, .step = step, .seed = options.seed});
  const Output labels = ops::cast(s, result.labels, DataType::kInt64);
  const Output loss = losses::sparse_softmax_cross_entropy(s, logits, labels);
  result.loss = ops::identity(s.named("loss"), loss);
  const Output is_right = ops::equal(s, ops::arg_max(s, logits, 1), labels);
  result.accuracy = ops::reduce_mean(s.named("accuracy"),
                                     ops::cast(s, is_right, DataType::kFloat));
  return result;
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
  TAGFLOW_ASSIGN(TrainBatches batches,
                 train_batches(std::move(train), options.batch, options.seed,
                               options.is_augmented));
  TestBatches tests = test_batches(std::move(test), kTestBatch);

  Task task;
  const Scope s(task.graph);
  const VariableScope vars;
  const ScopedVariable counter = global_step(s, vars);
  const Output step = counter.read(s);
  const Side trained =
      add_side(s.sub_scope("train"), vars, options, options.batch, side, step);
  const Side tested =
      add_side(s.sub_scope("test"), vars, options, -1, side, {});
  const Output rate = schedules::cosine_decay(
      s, options.learning_rate, step,
      {.decay_steps = options.epochs * batches.steps_per_epoch});
  constexpr double kLongestGradient = 5;
  optimizers::adam(vars, rate)
      .minimize(
          s.named("step"), trained.loss, vars.trainable_variables(),
          {.global_step = counter, .transform = clipping_to(kLongestGradient)});
  vars.initialize(s.named("init"));
  TAGFLOW_RETURN_IF_ERROR(s.status());

  task.trainee = {.init = "init",
                  .train = "step",
                  .step = trained.phase(std::move(batches.batch)),
                  .evaluation = tested.phase(std::move(tests.batch)),
                  .evaluation_batches = tests.count,
                  .steps_per_epoch = batches.steps_per_epoch,
                  .examples = "images"};
  return task;
}

}  // namespace tagflow::train_images
