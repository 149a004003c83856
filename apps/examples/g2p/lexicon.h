// Words and how they are pronounced, from a lexicon of Festival.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::g2p {

// Letters and phonemes are numbers: 0 pads letters and ends phonemes. A letter
// is 1 for 'a' up to 26 for 'z'.
inline constexpr int32_t kPadding = 0, kEnd = 0;
inline constexpr int32_t kLetters = 27;

using Phonemes = std::vector<int32_t>;

struct Word {
  std::string spelling;
  std::vector<Phonemes> pronunciations;  // one or more, each different
};

struct Lexicon {
  // Their names by number; that of kEnd is "". In alphabetical order.
  std::vector<std::string> phonemes;
  std::vector<Word> words;  // in alphabetical order, each once
  int64_t skipped = 0;      // entries with other characters than a to z
};

// Parses the text of a compiled lexicon: a line MNCL, then an entry in each
// line, ("word" class (((phonemes) stress) ...)), whose syllables are joined.
// Stress marks are dropped, and so are entries of words with other characters
// than a to z. Returns InvalidArgument, with the line, if the text is
// malformed, an entry has more than 256 phonemes, or no entry is left.
// Thread-safe.
Result<Lexicon> parse_lexicon(std::string_view text);

// Numbers for the letters of a word. Returns InvalidArgument unless it has one
// to 64 letters, a to z. Thread-safe.
Result<std::vector<int32_t>> letters_of(std::string_view word);

// "k ae t".
std::string text_of(const Lexicon& lexicon, const Phonemes& phonemes);

enum class Part : uint8_t { kTraining, kValidation, kTest };
// The part of a word depends on its letters only: 10% of the words are for the
// test, 2% for validation. All pronunciations of a word are in one part.
Part part_of(std::string_view word);

// The number of phonemes to insert, remove or replace to get from one to the
// other.
int64_t edit_distance(const Phonemes& from, const Phonemes& to);

// Counts errors in pronunciations, compared with the nearest one in the
// lexicon: gives a phoneme error rate and a word error rate.
struct ErrorCount {
  int64_t words = 0, wrong_words = 0;
  int64_t phonemes = 0, edits = 0;

  void add(const Word& word, const Phonemes& said);
  double phoneme_rate() const;  // 0 without phonemes
  double word_rate() const;
};

}  // namespace tagflow::g2p
