// Batches of words, padded to one length.
#pragma once

#include <vector>

#include "apps/examples/g2p/lexicon.h"
#include "graph/tensor.h"

namespace tagflow::g2p {

// A word with one of its pronunciations.
struct Example {
  const Word* word = nullptr;
  const Phonemes* phonemes = nullptr;
};
// All pronunciations of the words of a part. Points into the lexicon.
std::vector<Example> examples_of(const Lexicon& lexicon, Part part);
// The words of a part, each once, shorter ones first.
std::vector<const Word*> words_of(const Lexicon& lexicon, Part part);

// The feeds of the model's placeholders.
struct Batch {
  Tensor letters;         // int32 [n, S], padded by kPadding
  Tensor letter_counts;   // int32 [n]
  Tensor phonemes;        // int32 [n, T], one kEnd or more after each
  Tensor phoneme_counts;  // int32 [n], with one end
};
Batch make_batch(const std::vector<Example>& examples);
// A batch with letters only. REQUIRES: letters_of() accepts each spelling.
Batch make_batch(const std::vector<std::string>& spellings);

// An endless list of batches of examples. The seed determines the order, so a
// resumed training gets the same batches. An epoch has each example once; the
// words of a batch have about the same length, so that padding is short. It
// caches one epoch. Thread-compatible.
class TrainingBatches {
 public:
  // REQUIRES: there are examples; size >= 1
  TrainingBatches(std::vector<Example> examples, int64_t size, uint64_t seed);

  int64_t per_epoch() const { return per_epoch_; }
  // Of step 0, 1, ...
  Batch at(int64_t step);

 private:
  void arrange(int64_t epoch);

  const std::vector<Example> examples_;
  const int64_t size_;
  const uint64_t seed_;
  const int64_t per_epoch_;
  int64_t epoch_ = -1;
  std::vector<std::vector<size_t>> arranged_;  // of that epoch
};

}  // namespace tagflow::g2p
