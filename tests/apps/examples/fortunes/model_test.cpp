#include "apps/examples/fortunes/model.h"

#include <doctest/doctest.h>

#include <cmath>

#include "apps/examples/fortunes/task.h"
#include "autodiff/train/optimizers.h"
#include "graph/builder/builder.h"

using namespace tagflow;
using namespace tagflow::fortunes;
using graph::Output;

namespace {

// A small model that is trained on one text, and draws.
struct Small {
  graph::Graph graph;
  graph::Scope s{graph};
  Output symbols, temperature, loss, whole, halves, train, drawn, never_ends;
  std::unique_ptr<actors::Session> session;

  Small() {
    using namespace graph::ops;  // NOLINT
    const graph::VariableScope vars = graph::VariableScope().with_initializer(
        graph::initializers::glorot_uniform({.seed = 1, .seed2 = 2}));
    const Model model(vars, {.units = 24, .embedding = 8});
    symbols = placeholder(s.named("symbols"), DataType::kInt32, {-1, -1});
    temperature = placeholder(s.named("temperature"), DataType::kFloat,
                              PartialShape::scalar());
    loss = model.loss(s, symbols).loss;
    train = autodiff::optimizers::adam(vars, 0.02)
                .minimize(s, loss, vars.trainable_variables());
    // The same 12 symbols in one piece, and in two whose state goes on.
    const Output text = constant(
        s,
        Tensor::of<int32_t>({1, 13}, {0, 5, 6, 7, 8, 9, 5, 6, 7, 8, 9, 5, 0}));
    whole = model.loss(s, text).loss;
    const auto first = model.loss(s, slice(s, text, {0, 0}, {1, 7}));
    const auto second =
        model.loss(s, slice(s, text, {0, 6}, {1, 7}), first.state);
    halves = mul(s, add(s, first.loss, second.loss), 0.5);
    drawn = model.sample(s, 4, 40, temperature);
    const auto bias = vars.with_reuse(graph::Reuse::kAlways)
                          .sub_scope("next")
                          .get(s, "bias", {kSymbols});
    std::vector<float> biases(kSymbols, 0);
    biases[kEnd] = -1000;
    never_ends = assign(s, bias.parts()[0].variable,
                        constant(s, Tensor::of<float>({kSymbols}, biases)));
    const Output init = vars.initialize(s);
    REQUIRE_MESSAGE(s.ok(), s.status().to_string());
    actors::SessionOptions options;
    options.seed = 3;
    session = actors::Session::create(options).value();
    REQUIRE(session->extend(graph).ok());
    REQUIRE(session->run({}, {}, {init.name()}).ok());
  }

  Tensor run(const Output& fetch, const std::vector<actors::Feed>& feeds = {},
             const Output& target = {}) {
    std::vector<std::string> fetches, targets;
    if (fetch.valid()) fetches.push_back(fetch.name());
    if (target.valid()) targets.push_back(target.name());
    auto results = session->run(feeds, fetches, targets);
    REQUIRE_MESSAGE(results.ok(), results.status().to_string());
    return results->empty() ? Tensor() : results->front();
  }
  // The texts of one drawing.
  std::vector<std::string> draw(float at) {
    const Tensor all = run(drawn, {{"temperature", Tensor::scalar(at)}});
    std::vector<std::string> texts;
    for (int64_t i = 0; i < all.dim(1); ++i) {
      Symbols one;
      for (int64_t step = 0; step < all.dim(0); ++step)
        one.push_back(all.data<int32_t>()[step * all.dim(1) + i]);
      texts.push_back(text_of(one));
    }
    return texts;
  }
};

const char* const kText = "to be or not";

Tensor text_tensor() {
  Symbols symbols = joined({symbols_of(kText)});
  return Tensor::of<int32_t>({1, int64_t(symbols.size())}, symbols);
}

}  // namespace

TEST_CASE("fortunes: a small model learns its text and ends with it") {
  Small small;
  const std::vector<actors::Feed> fed = {{"symbols", text_tensor()}};
  const float before = small.run(small.loss, fed).scalar_value<float>();
  CHECK(before == doctest::Approx(std::log(kSymbols)).epsilon(0.1));
  for (int i = 0; i < 200; ++i) small.run({}, fed, small.train);
  CHECK(small.run(small.loss, fed).scalar_value<float>() < 0.1f);
  for (const std::string& text : small.draw(0.05f)) CHECK(text == kText);
  const Tensor drawn =
      small.run(small.drawn, {{"temperature", Tensor::scalar(0.05f)}});
  CHECK(drawn.dim(0) == int64_t(std::string_view(kText).size()) + 1);
}

TEST_CASE("fortunes: a state that goes on is as good as one long piece") {
  Small small;
  CHECK(small.run(small.halves).scalar_value<float>() ==
        doctest::Approx(small.run(small.whole).scalar_value<float>()));
}

TEST_CASE("fortunes: draws differ by stream, by run and by seed only") {
  Small small, same;
  const auto first = small.draw(1), second = small.draw(1);
  CHECK(first[0] != first[1]);
  CHECK(first != second);
  CHECK(same.draw(1) == first);
}

TEST_CASE("fortunes: a text without an end is cut off") {
  Small small;
  small.run({}, {}, small.never_ends);
  const Tensor drawn =
      small.run(small.drawn, {{"temperature", Tensor::scalar(1.0f)}});
  CHECK(drawn.dim(0) == 40);
}

TEST_CASE("fortunes: tasks that make no sense are refused") {
  const std::vector<Symbols> few(3, symbols_of("a"));
  auto task = make_task({}, few);
  CHECK(task.status().to_string().find("too few") != std::string::npos);
  CHECK_FALSE(make_sampler({}, 0, 10).ok());
  CHECK_FALSE(make_sampler({.units = 0}, 1, 10).ok());
}
