#include "actors/plan/tag.h"

#include <doctest/doctest.h>

#include <set>
#include <utility>

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
