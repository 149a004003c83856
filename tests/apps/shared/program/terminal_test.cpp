#include "apps/shared/program/terminal.h"

#include <doctest/doctest.h>

namespace tagflow::apps {

TEST_CASE("names of a list stay in their lines, and columns are bounded") {
  CHECK(printable("a\nb\tc\x1b") == "a\nb\tc\\u001b");
  CHECK(printable_name("a\nb\tc\x1b") == "a\\u000ab\\u0009c\\u001b");
  CHECK(column_width(7) == 7);
  CHECK(column_width(size_t{1} << 20) == 60);
}

TEST_CASE("printable() escapes characters that could command a terminal") {
  CHECK(printable("a\x1b[31mb") == "a\\u001b[31mb");
  CHECK(printable(std::string_view("\0\r\a\x7f", 4)) ==
        "\\u0000\\u000d\\u0007\\u007f");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\u009b31m");
}

TEST_CASE("text stays as it is, with lines, tabs and other alphabets") {
  for (const char* text :
       {"", "a\n\tb", "gr\xc3\xbc\xc3\x9f", "\xc2\xa0", "\xff", "\xc2"}) {
    CHECK(printable(text) == text);
  }
}

}  // namespace tagflow::apps
