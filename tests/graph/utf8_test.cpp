#include "graph/utf8.h"

#include <doctest/doctest.h>

namespace tagflow {

TEST_CASE("characters of UTF-8 have their length, and other bytes none") {
  CHECK(character_length("ab") == 1);
  CHECK(character_length(std::string_view("\0", 1)) == 1);
  CHECK(character_length("\xc3\xbc!") == 2);
  CHECK(character_length("\xe2\x82\xac!") == 3);
  CHECK(character_length("\xf4\x8f\xbf\xbf!") == 4);
  for (const char* text :
       {"", "\x80", "\xff", "\xc2", "\xc2!", "\xe2\x82", "\xe2\x82!",
        "\xf0\x9f\x98",
        // Longer than needed, half of a pair, and past the last character.
        "\xc0\x80", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
    CAPTURE(text);
    CHECK(character_length(text) == 0);
  }
  CHECK(character_length("\xed\xa0\x80", Surrogates::kAllowed) == 3);
  CHECK(character_length("\xe0\x9f\xbf", Surrogates::kAllowed) == 0);
}

TEST_CASE("a beginning ends between characters") {
  CHECK(beginning_of("", 3).empty());
  CHECK(beginning_of("abc", 3) == "abc");
  CHECK(beginning_of("abcd", 3) == "abc");
  CHECK(beginning_of("ab\u00e9", 3) == "ab");
  CHECK(beginning_of("ab\u00e9", 4) == "ab\u00e9");
  CHECK(beginning_of("\u20ac\u20ac", 5) == "\u20ac");
  CHECK(beginning_of("\u20ac", 2).empty());
  // What is no UTF-8 is not searched for a character that begins.
  CHECK(beginning_of(std::string(9, '\x80'), 6).size() == 6);
}

}  // namespace tagflow
