#include "apps/examples/g2p/lexicon.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tagflow::g2p {
namespace {

constexpr size_t kMostLetters = 64, kMostPhonemes = 256;

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// One entry, as a list of symbols and brackets.
class EntryScanner {
 public:
  explicit EntryScanner(std::string_view line) : rest_(line) {}

  // Whether the next character is `c`; skips it if so.
  bool take(char c) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Reads a quoted text; returns false if there is none.
  bool take_quoted(std::string_view& text) {
    if (!take('"')) return false;
    const size_t end = rest_.find('"');
    if (end == std::string_view::npos) return false;
    text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }
  // Reads up to a blank, a bracket or a quote; may be empty.
  std::string_view take_symbol() {
    skip_blanks();
    size_t size = 0;
    while (size < rest_.size() && !is_blank(rest_[size]) &&
           rest_[size] != '(' && rest_[size] != ')' && rest_[size] != '"')
      ++size;
    const std::string_view symbol = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return symbol;
  }
  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

struct Entry {
  std::string_view word;
  std::vector<std::string_view> phonemes;
};

// ("word" class (((phonemes) stress) ...))
bool scan_entry(std::string_view line, Entry& entry) {
  EntryScanner scanner(line);
  if (!scanner.take('(') || !scanner.take_quoted(entry.word)) return false;
  if (scanner.take_symbol().empty() || !scanner.take('(')) return false;
  while (scanner.take('(')) {
    if (!scanner.take('(')) return false;
    for (auto p = scanner.take_symbol(); !p.empty(); p = scanner.take_symbol())
      entry.phonemes.push_back(p);
    if (!scanner.take(')')) return false;
    const std::string_view stress = scanner.take_symbol();
    if (stress.empty() || !scanner.take(')')) return false;
  }
  return scanner.take(')') && scanner.take(')') && scanner.at_end() &&
         !entry.word.empty() && !entry.phonemes.empty() &&
         entry.phonemes.size() <= kMostPhonemes;
}

using Symbols = std::vector<std::string_view>;
using Entries = std::map<std::string_view, std::vector<Symbols>>;

Lexicon number_phonemes(const Entries& entries) {
  Lexicon lexicon;
  std::map<std::string_view, int32_t> numbers;
  for (const auto& [word, all] : entries)
    for (const Symbols& spoken : all)
      for (const std::string_view phoneme : spoken) numbers[phoneme] = 0;
  lexicon.phonemes.push_back("");
  for (auto& [name, number] : numbers) {
    number = int32_t(lexicon.phonemes.size());
    lexicon.phonemes.emplace_back(name);
  }
  for (const auto& [spelling, all] : entries) {
    Word& word = lexicon.words.emplace_back();
    word.spelling = spelling;
    for (const Symbols& spoken : all) {
      Phonemes& phonemes = word.pronunciations.emplace_back();
      for (const std::string_view p : spoken) phonemes.push_back(numbers[p]);
    }
  }
  return lexicon;
}

}  // namespace

Result<Lexicon> parse_lexicon(std::string_view text) {
  Entries entries;
  int64_t line_number = 0, skipped = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (++line_number == 1) {
      if (line != "MNCL")
        return invalid_argument(
            "[lexicon] no compiled lexicon of Festival: line 1 is not MNCL");
      continue;
    }
    if (EntryScanner(line).at_end()) continue;
    Entry entry;
    if (!scan_entry(line, entry))
      return invalid_argument("[lexicon] line {} is not an entry: {:.80}",
                              line_number, line);
    if (!letters_of(entry.word).ok()) {
      ++skipped;
      continue;
    }
    std::vector<Symbols>& all = entries[entry.word];
    if (std::find(all.begin(), all.end(), entry.phonemes) == all.end())
      all.push_back(entry.phonemes);
  }
  if (entries.empty())
    return invalid_argument("[lexicon] no word of the letters a to z");
  Lexicon lexicon = number_phonemes(entries);
  lexicon.skipped = skipped;
  return lexicon;
}

Result<std::vector<int32_t>> letters_of(std::string_view word) {
  if (word.empty() || word.size() > kMostLetters ||
      !std::all_of(word.begin(), word.end(), is_letter))
    return invalid_argument(
        "[g2p] \"{:.80}\" is not a word of 1 to {} letters, a to z", word,
        kMostLetters);
  std::vector<int32_t> letters;
  for (const char c : word) letters.push_back(1 + (c - 'a'));
  return letters;
}

std::string text_of(const Lexicon& lexicon, const Phonemes& phonemes) {
  std::string text;
  for (const int32_t phoneme : phonemes) {
    if (!text.empty()) text += ' ';
    text += lexicon.phonemes.at(size_t(phoneme));
  }
  return text;
}

Part part_of(std::string_view word) {
  // FNV-1a of 64 bits, whose low digits are mixed well.
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : word) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  const uint64_t share = hash % 100;
  if (share < 10) return Part::kTest;
  return share < 12 ? Part::kValidation : Part::kTraining;
}

int64_t edit_distance(const Phonemes& from, const Phonemes& to) {
  // One row of the table, that of a prefix of `from`.
  std::vector<int64_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (const int32_t phoneme : from) {
    int64_t diagonal = std::exchange(row[0], row[0] + 1);
    for (size_t j = 0; j < to.size(); ++j) {
      const int64_t replaced = diagonal + (phoneme == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

void ErrorCount::add(const Word& word, const Phonemes& said) {
  const Phonemes* nearest = nullptr;
  int64_t fewest = 0;
  for (const Phonemes& reference : word.pronunciations) {
    const int64_t distance = edit_distance(said, reference);
    if (nearest != nullptr && distance >= fewest) continue;
    nearest = &reference;
    fewest = distance;
  }
  if (nearest == nullptr) return;
  ++words;
  wrong_words += fewest > 0 ? 1 : 0;
  phonemes += int64_t(nearest->size());
  edits += fewest;
}

double ErrorCount::phoneme_rate() const {
  return phonemes == 0 ? 0 : double(edits) / double(phonemes);
}

double ErrorCount::word_rate() const {
  return words == 0 ? 0 : double(wrong_words) / double(words);
}

}  // namespace tagflow::g2p
