#include "graph/handle.h"

#include <doctest/doctest.h>

#include <memory>
#include <thread>
#include <vector>

using namespace tagflow;

namespace {

// Counts how many of it are alive.
struct Counted : Resource {
  explicit Counted(int& counter) : alive(counter) { ++alive; }
  ~Counted() override { --alive; }
  std::string describe() const override { return "counted"; }
  int& alive;
};

struct Box : VariantValue {
  explicit Box(int n) : number(n) {}
  std::string describe() const override { return "box"; }
  int number;
};

struct Other : VariantValue {
  std::string describe() const override { return "other"; }
};

}  // namespace

TEST_CASE("an object lives as long as a reference to it") {
  int alive = 0;
  {
    Ref<Counted> first(new Counted(alive));
    CHECK(first->unique());
    Ref<Counted> second = first;
    CHECK_FALSE(first->unique());
    first = Ref<Counted>();
    CHECK(alive == 1);
    CHECK(second->unique());
    Ref<Resource> base = second;
    second = Ref<Counted>();
    CHECK(alive == 1);
    CHECK(base->describe() == "counted");
  }
  CHECK(alive == 0);
}

TEST_CASE("moving a reference leaves none behind") {
  int alive = 0;
  Ref<Counted> first(new Counted(alive));
  Ref<Counted> second = std::move(first);
  CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move)
  CHECK(second->unique());
  second = Ref<Counted>(second);  // to itself
  CHECK(alive == 1);
  CHECK(second->unique());
}

TEST_CASE("copies of a handle mean the same object") {
  int alive = 0;
  const ResourceHandle empty;
  CHECK(empty.get() == nullptr);
  const ResourceHandle handle(make_ref_counted<Counted>(alive));
  const ResourceHandle copy = handle;  // NOLINT
  CHECK(copy.get() == handle.get());
}

TEST_CASE("a variant gives its value only as the type that it is") {
  CHECK(Variant().get() == nullptr);
  CHECK(Variant().get_if<Box>() == nullptr);
  const Variant box(make_ref_counted<Box>(7));
  REQUIRE(box.get_if<Box>() != nullptr);
  CHECK(box.get_if<Box>()->number == 7);
  CHECK(box.get_if<Other>() == nullptr);
}

TEST_CASE("threads may take and drop references to one object") {
  int alive = 0;
  Ref<Counted> shared(new Counted(alive));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([copy = shared] {
      for (int i = 0; i < 1000; ++i) Ref<Counted> another = copy;
    });
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  CHECK(shared->unique());
  CHECK(alive == 1);
}
