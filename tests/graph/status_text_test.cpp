#include "graph/status_text.h"

#include <doctest/doctest.h>

namespace tagflow {
namespace {

TEST_CASE("a message of usual length is not shortened") {
  const std::string text =
      "[checkpoint] \"" + std::string(380, 'x') + "\" is\n\tnot there";
  CHECK(shorten_message(text) == text);
  CHECK(shorten_message("").empty());
  std::string long_text;
  while (long_text.size() + 6 <= kLongestMessage) long_text += "word, ";
  CHECK(shorten_message(long_text) == long_text);
}

TEST_CASE("a very long name is cut, and the words around it stay") {
  const std::string name = "first" + std::string(70'000, 'x') + "last";
  CHECK(shorten_message("[graph] no node " + name + ", did you mean \"y\"?") ==
        "[graph] no node first" + std::string(275, 'x') +
            "... (69610 bytes left out) ..." + std::string(115, 'x') +
            "last, did you mean \"y\"?");
  const Status status = error(Code::kNotFound, "[graph] no node {}", name);
  CHECK(status.to_string().size() < 600);
  CHECK(status.message().size() == 16 + name.size());
}

TEST_CASE("of a message of very many words the start and the end stay") {
  std::string text = "[feed] begins";
  for (int i = 0; i < 10'000; ++i) text += " " + std::to_string(i);
  text += " ends";
  const std::string shorter = shorten_message(text);
  CHECK(shorter.size() < kLongestMessage + 50);
  CHECK(shorter.starts_with("[feed] begins 0 1 2"));
  CHECK(shorter.ends_with("9999 ends"));
  CHECK(shorter.find(" bytes left out) ...") != shorter.npos);
}

TEST_CASE("a character of several bytes is not cut") {
  for (size_t shift = 0; shift < 4; ++shift) {
    std::string name(shift, 'x');
    for (int i = 0; i < 1000; ++i) name += "\xf0\x9f\x98\x80";
    const std::string text = shorten_message(name);
    const size_t gap = text.find("... (");
    REQUIRE(gap != text.npos);
    CHECK((gap - shift) % 4 == 0);
    CHECK((text.size() - text.find(") ...") - 5) % 4 == 0);
  }
  // Nor is anything wrong where there are none.
  CHECK(shorten_message(std::string(1000, '\xbf')).size() < 500);
}

TEST_CASE("a file is named before a message that does not mention it") {
  const auto named = [](std::string_view message, std::string_view path) {
    return name_file(error(Code::kDataLoss, "{}", message), path).to_string();
  };
  CHECK(named("[shape] it overflows", "p") ==
        "DataLoss: p: [shape] it overflows");
  CHECK(named("\"p\" ends", "p") == "DataLoss: \"p\" ends");
  CHECK(named("\"p.index\" ends", "p") == "DataLoss: \"p.index\" ends");
  CHECK(named("p: it ends", "p") == "DataLoss: p: it ends");
  CHECK(named("\"p/x\" ends", "p") == "DataLoss: \"p/x\" ends");
  CHECK(named("\"help\" ends", "p") == "DataLoss: p: \"help\" ends");
  CHECK(name_file(Status(), "p").ok());
}

}  // namespace
}  // namespace tagflow
