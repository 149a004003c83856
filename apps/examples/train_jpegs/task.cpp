#include "apps/examples/train_jpegs/task.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "apps/shared/training/picture_layers.h"
#include "autodiff/train/layer.h"
#include "autodiff/train/loss.h"
#include "autodiff/train/optimizers.h"
#include "autodiff/train/schedule.h"
#include "graph/builder/builder.h"
#include "graph/builder/input.h"
#include "graph/builder/map_fn.h"

namespace tagflow::train_jpegs {
namespace {

using namespace graph;     // NOLINT: the builder's vocabulary
using namespace autodiff;  // NOLINT

constexpr int64_t kTestBatch = 100;
constexpr int64_t kLeastSide = 8;  // three pools halve it

struct Picture {
  Output pixels;  // uint8 [side, side, 3]
  Output label;   // int64
};

Output text(const Scope& s, const char* value) {
  return s.constant(Tensor::scalar(std::string(value)));
}

// Parses an Example, and decodes its picture.
Picture decode(const Scope& s, const Output& example, int64_t side) {
  // Without defaults, both features must be there.
  const Output parsed =
      s.op("ParseSingleExample",
           {example, s.constant(Tensor::vector<std::string>({})),
            s.constant(Tensor::vector<int64_t>({}))},
           {{"num_sparse", int64_t(0)},
            {"sparse_keys", std::vector<std::string>()},
            {"dense_keys", std::vector<std::string>{kPictureKey, kLabelKey}},
            {"sparse_types", std::vector<DataType>()},
            {"Tdense", std::vector{DataType::kString, DataType::kInt64}},
            {"dense_shapes",
             std::vector{PartialShape::scalar(), PartialShape::scalar()}}});
  const Output jpeg = s.op("DecodeJpeg", {parsed}, {{"channels", int64_t(3)}});
  const Output size =
      s.constant(Tensor::vector<int32_t>({int32_t(side), int32_t(side)}));
  const Output resized =
      s.op("ResizeBilinear", {ops::expand_dims(s, jpeg, 0), size},
           {{"half_pixel_centers", true}});
  const Output pixels = ops::reshape(
      s, resized,
      s.constant(Tensor::vector<int32_t>({int32_t(side), int32_t(side), 3})));
  return {ops::cast(s.named("pixels"), pixels, DataType::kUInt8),
          ops::identity(s.named("label"), Output(parsed.node(), 1))};
}

Output classify(const Scope& s, const VariableScope& vars,
                const Output& pictures, int64_t classes) {
  constexpr int64_t kChannels[] = {16, 32, 64};
  Output x = training::convolutions(s, vars, pictures, kChannels);
  x = training::hidden_layer(s, vars, layers::flatten(s, x), "hidden", 64);
  return layers::dense(s, vars, x, {.units = classes, .name = "logits"});
}

struct Judged {
  Output pictures, loss, accuracy;

  std::vector<training::Metric> metrics() const {
    return {{"loss", loss.name()}, {"accuracy", accuracy.name()}};
  }
};

// `pixels` and `labels` of a batch.
Judged judge(const Scope& s, const VariableScope& vars, const Output& pixels,
             const Output& labels, int64_t classes) {
  constexpr float kWhite = 255;
  Judged judged;
  judged.pictures =
      ops::mul(s, ops::cast(s, pixels, DataType::kFloat), 1 / kWhite);
  const Output logits = classify(s.sub_scope("model"), vars,
                                 ops::sub(s, judged.pictures, 0.5F), classes);
  const Output loss = losses::sparse_softmax_cross_entropy(s, logits, labels);
  judged.loss = ops::identity(s.named("loss"), loss);
  const Output is_right = ops::equal(s, ops::arg_max(s, logits, 1), labels);
  judged.accuracy = ops::reduce_mean(s.named("accuracy"),
                                     ops::cast(s, is_right, DataType::kFloat));
  return judged;
}

// Reads, decodes and mixes the pictures of the files.
Batches add_input(const Scope& s, const TaskOptions& options,
                  const DataSet& data, training::Trainee& trainee) {
  const int64_t seed = int64_t(options.seed);
  const Tensor names = Tensor::of<std::string>(
      {int64_t(data.train_files.size())}, data.train_files);
  const FileNames files =
      string_input_producer(s.named("files"), names, {.seeds = {seed, 1}});
  const Output reader = s.named("reader").op("TFRecordReaderV2", {});
  const Output read = s.op("ReaderReadV2", {reader, files.queue.handle});
  const Picture picture =
      decode(s.sub_scope("decode"), Output(read.node(), 1), options.side);
  // What is mixed: enough that a batch has all classes.
  const int64_t least = std::min(data.train_records / 2, 8 * options.batch);
  Batches batches =
      shuffle_batch(s.named("mix"), {picture.pixels, picture.label}, least,
                    {.batch_size = options.batch,
                     .capacity = least + 4 * options.batch,
                     .threads = options.threads},
                    {seed, 2});
  trainee.runners = files.runners;
  trainee.runners.insert(trainee.runners.end(), batches.runners.begin(),
                         batches.runners.end());
  return batches;
}

training::Phase test_phase(const Scope& s, const VariableScope& vars,
                           const TaskOptions& options, DataSet data) {
  const Output examples =
      ops::placeholder(s.named("examples"), DataType::kString, {-1});
  const auto decoded = map_fn(
      s.named("decode"),
      [&](const Scope& in, const Output& example) {
        const Picture picture = decode(in, example, options.side);
        return std::pair(ops::cast(in, picture.pixels, DataType::kInt32),
                         picture.label);
      },
      examples);
  if (!s.ok()) return {};
  const Judged judged = judge(s, vars, decoded.first, decoded.second,
                              int64_t(data.labels.size()));
  return {.feeds = {examples.name()},
          .metrics = judged.metrics(),
          .batch = [records = std::move(data.test_records)](
                       int64_t index) -> Result<std::vector<Tensor>> {
            const size_t first = size_t(index * kTestBatch);
            const size_t count =
                std::min(size_t(kTestBatch), records.size() - first);
            return std::vector<Tensor>{Tensor::of<std::string>(
                {int64_t(count)}, std::span(records).subspan(first, count))};
          }};
}

}  // namespace

Result<Task> make_task(const TaskOptions& options, DataSet data) {
  if (data.train_records < options.batch)
    return invalid_argument(
        "[train_jpegs] {} pictures do not fill a batch of {}",
        data.train_records, options.batch);
  if (options.side < kLeastSide)
    return invalid_argument(
        "[train_jpegs] pictures must be scaled to a side of {} or more, not {}",
        kLeastSide, options.side);
  Task task;
  training::Trainee& trainee = task.trainee;
  trainee = {.subject = {{"side", std::to_string(options.side)},
                         {"data", data.train_sum.describe(data.train_records,
                                                          "pictures")}},
             .init = "init",
             .train = "step"};
  trainee.steps_per_epoch = data.train_records / options.batch;
  trainee.examples = "pictures";
  const Scope s(task.graph);
  const VariableScope vars = VariableScope().with_reuse(Reuse::kAuto);

  const Scope train = s.sub_scope("train");
  const Batches batch = add_input(s.sub_scope("input"), options, data, trainee);
  if (!s.ok()) return s.status();
  const ScopedVariable counter = global_step(s, vars);
  const Judged judged = judge(train, vars, batch.components[0],
                              batch.components[1], int64_t(data.labels.size()));
  const Output rate = schedules::cosine_decay(
      train, options.learning_rate, counter.read(train),
      {.decay_steps = options.epochs * trainee.steps_per_epoch});
  optimizers::adam(vars, rate)
      .minimize(s.named("step"), judged.loss, vars.trainable_variables(),
                {.global_step = counter});
  trainee.step = {.metrics = judged.metrics(),
                  .batch = [](int64_t) { return std::vector<Tensor>(); },
                  .rows = options.batch};
  const Output summary =
      s.op("ImageSummary", {text(s, "pictures"), judged.pictures});
  trainee.summary = summary.name();
  trainee.numbers = {{"learning_rate", rate.name()}};
  const Scope reads = s.sub_scope("weights");
  for (const ScopedVariable& weights : vars.trainable_variables())
    trainee.spreads.push_back({weights.name(), weights.read(reads).name()});

  trainee.evaluation_batches =
      (int64_t(data.test_records.size()) + kTestBatch - 1) / kTestBatch;
  trainee.evaluation =
      test_phase(s.sub_scope("test"), vars, options, std::move(data));
  vars.initialize(s.named("init"));
  TAGFLOW_RETURN_IF_ERROR(s.status());
  return task;
}

}  // namespace tagflow::train_jpegs
