#include "actors/plan/tag.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace tagflow;
using namespace tagflow::actors;

TEST_CASE("a frame instance's id tells parent, iteration and name apart") {
  const auto id = [](const devices::Tag& tag) {
    return std::pair(tag.frame_hi, tag.frame_lo);
  };
  std::set<std::pair<uint64_t, uint64_t>> ids;
  std::vector<devices::Tag> parents(1);
  size_t made = 0;
  // Frames in frames, three deep.
  for (int depth = 0; depth < 3; ++depth) {
    std::vector<devices::Tag> children;
    for (const devices::Tag& parent : parents)
      for (const int64_t iteration : {0, 1, 7})
        for (const char* name : {"a", "b", "while/while_context"}) {
          children.push_back(
              frame_tag(parent, iteration, frame_name_hash(name)));
          ids.insert(id(children.back()));
          ++made;
          // It is a function of these.
          CHECK(id(children.back()) ==
                id(frame_tag(parent, iteration, frame_name_hash(name))));
        }
    parents = std::move(children);
  }
  CHECK(ids.size() == made);
  CHECK_FALSE(ids.contains({0, 0}));  // the root's
}

TEST_CASE("a loop named as the root is shown in quotes") {
  CHECK(frame_label("") == "root");
  CHECK(frame_label("root") == "\"root\"");
  CHECK(frame_label("roots") == "roots");
  CHECK(frame_label("\"root\"") == "\"\"root\"\"");
}

TEST_CASE("a tag in words names all levels, of very many the outer and inner") {
  std::vector<std::string> levels;
  CHECK(join_levels(levels).empty());
  for (const char* level : {"a/2", "b/0", "c/1", "d/7", "e/3", "f/4", "g/9"})
    levels.emplace_back(level);
  CHECK(join_levels(std::span(levels).first(2)) == "a/2/b/0");
  CHECK(join_levels(levels) == "a/2/b/0/c/1/d/7/e/3/f/4/g/9");
  levels.emplace_back("h");
  CHECK(join_levels(levels) == "a/2/b/0/c/1/.../f/4/g/9/h");
}
