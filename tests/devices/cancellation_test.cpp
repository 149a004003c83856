#include "devices/cancellation.h"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

using namespace tagflow::devices;

namespace {

class Hook final : public CancelHook {
 public:
  int calls = 0;
  std::function<void()> during;

 protected:
  void on_cancel() override {
    ++calls;
    if (during) during();
  }
};

}  // namespace

TEST_CASE("a wait is completed or cancelled, whichever comes first") {
  CancelList list;
  const auto completed = std::make_shared<Hook>();
  const auto cancelled = std::make_shared<Hook>();
  REQUIRE(list.add(completed));
  REQUIRE(list.add(cancelled));
  CHECK(completed->claim());
  CHECK_FALSE(completed->claim());
  list.cancel();
  list.cancel();
  CHECK(completed->calls == 0);
  CHECK(cancelled->calls == 1);
  CHECK_FALSE(cancelled->claim());
}

TEST_CASE("a wait that is completed is let go of at once") {
  CancelList list;
  std::vector<std::shared_ptr<Hook>> hooks;
  for (int i = 0; i < 5; ++i) {
    hooks.push_back(std::make_shared<Hook>());
    REQUIRE(list.add(hooks.back()));
    CHECK(hooks.back().use_count() == 2);
  }
  // In the middle, at the ends, and what is left.
  for (const size_t i : {2, 0, 4, 3, 1}) {
    CHECK(hooks[i]->claim());
    CHECK(hooks[i].use_count() == 1);
  }
  list.cancel();
  for (const auto& hook : hooks) CHECK(hook->calls == 0);
}

TEST_CASE("a wait that was completed before it is added is not kept") {
  CancelList list;
  const auto hook = std::make_shared<Hook>();
  CHECK(hook->claim());
  CHECK(list.add(hook));
  CHECK(hook.use_count() == 1);
  list.cancel();
  CHECK(hook->calls == 0);
}

TEST_CASE("a cancel list that was cancelled takes no more waits") {
  CancelList list;
  CHECK_FALSE(list.cancelled());
  list.cancel();
  CHECK(list.cancelled());
  const auto hook = std::make_shared<Hook>();
  CHECK_FALSE(list.add(hook));
  CHECK(hook.use_count() == 1);
  CHECK(hook->calls == 0);
  CHECK(hook->claim());  // by the caller, who answers it
}

TEST_CASE("a callback may use the list, and what it throws is its own") {
  CancelList list;
  const auto first = std::make_shared<Hook>();
  const auto second = std::make_shared<Hook>();
  const auto third = std::make_shared<Hook>();
  const auto late = std::make_shared<Hook>();
  bool is_added = true;
  first->during = [&] {
    CHECK(list.cancelled());
    is_added = list.add(late);
    CHECK(second->claim());
    throw 3;
  };
  for (const auto& hook : {first, second, third}) REQUIRE(list.add(hook));
  list.cancel();
  CHECK(first->calls == 1);
  CHECK(second->calls == 0);
  CHECK(third->calls == 1);
  CHECK_FALSE(is_added);
  CHECK(late->calls == 0);
}

TEST_CASE("a cancel list that is destroyed calls no hook and keeps none") {
  const auto hook = std::make_shared<Hook>();
  {
    CancelList list;
    REQUIRE(list.add(hook));
  }
  CHECK(hook.use_count() == 1);
  CHECK(hook->calls == 0);
}
