#include "apps/examples/g2p/model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "actors/session/session.h"
#include "apps/examples/g2p/batches.h"
#include "autodiff/train/clip.h"
#include "autodiff/train/optimizers.h"
#include "graph/builder/builder.h"

using namespace tagflow;
using namespace tagflow::g2p;
using graph::Output;

namespace {

constexpr int kWidth = 3;
const std::vector<std::string> kSpellings = {"a",  "b",   "ab",  "ba",
                                             "ac", "cab", "bcc", "acbb"};

// A small model, of phonemes 1 to 3 for the letters a to c: "c" is silent
// before another letter, so that words may be longer than what is said.
struct Small {
  std::vector<Word> words;
  std::vector<Example> examples;
  graph::Graph graph;
  graph::Scope s{graph};
  Output loss, train, init;
  Output no_end;  // an operation after which the end is never likely
  Model::Hypotheses greedy, beam;
  std::unique_ptr<actors::Session> session;

  Small() {
    for (const std::string& spelling : kSpellings) {
      Word& word = words.emplace_back();
      word.spelling = spelling;
      Phonemes& said = word.pronunciations.emplace_back();
      for (size_t i = 0; i < spelling.size(); ++i)
        if (spelling[i] != 'c' || i + 1 == spelling.size())
          said.push_back(1 + (spelling[i] - 'a'));
    }
    for (const Word& word : words)
      examples.push_back({&word, &word.pronunciations[0]});

    const graph::VariableScope vars = graph::VariableScope().with_initializer(
        graph::initializers::glorot_uniform({.seed = 1, .seed2 = 7}));
    const Model model(vars, {.phonemes = 4, .units = 16, .embedding = 8});
    const Words fed = words_to_feed(s);
    loss = model.loss(s, fed, spoken_to_feed(s));
    train = autodiff::optimizers::adam(vars, 0.02)
                .minimize(s, loss, vars.trainable_variables(),
                          {.transform = autodiff::clipping_to(5)});
    greedy = model.pronounce(s, fed, 1);
    beam = model.pronounce(s, fed, kWidth);
    const auto bias = vars.with_reuse(graph::Reuse::kAlways)
                          .sub_scope("next")
                          .get(s, "bias", {4});
    no_end = graph::ops::assign(s, bias.parts()[0].variable,
                                {-100.0f, 0.0f, 0.0f, 0.0f});
    init = vars.initialize(s);
    REQUIRE_MESSAGE(s.ok(), s.status().to_string());
    actors::SessionOptions options;
    options.seed = 3;
    session = actors::Session::create(options).value();
    REQUIRE(session->extend(graph).ok());
    run({}, init);
  }

  std::vector<Tensor> run(const graph::Outputs& fetches, const Output& target,
                          const Batch* batch = nullptr) {
    std::vector<actors::Feed> feeds;
    if (batch != nullptr)
      feeds = {{"letters", batch->letters},
               {"letter_counts", batch->letter_counts}};
    if (batch != nullptr && batch->phonemes.valid()) {
      feeds.emplace_back("phonemes", batch->phonemes);
      feeds.emplace_back("phoneme_counts", batch->phoneme_counts);
    }
    std::vector<std::string> names, targets;
    for (const Output& fetch : fetches) names.push_back(fetch.name());
    if (target.valid()) targets.push_back(target.name());
    auto results = session->run(feeds, names, targets);
    REQUIRE_MESSAGE(results.ok(), results.status().to_string());
    return *results;
  }
  float loss_of(const Batch& batch) {
    return run({loss}, {}, &batch)[0].scalar_value<float>();
  }
  std::vector<Tensor> hypotheses(const Model::Hypotheses& of,
                                 const Batch& batch) {
    return run({of.phonemes, of.scores, of.steps}, {}, &batch);
  }
  void train_for(int steps) {
    const Batch batch = make_batch(examples);
    for (int i = 0; i < steps; ++i) run({}, train, &batch);
  }
};

// Hypothesis j of word i, up to its end; whether it has one.
std::pair<Phonemes, bool> hypothesis(const std::vector<Tensor>& results,
                                     int64_t i, int64_t j) {
  const Tensor& all = results[0];
  const int64_t steps = results[2].scalar_value<int32_t>();
  const int32_t* row = all.data<int32_t>() + (i * all.dim(1) + j) * all.dim(2);
  const int32_t* end = std::find(row, row + steps, kEnd);
  return {Phonemes(row, end), end != row + steps};
}

}  // namespace

TEST_CASE("g2p: the loss begins as a guess's, and trained words are said") {
  Small small;
  const Batch batch = make_batch(small.examples);
  CHECK(small.loss_of(batch) == doctest::Approx(std::log(4)).epsilon(0.2));
  small.train_for(150);
  CHECK(small.loss_of(batch) < 0.05f);
  for (const auto* of : {&small.greedy, &small.beam}) {
    const auto results = small.hypotheses(*of, make_batch(kSpellings));
    for (size_t i = 0; i < kSpellings.size(); ++i) {
      INFO(kSpellings[i]);
      const auto [said, ends] = hypothesis(results, int64_t(i), 0);
      CHECK(ends);
      CHECK(said == small.words[i].pronunciations[0]);
    }
    // The longest has three phonemes and the end.
    CHECK(results[2].scalar_value<int32_t>() == 4);
  }
}

TEST_CASE("g2p: the padding of a batch changes no loss and no hypothesis") {
  Small small;
  small.train_for(10);
  const Batch all = make_batch(small.examples);
  double sum = 0, count = 0;
  for (const Example& example : small.examples) {
    const double ends = double(example.phonemes->size() + 1);
    sum += ends * double(small.loss_of(make_batch({example})));
    count += ends;
  }
  CHECK(small.loss_of(all) == doctest::Approx(sum / count).epsilon(1e-5));

  const auto together = small.hypotheses(small.beam, make_batch(kSpellings));
  for (size_t i = 0; i < kSpellings.size(); ++i) {
    const auto alone =
        small.hypotheses(small.beam, make_batch(std::vector{kSpellings[i]}));
    if (!hypothesis(alone, 0, 0).second) continue;  // longer in a batch
    CHECK(hypothesis(alone, 0, 0) == hypothesis(together, int64_t(i), 0));
  }
}

TEST_CASE("g2p: the score of a hypothesis is what the loss says of it") {
  Small small;
  small.train_for(30);
  const Batch batch = make_batch(kSpellings);
  const auto results = small.hypotheses(small.beam, batch);
  const auto scores = results[1].flat<float>();
  int compared = 0;
  for (size_t i = 0; i < kSpellings.size(); ++i) {
    for (int j = 0; j < kWidth; ++j) {
      const auto [said, ends] = hypothesis(results, int64_t(i), j);
      if (!ends) continue;
      const float loss = small.loss_of(make_batch({{&small.words[i], &said}}));
      CHECK(-loss * float(said.size() + 1) ==
            doctest::Approx(scores[i * kWidth + size_t(j)]).epsilon(1e-4));
      ++compared;
    }
  }
  CHECK(compared >= int(kSpellings.size()));
}

TEST_CASE("g2p: a beam finds what is at least as likely as the greedy one") {
  Small small;
  small.train_for(5);
  const Batch batch = make_batch(kSpellings);
  const auto greedy = small.hypotheses(small.greedy, batch);
  const auto beam = small.hypotheses(small.beam, batch);
  double gain = 0;
  for (size_t i = 0; i < kSpellings.size(); ++i) {
    const auto scores = beam[1].flat<float>().subspan(i * kWidth, kWidth);
    CHECK(scores[0] >= scores[1]);
    CHECK(scores[1] >= scores[2]);
    gain += double(scores[0] - greedy[1].flat<float>()[i]);
  }
  CHECK(gain > 0);
}

TEST_CASE("g2p: a decoder that never says the end is cut off") {
  Small small;
  small.run({}, small.no_end);
  const Batch batch = make_batch(std::vector<std::string>{"ab"});
  const auto results = small.hypotheses(small.greedy, batch);
  CHECK(results[2].scalar_value<int32_t>() == 2 * 2 + 8);
  CHECK_FALSE(hypothesis(results, 0, 0).second);
}
