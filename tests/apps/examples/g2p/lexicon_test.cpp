#include "apps/examples/g2p/lexicon.h"

#include <doctest/doctest.h>

using namespace tagflow;
using namespace tagflow::g2p;

namespace {

const char* const kText =
    "MNCL\n"
    "(\"cat\" nil (((k ae t) 1)))\n"
    "(\"a\" dt (((ax) 0)))\n"
    "(\"a\" n (((ey) 1)))\n"
    "(\"a\" v (((ey) 0)))\n"
    "(\"Ab\" nil (((ey) 1) ((b iy) 1)))\n"
    "\n"
    "(\"taka\" nil (((t ae) 1) ((k ax) 0)))\n";

bool fails_with(const std::string& text, const char* part) {
  const auto lexicon = parse_lexicon(text);
  INFO(lexicon.status().to_string());
  return !lexicon.ok() &&
         lexicon.status().message().find(part) != std::string_view::npos;
}

}  // namespace

TEST_CASE("a lexicon has each word once, with all of its pronunciations") {
  const auto lexicon = parse_lexicon(kText);
  REQUIRE_MESSAGE(lexicon.ok(), lexicon.status().to_string());
  CHECK(lexicon->phonemes ==
        std::vector<std::string>{"", "ae", "ax", "ey", "k", "t"});
  CHECK(lexicon->skipped == 1);
  REQUIRE(lexicon->words.size() == 3);
  CHECK(lexicon->words[0].spelling == "a");
  // Two of the three differ by their stress alone.
  CHECK(lexicon->words[0].pronunciations == std::vector<Phonemes>{{2}, {3}});
  CHECK(text_of(*lexicon, lexicon->words[2].pronunciations[0]) == "t ae k ax");
}

TEST_CASE("g2p: a text that is not a lexicon is refused with its line") {
  CHECK(fails_with("", "no word"));
  CHECK(fails_with("MNCL\n", "no word"));
  CHECK(fails_with("hello\n", "line 1 is not MNCL"));
  const std::string head = "MNCL\n(\"a\" n (((ey) 1)))\n";
  for (const char* line :
       {"(\"b\" nil (((b iy) 1))", "(\"b\" nil (((b iy) 1))))",
        "(\"b\" nil ((b iy) 1))", "(\"b\" nil ())", "(\"b\" (((b iy) 1)))",
        "(\"b nil (((b iy) 1)))", "(b nil (((b iy) 1)))",
        "(\"\" nil (((b iy) 1)))", "(\"b\" nil (((b iy))))", "(", "\"",
        "(\"b\" nil (((b \"iy\") 1)))"}) {
    INFO(line);
    CHECK(fails_with(head + line + "\n", "line 3 is not an entry"));
  }
  std::string many;
  for (int i = 0; i < 257; ++i) many += "iy ";
  CHECK(fails_with(head + "(\"b\" nil (((" + many + ") 1)))",
                   "line 3 is not an entry"));
}

TEST_CASE("g2p: words have 1 to 64 letters from a to z") {
  CHECK(letters_of("az").value() == std::vector<int32_t>{1, 26});
  CHECK(letters_of(std::string(64, 'x')).ok());
  for (const std::string word : {"", "A", "it's", "\xc3\xa4"})
    CHECK_FALSE(letters_of(word).ok());
  CHECK_FALSE(letters_of(std::string(65, 'x')).ok());
}

TEST_CASE("g2p: the part of the data set follows from a word's letters") {
  int counts[3] = {};
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'z'; ++b)
      for (char c = 'a'; c <= 'z'; ++c)
        ++counts[int(part_of(std::string{a, b, c}))];
  const double all = 26 * 26 * 26;
  CHECK(counts[int(Part::kTest)] / all == doctest::Approx(0.1).epsilon(0.1));
  CHECK(counts[int(Part::kValidation)] / all ==
        doctest::Approx(0.02).epsilon(0.2));
}

TEST_CASE("g2p: edits are counted against the nearest pronunciation") {
  CHECK(edit_distance({}, {}) == 0);
  CHECK(edit_distance({1, 2, 3}, {}) == 3);
  CHECK(edit_distance({1, 2, 3}, {1, 3}) == 1);
  CHECK(edit_distance({2, 1, 2, 3}, {1, 2, 4, 5}) == 3);
  const Word word{"w", {{1, 2, 3, 4}, {5, 6}}};
  ErrorCount errors;
  CHECK(errors.phoneme_rate() == 0);
  errors.add(word, {5, 6});
  errors.add(word, {1, 2, 3, 3});
  errors.add(word, {7});
  CHECK(errors.words == 3);
  CHECK(errors.wrong_words == 2);
  CHECK(errors.phonemes == 2 + 4 + 2);
  CHECK(errors.edits == 0 + 1 + 2);
}
