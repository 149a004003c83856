#include "graph/hash_index.h"

#include <doctest/doctest.h>

#include <string>

using namespace tagflow::graph;

namespace {

std::string name_of(uint32_t number) { return "n" + std::to_string(number); }

}  // namespace

TEST_CASE("an index of names finds each number by its name, and no other") {
  constexpr uint32_t kCount = 1000;
  NameIndex index;
  CHECK(index.find("n0", name_of) == NameIndex::kNone);
  for (uint32_t i = 0; i < kCount; ++i) index.insert(name_of(i), i);
  size_t found = 0;
  for (uint32_t i = 0; i < kCount; ++i)
    found += index.find(name_of(i), name_of) == i ? 1 : 0;
  CHECK(found == kCount);
  CHECK(index.find("n1000", name_of) == NameIndex::kNone);
  CHECK(index.find("", name_of) == NameIndex::kNone);
}

TEST_CASE("a copy of an index of names is one of its own") {
  NameIndex index(2);
  index.insert("n1", 1);
  NameIndex copy = index;
  copy.insert("n2", 2);
  CHECK(index.find("n2", name_of) == NameIndex::kNone);
  CHECK(copy.find("n1", name_of) == 1);
  CHECK(copy.find("n2", name_of) == 2);
}
