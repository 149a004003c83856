#include "apps/tagflow/model/watch_choice.h"

#include <doctest/doctest.h>

using namespace tagflow;
using namespace tagflow::apps;

namespace {

WatchChoice choice_of(std::string_view text) {
  const auto choice = WatchChoice::parse(text);
  REQUIRE(choice.ok());
  return *choice;
}

}  // namespace

TEST_CASE("a choice without tags is of all iterations") {
  const WatchChoice choice = choice_of("a/b:2");
  CHECK(choice.tensor() == "a/b:2");
  CHECK(choice.matches("root/0", 0));
  CHECK(choice.matches("outer/2/inner/3", 3));
  CHECK(choice_of("a").tensor() == "a:0");
}

TEST_CASE("a tag is the end of a path, and a range of iterations") {
  const WatchChoice one = choice_of("a@3");
  CHECK(one.matches("outer/2/inner/3", 3));
  CHECK(!one.matches("outer/3/inner/2", 2));
  const WatchChoice inner = choice_of("a@inner/2-4");
  CHECK(inner.matches("outer/2/inner/3", 3));
  CHECK(inner.matches("inner/4", 4));
  CHECK(!inner.matches("inner/5", 5));
  CHECK(!inner.matches("another_inner/3", 3));
  const WatchChoice both = choice_of("a@outer/2/inner/3,inner/9");
  CHECK(both.matches("outer/2/inner/3", 3));
  CHECK(!both.matches("outer/1/inner/3", 3));
  CHECK(both.matches("outer/1/inner/9", 9));
}

TEST_CASE("what is no choice is refused, and named") {
  for (const char* text : {"", ":0", "a:", "a:x", "a:-1", "@3"})
    CHECK(WatchChoice::parse(text).status().code() == Code::kInvalidArgument);
  for (const char* text :
       {"a@", "a@f/", "a@x", "a@3-", "a@5-3", "a@3,", "a@-1"})
    CHECK(WatchChoice::parse(text).status().message().find(
              "is not ITERATION or FRAME/ITERATION") != std::string::npos);
}
