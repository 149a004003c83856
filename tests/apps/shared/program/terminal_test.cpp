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
  for (const char* text : {"", "a\n\tb", "gr\xc3\xbc\xc3\x9f", "\xc2\xa0",
                           "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    CHECK(printable(text) == text);
    CHECK(printable_name(std::string("x") + text).ends_with(text) ==
          (std::string_view(text) != "a\n\tb"));
  }
}

TEST_CASE("bytes that are not UTF-8 are printed as escapes") {
  CHECK(printable("a\xff"
                  "b\xc2") == "a\\xffb\\xc2");
  CHECK(printable_name("\x9b") == "\\x9b");
  CHECK(printable_message("\xe2\x82\n  \xac") == "\\xe2\\x82\n  \\xac");
}

TEST_CASE("a name in a message does not look like another message") {
  CHECK(printable_message("node \"a\nerror: b\" is\twrong\x1b") ==
        "node \"a\\u000aerror: b\" is\twrong\\u001b");
  // Lines of a message's own are indented.
  CHECK(printable_message("two runs:\n  a\n  b\n") ==
        "two runs:\n  a\n  b\\u000a");
  const std::string longest(70'000, 'x');
  CHECK(printable_message("node \"" + longest + "\" is wrong").size() < 500);
}

}  // namespace tagflow::apps
