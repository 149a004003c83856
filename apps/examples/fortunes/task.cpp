#include "apps/examples/fortunes/task.h"

#include <algorithm>
#include <memory>

#include "apps/examples/fortunes/model.h"
#include "autodiff/train/clip.h"
#include "autodiff/train/optimizers.h"
#include "autodiff/train/schedule.h"
#include "graph/builder/builder.h"

namespace tagflow::fortunes {

using graph::Output;
using graph::Outputs;
using graph::Scope;
using graph::ScopedVariable;
using graph::VariableScope;
namespace ops = graph::ops;

namespace {

// Held-out texts are read in batches of pieces of this size.
constexpr int64_t kHeldOutPiece = 256, kHeldOutTogether = 32;
constexpr double kLongestGradient = 5;

Model model_of(const TaskOptions& options, const VariableScope& vars) {
  return {vars, {.units = options.units, .embedding = options.embedding}};
}

// An operation that trains once, and keeps the state for the next piece.
void add_step(const Scope& s, const VariableScope& vars, const Model& model,
              const TaskOptions& options, int64_t steps,
              training::Phase& phase) {
  const Output symbols = ops::placeholder(s.named("symbols"), DataType::kInt32,
                                          {options.streams, -1});
  const Output goes_on = ops::placeholder(s.named("goes_on"), DataType::kFloat,
                                          PartialShape::scalar());
  const std::vector<ScopedVariable> kept =
      model.stream_state(s, options.streams);
  Outputs before;
  for (const ScopedVariable& part : kept)
    before.push_back(ops::mul(s, part.read(s), goes_on));
  const Model::Loss loss = model.loss(s, symbols, before);
  const ScopedVariable counter = autodiff::global_step(s, vars);
  const Output rate = autodiff::schedules::cosine_decay(
      s, options.learning_rate, counter.read(s), {.decay_steps = steps});
  const Output update =
      autodiff::optimizers::adam(vars, rate)
          .minimize(s, loss.loss, vars.trainable_variables(),
                    {.global_step = counter,
                     .transform = autodiff::clipping_to(kLongestGradient)});
  if (!s.ok()) return;
  Outputs done = update;
  for (size_t i = 0; i < kept.size(); ++i)
    done.push_back(ops::assign(s, kept[i].parts()[0].variable, loss.state[i]));
  ops::group(s.named("step"), done);
  phase.feeds = {symbols.name(), goes_on.name()};
  phase.metrics = {{"loss", loss.loss.name()}};
}

// All pieces of the held-out texts, [n, kHeldOutPiece + 1].
std::vector<Symbols> pieces_of(const std::vector<Symbols>& texts) {
  const Symbols all = joined(texts);
  std::vector<Symbols> pieces;
  for (size_t i = 0; i + kHeldOutPiece < all.size(); i += kHeldOutPiece)
    pieces.emplace_back(all.begin() + int64_t(i),
                        all.begin() + int64_t(i) + kHeldOutPiece + 1);
  return pieces;
}

Tensor stacked(std::span<const Symbols> rows) {
  Tensor all =
      Tensor::make(DataType::kInt32, {int64_t(rows.size()), kHeldOutPiece + 1});
  int32_t* to = all.mutable_data<int32_t>();
  for (const Symbols& row : rows) to = std::copy(row.begin(), row.end(), to);
  return all;
}

}  // namespace

Result<Task> make_task(const TaskOptions& options, std::vector<Symbols> texts) {
  const auto held_out = std::stable_partition(
      texts.begin(), texts.end(),
      [](const Symbols& text) { return !is_held_out(text); });
  const std::vector<Symbols> pieces =
      pieces_of(std::vector<Symbols>(held_out, texts.end()));
  texts.erase(held_out, texts.end());
  if (pieces.empty())
    return invalid_argument(
        "[fortunes] the texts are too few: those for validation have fewer "
        "than {} symbols",
        kHeldOutPiece);
  training::DataSum data;
  for (const Symbols& text : texts) data.add(std::span(text));
  training::Subject subject = {
      {"model",
       fmt::format("{} units, embedding {}", options.units, options.embedding)},
      {"data", data.describe(int64_t(texts.size()), "texts")}};
  TAGFLOW_ASSIGN(Streams made,
                 Streams::create(std::move(texts), options.streams,
                                 options.piece, options.seed));
  const auto streams = std::make_shared<Streams>(std::move(made));

  Task task;
  task.trainee = {.subject = std::move(subject),
                  .init = "init",
                  .train = "step",
                  .steps_per_epoch = streams->steps_per_epoch(),
                  .examples = "pieces"};
  const Scope s(task.graph);
  const VariableScope vars;
  const Model model = model_of(options, vars);
  add_step(s, vars, model, options, options.epochs * streams->steps_per_epoch(),
           task.trainee.step);
  const Output read = ops::placeholder(s.named("held_out"), DataType::kInt32,
                                       {-1, kHeldOutPiece + 1});
  const Output loss = model.loss(s, read).loss;
  vars.initialize(s.named("init"));
  TAGFLOW_RETURN_IF_ERROR(s.status());

  task.trainee.step.batch = [streams](int64_t step) {
    const float goes_on = streams->goes_on(step) ? 1 : 0;
    return Result(std::vector{streams->at(step), Tensor::scalar(goes_on)});
  };
  task.trainee.evaluation = {
      .feeds = {read.name()},
      .metrics = {{"loss", loss.name()}},
      .batch = [pieces](int64_t i) {
        const size_t begin = size_t(i * kHeldOutTogether);
        const size_t count =
            std::min(size_t(kHeldOutTogether), pieces.size() - begin);
        return Result(
            std::vector{stacked(std::span(pieces).subspan(begin, count))});
      }};
  task.trainee.evaluation_batches =
      (int64_t(pieces.size()) + kHeldOutTogether - 1) / kHeldOutTogether;
  return task;
}

Result<graph::Graph> make_sampler(const TaskOptions& options, int64_t count,
                                  int64_t longest) {
  if (count < 1 || longest < 1)
    return invalid_argument(
        "[fortunes] {} texts of at most {} symbols cannot be drawn", count,
        longest);
  graph::Graph graph;
  const Scope s(graph);
  const VariableScope vars;
  const Output temperature = ops::placeholder(
      s.named("temperature"), DataType::kFloat, PartialShape::scalar());
  ops::identity(s.named("text"),
                model_of(options, vars).sample(s, count, longest, temperature));
  TAGFLOW_RETURN_IF_ERROR(s.status());
  return graph;
}

Result<std::vector<std::string>> draw_texts(actors::Session& session,
                                            float temperature,
                                            const actors::RunOptions& run) {
  TAGFLOW_ASSIGN(const std::vector<Tensor> results,
                 session.run({{"temperature", Tensor::scalar(temperature)}},
                             {"text"}, {}, run));
  const int64_t steps = results[0].dim(0), count = results[0].dim(1);
  const int32_t* drawn = results[0].data<int32_t>();
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    Symbols symbols;
    for (int64_t step = 0; step < steps; ++step)
      symbols.push_back(drawn[step * count + i]);
    texts.push_back(text_of(symbols));
  }
  return texts;
}

}  // namespace tagflow::fortunes
