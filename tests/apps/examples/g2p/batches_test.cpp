#include "apps/examples/g2p/batches.h"

#include <doctest/doctest.h>

#include <set>

using namespace tagflow;
using namespace tagflow::g2p;

namespace {

// Words "a", "b", ..., "aa", ...: of 1 to 3 letters, each said as it is spelt.
Lexicon spelt(int count) {
  Lexicon lexicon;
  lexicon.phonemes.assign(27, "p");
  for (int i = 0; i < count; ++i) {
    Word& word = lexicon.words.emplace_back();
    for (int rest = i; rest >= 0; rest = rest / 26 - 1)
      word.spelling += char('a' + rest % 26);
    word.pronunciations.push_back(letters_of(word.spelling).value());
  }
  return lexicon;
}

std::vector<int32_t> values(const Tensor& tensor) {
  const auto flat = tensor.flat<int32_t>();
  return {flat.begin(), flat.end()};
}

}  // namespace

TEST_CASE("g2p: a batch is padded, and each pronunciation has its end") {
  const Word cat{"cat", {{4, 1, 5}}}, a{"a", {{2}, {3}}};
  const Batch batch = make_batch(std::vector<Example>{
      {&cat, &cat.pronunciations[0]}, {&a, &a.pronunciations[1]}});
  CHECK(batch.letters.shape() == Shape{2, 3});
  CHECK(values(batch.letters) == std::vector<int32_t>{3, 1, 20, 1, 0, 0});
  CHECK(values(batch.letter_counts) == std::vector<int32_t>{3, 1});
  CHECK(batch.phonemes.shape() == Shape{2, 4});
  CHECK(values(batch.phonemes) == std::vector<int32_t>{4, 1, 5, 0, 3, 0, 0, 0});
  CHECK(values(batch.phoneme_counts) == std::vector<int32_t>{4, 2});
}

TEST_CASE("g2p: an epoch has each example once, in an order of its own") {
  const Lexicon lexicon = spelt(1000);
  const auto examples = examples_of(lexicon, Part::kTraining);
  TrainingBatches batches(examples, 7, 3);
  REQUIRE(batches.per_epoch() == (int64_t(examples.size()) + 6) / 7);
  std::vector<std::vector<int32_t>> orders;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    std::multiset<std::vector<int32_t>> seen;
    auto& order = orders.emplace_back();
    for (int64_t i = 0; i < batches.per_epoch(); ++i) {
      const Batch batch = batches.at(epoch * batches.per_epoch() + i);
      const auto letters = values(batch.letters);
      order.insert(order.end(), letters.begin(), letters.end());
      const int64_t width = batch.letters.dim(1);
      for (int64_t row = 0; row < batch.letters.dim(0); ++row)
        seen.insert({letters.begin() + row * width,
                     letters.begin() + (row + 1) * width});
    }
    CHECK(seen.size() == examples.size());
  }
  CHECK(orders[0] != orders[1]);
}

TEST_CASE("g2p batches: a training that goes on gets the same batches") {
  const Lexicon lexicon = spelt(500);
  const auto examples = examples_of(lexicon, Part::kTraining);
  TrainingBatches all(examples, 8, 5), later(examples, 8, 5),
      other(examples, 8, 6);
  const int64_t step = all.per_epoch() + 3;
  for (int64_t i = 0; i < step; ++i) (void)all.at(i);
  const auto expected = values(all.at(step).letters);
  CHECK(values(later.at(step).letters) == expected);
  CHECK(values(other.at(step).letters) != expected);
}
