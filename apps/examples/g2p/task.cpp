#include "apps/examples/g2p/task.h"

#include <algorithm>

#include "apps/examples/g2p/batches.h"
#include "apps/examples/g2p/model.h"
#include "autodiff/train/clip.h"
#include "autodiff/train/optimizers.h"
#include "autodiff/train/schedule.h"
#include "graph/builder/builder.h"

namespace tagflow::g2p {

using graph::Output;
using graph::Scope;
using graph::VariableScope;

namespace {

// Words that are evaluated or tested together.
constexpr int64_t kTogether = 256;
constexpr double kLongestGradient = 5;

std::vector<Tensor> feeds_of(Batch batch) {
  return {std::move(batch.letters), std::move(batch.letter_counts),
          std::move(batch.phonemes), std::move(batch.phoneme_counts)};
}

training::Phase phase_of(const Output& loss, training::BatchFn batch) {
  return {.feeds = {"letters", "letter_counts", "phonemes", "phoneme_counts"},
          .metrics = {{"loss", loss.name()}},
          .batch = std::move(batch)};
}

Search search_of(const Model::Hypotheses& hypotheses) {
  return {hypotheses.phonemes.name(), hypotheses.scores.name()};
}

// Shorter ones first, to reduce padding.
std::vector<Example> sorted(std::vector<Example> examples) {
  std::stable_sort(examples.begin(), examples.end(),
                   [](const Example& a, const Example& b) {
                     return a.word->spelling.size() < b.word->spelling.size();
                   });
  return examples;
}

training::Subject subject_of(const TaskOptions& options,
                             const Lexicon& lexicon) {
  training::DataSum data;
  for (const Word& word : lexicon.words) {
    data.add(word.spelling);
    for (const Phonemes& said : word.pronunciations) data.add(std::span(said));
  }
  return {{"model", fmt::format("{} units, embedding {}", options.units,
                                options.embedding)},
          {"data", data.describe(int64_t(lexicon.words.size()), "words")}};
}

}  // namespace

Result<Task> make_task(const TaskOptions& options,
                       std::shared_ptr<const Lexicon> lexicon) {
  const auto train = examples_of(*lexicon, Part::kTraining);
  const auto held_out = sorted(examples_of(*lexicon, Part::kValidation));
  if (train.empty() || held_out.empty() ||
      words_of(*lexicon, Part::kTest).empty())
    return invalid_argument(
        "[g2p] {} words are too few: none is left to train, to choose or to "
        "test with",
        lexicon->words.size());
  const int64_t phonemes = int64_t(lexicon->phonemes.size());
  if (options.batch < 1 || options.width < 1 || options.width > phonemes)
    return invalid_argument(
        "[g2p] a batch has 1 word or more, not {}, and the beam 1 to {} "
        "hypotheses, not {}",
        options.batch, phonemes, options.width);
  const auto batches =
      std::make_shared<TrainingBatches>(train, options.batch, options.seed);

  Task task;
  const Scope s(task.graph);
  const VariableScope vars;
  const Model model(vars, {.phonemes = phonemes,
                           .units = options.units,
                           .embedding = options.embedding});
  const Words words = words_to_feed(s);
  const Output loss = model.loss(s, words, spoken_to_feed(s));
  const auto counter = autodiff::global_step(s, vars);
  const Output rate = autodiff::schedules::cosine_decay(
      s, options.learning_rate, counter.read(s),
      {.decay_steps = options.epochs * batches->per_epoch()});
  autodiff::optimizers::adam(vars, rate)
      .minimize(s.named("step"), loss, vars.trainable_variables(),
                {.global_step = counter,
                 .transform = autodiff::clipping_to(kLongestGradient)});
  task.greedy = search_of(model.pronounce(s.sub_scope("greedy"), words, 1));
  task.beam =
      search_of(model.pronounce(s.sub_scope("beam"), words, options.width));
  vars.initialize(s.named("init"));
  TAGFLOW_RETURN_IF_ERROR(s.status());

  const int64_t count = (int64_t(held_out.size()) + kTogether - 1) / kTogether;
  // The batches point into the lexicon.
  task.trainee = {
      .subject = subject_of(options, *lexicon),
      .init = "init",
      .train = "step",
      .step = phase_of(loss,
                       [batches, lexicon](int64_t step) {
                         return Result(feeds_of(batches->at(step - 1)));
                       }),
      .evaluation = phase_of(
          loss,
          [held_out, lexicon](int64_t i) {
            const auto begin = held_out.begin() + i * kTogether;
            const auto end =
                begin + std::min(kTogether, held_out.end() - begin);
            return Result(
                feeds_of(make_batch(std::vector<Example>(begin, end))));
          }),
      .evaluation_batches = count,
      .steps_per_epoch = batches->per_epoch(),
      .examples = "words"};
  return task;
}

Result<std::vector<Pronunciation>> pronounce(
    actors::Session& session, const Search& search,
    const std::vector<std::string>& spellings, const actors::RunOptions& run) {
  for (const std::string& spelling : spellings)
    TAGFLOW_RETURN_IF_ERROR(letters_of(spelling).status());
  if (spellings.empty()) return std::vector<Pronunciation>();
  const Batch batch = make_batch(spellings);
  TAGFLOW_ASSIGN(const std::vector<Tensor> results,
                 session.run({{"letters", batch.letters},
                              {"letter_counts", batch.letter_counts}},
                             {search.phonemes, search.scores}, {}, run));
  const int64_t width = results[0].dim(1), limit = results[0].dim(2);
  std::vector<Pronunciation> all(spellings.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const int32_t* said =
        results[0].data<int32_t>() + int64_t(i) * width * limit;
    all[i].phonemes.assign(said, std::find(said, said + limit, kEnd));
    all[i].log_probability = results[1].data<float>()[int64_t(i) * width];
  }
  return all;
}

Result<ErrorCount> count_errors(actors::Session& session, const Search& search,
                                const Lexicon& lexicon, Part part,
                                const actors::RunOptions& run) {
  const std::vector<const Word*> words = words_of(lexicon, part);
  ErrorCount errors;
  for (size_t begin = 0; begin < words.size(); begin += size_t(kTogether)) {
    const size_t end = std::min(begin + size_t(kTogether), words.size());
    std::vector<std::string> spellings;
    for (size_t i = begin; i < end; ++i)
      spellings.push_back(words[i]->spelling);
    TAGFLOW_ASSIGN(const std::vector<Pronunciation> said,
                   pronounce(session, search, spellings, run));
    for (size_t i = begin; i < end; ++i)
      errors.add(*words[i], said[i - begin].phonemes);
  }
  return errors;
}

}  // namespace tagflow::g2p
