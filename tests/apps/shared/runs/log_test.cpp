// The log itself is tested by the commands: tests/apps/log_command_test.sh.
#include "apps/shared/runs/log.h"

#include <doctest/doctest.h>

#include <string>

namespace tagflow::apps {
namespace {

TEST_CASE("the place of an error is its node, frame and iteration") {
  const auto place = place_in(
      "[add] shapes differ (node \"while/add\", iteration "
      "\"outer/2/while/17\", "
      "device CPU:0)");
  REQUIRE(place);
  CHECK(place->node == "while/add");
  CHECK(place->frame == "outer/2/while");
  CHECK(place->iteration == 17u);
}

TEST_CASE("outside of loops there is no frame") {
  const auto place = place_in("a (node \"x\", device /job:worker/task:1)");
  REQUIRE(place);
  CHECK(place->node == "x");
  CHECK(place->frame.empty());
  CHECK(!place->iteration);
}

TEST_CASE("the last place counts, and what follows it does not matter") {
  const auto place = place_in(
      "a (node \"x\", device CPU:0): b (node \"y\", device CPU:1); and more");
  REQUIRE(place);
  CHECK(place->node == "y");
}

TEST_CASE("what only looks like a place is none") {
  for (const char* message :
       {"", "(node \"", "(node \"x\"", "(node \"x\")", "node \"x\", device y",
        "(node \"x\", iteration \"while/1\")"}) {
    CAPTURE(message);
    CHECK(!place_in(message));
  }
  for (const char* tag : {"while", "while/", "while/x", "while/1x", "",
                          "while/99999999999999999999"}) {
    CAPTURE(tag);
    const auto place = place_in(std::string("(node \"x\", iteration \"") + tag +
                                "\", device CPU:0)");
    REQUIRE(place);
    CHECK(place->node == "x");
    CHECK(place->frame.empty());
    CHECK(!place->iteration);
  }
}

}  // namespace
}  // namespace tagflow::apps
