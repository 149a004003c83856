#include "apps/examples/g2p/batches.h"

#include <algorithm>
#include <numeric>

#include "apps/shared/training/shuffle.h"

namespace tagflow::g2p {
namespace {

// The number of batches that are sorted by length together: with more, padding
// would be shorter, but batches would have the same words in every epoch.
constexpr int64_t kSorted = 64;

// Rows of different lengths, padded by 0.
Tensor padded(const std::vector<std::vector<int32_t>>& rows) {
  size_t longest = 0;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  Tensor all =
      Tensor::make(DataType::kInt32, {int64_t(rows.size()), int64_t(longest)});
  int32_t* to = all.mutable_data<int32_t>();
  for (const auto& row : rows) {
    std::fill(std::copy(row.begin(), row.end(), to), to + longest, 0);
    to += longest;
  }
  return all;
}

Tensor lengths(const std::vector<std::vector<int32_t>>& rows) {
  std::vector<int32_t> counts;
  for (const auto& row : rows) counts.push_back(int32_t(row.size()));
  return Tensor::of<int32_t>({int64_t(rows.size())}, counts);
}

}  // namespace

std::vector<Example> examples_of(const Lexicon& lexicon, Part part) {
  std::vector<Example> examples;
  for (const Word& word : lexicon.words) {
    if (part_of(word.spelling) != part) continue;
    for (const Phonemes& phonemes : word.pronunciations)
      examples.push_back({&word, &phonemes});
  }
  return examples;
}

std::vector<const Word*> words_of(const Lexicon& lexicon, Part part) {
  std::vector<const Word*> words;
  for (const Word& word : lexicon.words)
    if (part_of(word.spelling) == part) words.push_back(&word);
  std::stable_sort(words.begin(), words.end(), [](auto* a, auto* b) {
    return a->spelling.size() < b->spelling.size();
  });
  return words;
}

Batch make_batch(const std::vector<std::string>& spellings) {
  std::vector<std::vector<int32_t>> rows;
  for (const std::string& spelling : spellings)
    rows.push_back(letters_of(spelling).value());
  return {.letters = padded(rows), .letter_counts = lengths(rows)};
}

Batch make_batch(const std::vector<Example>& examples) {
  std::vector<std::string> spellings;
  std::vector<std::vector<int32_t>> rows;
  for (const Example& example : examples) {
    spellings.push_back(example.word->spelling);
    rows.push_back(*example.phonemes);
    rows.back().push_back(kEnd);
  }
  Batch batch = make_batch(spellings);
  batch.phonemes = padded(rows);
  batch.phoneme_counts = lengths(rows);
  return batch;
}

TrainingBatches::TrainingBatches(std::vector<Example> examples, int64_t size,
                                 uint64_t seed)
    : examples_(std::move(examples)),
      size_(size),
      seed_(seed),
      per_epoch_((int64_t(examples_.size()) + size - 1) / size) {}

void TrainingBatches::arrange(int64_t epoch) {
  std::mt19937_64 random = training::random_of_epoch(seed_, epoch);
  std::vector<size_t> order(examples_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  training::shuffle(order, random);
  const auto shorter = [this](size_t a, size_t b) {
    const auto key = [this](size_t i) {
      return std::pair(examples_[i].word->spelling.size(),
                       examples_[i].phonemes->size());
    };
    return key(a) < key(b);
  };
  arranged_.clear();
  const size_t chunk = size_t(kSorted * size_);
  for (size_t begin = 0; begin < order.size(); begin += chunk) {
    const size_t end = std::min(begin + chunk, order.size());
    std::stable_sort(order.begin() + int64_t(begin),
                     order.begin() + int64_t(end), shorter);
  }
  for (size_t begin = 0; begin < order.size(); begin += size_t(size_)) {
    const size_t end = std::min(begin + size_t(size_), order.size());
    arranged_.emplace_back(order.begin() + int64_t(begin),
                           order.begin() + int64_t(end));
  }
  training::shuffle(arranged_, random);
  epoch_ = epoch;
}

Batch TrainingBatches::at(int64_t step) {
  if (step / per_epoch_ != epoch_) arrange(step / per_epoch_);
  std::vector<Example> examples;
  for (const size_t i : arranged_[size_t(step % per_epoch_)])
    examples.push_back(examples_[i]);
  return make_batch(examples);
}

}  // namespace tagflow::g2p
