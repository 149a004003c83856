// Forms, with what a session would make of a signature.
#include "actors/session/forms.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::contains;
using graph::testing::message_of;
using graph::testing::must;

namespace {

// Counts what it is asked for, and makes an empty form of it.
struct Maker {
  int calls = 0;
  bool fails = false;
  bool makes_null = false;

  Forms::Make make() {
    return [this](const actors::Signature&, std::vector<Shape>,
                  bool) -> Result<Form> {
      ++calls;
      if (fails) return error(Code::kUnimplemented, "as asked");
      Form form;
      if (!makes_null) form.prepared = std::make_shared<Prepared>();
      return form;
    };
  }
};

Tensor rows(int64_t count) {
  return Tensor::make(DataType::kFloat, {count, 3});
}

std::shared_ptr<const Prepared> pick(Forms& forms, const Tensor& feed,
                                     const Forms::Make& make) {
  return forms.pick({&feed, 1}, make);
}

// The numbers, from 1 on, of those of so many runs that call make.
std::vector<int> runs_that_make(Maker& maker, int runs) {
  Forms forms({}, {0}, false);
  std::vector<int> made;
  for (int run = 1; run <= runs; ++run) {
    const int before = maker.calls;
    pick(forms, rows(2), maker.make());
    if (maker.calls > before) made.push_back(run);
  }
  return made;
}

// Makes the forms of these shapes.
void make_forms(Forms& forms, std::initializer_list<int64_t> counts) {
  Maker maker;
  for (const int64_t count : counts)
    while (pick(forms, rows(count), maker.make()) == nullptr) continue;
}

bool has_form(Forms& forms, int64_t count) {
  return pick(forms, rows(count), nullptr) != nullptr;
}

}  // namespace

TEST_CASE(
    "a form is made after some runs, once, and all further ones have it") {
  Forms forms({}, {0}, false);
  Maker maker;
  for (int run = 0; run < 4; ++run)
    CHECK(pick(forms, rows(2), maker.make()) == nullptr);
  CHECK(maker.calls == 0);
  const auto form = pick(forms, rows(2), maker.make());
  CHECK(form != nullptr);
  for (int run = 0; run < 1000; ++run)
    REQUIRE(pick(forms, rows(2), maker.make()) == form);
  CHECK(maker.calls == 1);
}

TEST_CASE("each list of shapes of the open feeds has a form of its own") {
  Forms forms({{"a", "b", "c"}, {"d"}, {}}, {0, 2}, false);
  std::vector<std::string> made;
  const Forms::Make make = [&](const actors::Signature& signature,
                               std::vector<Shape> feed_shapes,
                               bool is_frozen) -> Result<Form> {
    CHECK(!is_frozen);
    CHECK(signature.feeds.size() == 3);
    CHECK(signature.fetches[0] == "d");
    std::string shapes;
    for (const Shape& shape : feed_shapes) shapes += shape.to_string();
    made.push_back(shapes);
    return Form{std::make_shared<Prepared>(), {}};
  };
  const auto form_of = [&](int64_t a, int64_t b, int64_t c) {
    const Tensor feeds[] = {rows(a), rows(b), rows(c)};
    std::shared_ptr<const Prepared> form;
    for (int run = 0; run < kEnough; ++run) form = forms.pick(feeds, make);
    return form;
  };
  const auto first = form_of(1, 2, 3);
  CHECK(form_of(2, 2, 3) != first);
  CHECK(form_of(1, 2, 4) != first);
  CHECK(form_of(1, 7, 3) == first);  // b is not open
  CHECK(made == std::vector<std::string>{"[1,3][2,3][3,3]", "[2,3][2,3][3,3]",
                                         "[1,3][2,3][4,3]"});
}

TEST_CASE("forms: all shapes share one form if no feed is open") {
  Forms forms({}, {}, true);
  Maker maker;
  std::shared_ptr<const Prepared> form;
  for (int run = 0; run < kEnough; ++run)
    form = pick(forms, rows(run), maker.make());
  CHECK(form != nullptr);
  CHECK(forms.pick({}, maker.make()) == form);
  CHECK(maker.calls == 1);
}

TEST_CASE("forms: shapes that take turns share a form for the variables") {
  Forms forms({}, {0}, true);
  std::vector<size_t> made;  // the number of shapes that each form is for
  const Forms::Make make = [&](const actors::Signature&,
                               std::vector<Shape> feed_shapes,
                               bool is_frozen) -> Result<Form> {
    CHECK(is_frozen);
    made.push_back(feed_shapes.size());
    return Form{std::make_shared<Prepared>(), {}};
  };
  std::shared_ptr<const Prepared> general;
  for (int run = 0; run < 100; ++run) {
    const auto form = pick(forms, rows(run), make);
    CHECK((form != nullptr) == (run >= 8));
    if (run == 8) general = form;
    if (run > 8) CHECK(form == general);
  }
  CHECK(made == std::vector<size_t>{0});
  // A shape that comes often has its own.
  int runs = 1;
  while (pick(forms, rows(1000), make) == general) ++runs;
  CHECK(runs == 5);
  CHECK(made == std::vector<size_t>{0, 1});
  CHECK(pick(forms, rows(5), make) == general);
}

TEST_CASE("forms: one shape needs no form for the variables beside its own") {
  Forms forms({}, {0}, true);
  Maker maker;
  for (int run = 0; run < 100; ++run) pick(forms, rows(3), maker.make());
  CHECK(maker.calls == 1);
}

TEST_CASE("forms: a form that fails is tried again after twice as many runs") {
  const std::vector<int> expected = {5, 14, 31, 64};
  Maker fails, makes_null;
  fails.fails = true;
  makes_null.makes_null = true;
  CHECK(runs_that_make(fails, 100) == expected);
  CHECK(runs_that_make(makes_null, 100) == expected);
  // Not for ever: there is a most.
  const std::vector<int> many = runs_that_make(fails, 30'000);
  CHECK(many.back() - many[many.size() - 2] == 4097);
}

TEST_CASE("forms: a form that failed at first is made in the end") {
  Forms forms({}, {0}, false);
  Maker maker;
  maker.fails = true;
  while (maker.calls == 0) CHECK(!pick(forms, rows(2), maker.make()));
  maker.fails = false;
  while (maker.calls == 1) pick(forms, rows(2), maker.make());
  CHECK(has_form(forms, 2));
}

TEST_CASE("forms: a form that lacked memory, or threw, is tried again") {
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    Forms forms({}, {0}, false);
    Maker maker;
    const Forms::Make make = maker.make();
    const Tensor feed = rows(2);
    for (int run = 0; run < 4; ++run) pick(forms, feed, make);
    REQUIRE(maker.calls == 0);
    FailAllocation fail(k);
    std::shared_ptr<const Prepared> form = pick(forms, feed, make);
    fail.stop();
    CHECK((form == nullptr) == fail.failed());
    for (int run = 0; run < 3 * kEnough && form == nullptr; ++run)
      form = pick(forms, feed, make);
    CHECK(form != nullptr);
    if (!fail.failed()) break;
  }
}

TEST_CASE("forms: a fifth form replaces the one used longest ago") {
  Forms forms({}, {0}, false);
  make_forms(forms, {1, 2, 3, 4});
  for (const int64_t count : {1, 2, 3, 4}) CHECK(has_form(forms, count));
  CHECK(has_form(forms, 1));
  CHECK_FALSE(has_form(forms, 5));  // takes the place of 2
  for (const int64_t count : {1, 3, 4}) CHECK(has_form(forms, count));
  CHECK_FALSE(has_form(forms, 2));  // that of 5
  make_forms(forms, {2});
  CHECK_FALSE(has_form(forms, 6));  // that of 1
  for (const int64_t count : {2, 3, 4}) CHECK(has_form(forms, count));
  CHECK_FALSE(has_form(forms, 1));
}

TEST_CASE("forms: none is made if too many shapes take turns") {
  Forms forms({}, {0}, false);
  Maker maker;
  for (int run = 0; run < 1000; ++run)
    CHECK(pick(forms, rows(run % 5), maker.make()) == nullptr);
  CHECK(maker.calls == 0);
  for (int run = 0; run < 100; ++run) pick(forms, rows(run % 4), maker.make());
  CHECK(maker.calls == 4);
}

TEST_CASE("forms: shapes that replace each other are compiled ever less") {
  Forms forms({}, {0}, false);
  Maker maker;
  const auto made_in = [&](int rounds) {
    const int before = maker.calls;
    for (int round = 0; round < rounds; ++round)
      for (int64_t count = 0; count < 6; ++count)
        for (int run = 0; run < 6; ++run)
          pick(forms, rows(count), maker.make());
    return maker.calls - before;
  };
  const int first = made_in(10);
  CHECK(first > 0);
  CHECK(made_in(10) < first);
  made_in(1000);
  CHECK(made_in(100) == 0);
}

TEST_CASE("forms: a caller that cannot make a form counts and uses it") {
  Forms forms({}, {0}, false);
  for (int run = 0; run < kEnough; ++run) CHECK_FALSE(has_form(forms, 2));
  Maker maker;
  const auto form = pick(forms, rows(2), maker.make());
  CHECK(maker.calls == 1);
  CHECK(form != nullptr);
  CHECK(pick(forms, rows(2), nullptr) == form);
}

TEST_CASE("while a form is made, other runs of its shapes are as usual") {
  Forms forms({}, {0}, false);
  int calls = 0;
  Maker other;
  const Forms::Make make = [&](const actors::Signature&, std::vector<Shape>,
                               bool) -> Result<Form> {
    ++calls;
    for (int run = 0; run < 100; ++run)
      CHECK(pick(forms, rows(2), make) == nullptr);
    CHECK(calls == 1);
    // Of other shapes they may make one.
    while (!pick(forms, rows(3), other.make())) continue;
    return Form{std::make_shared<Prepared>(), {}};
  };
  while (calls == 0) pick(forms, rows(2), make);
  CHECK(other.calls == 1);
  CHECK(has_form(forms, 2));
  CHECK(has_form(forms, 3));
}

TEST_CASE("a form that has lost its place before it was made serves one run") {
  Forms forms({}, {0}, false);
  int calls = 0;
  const Forms::Make make = [&](const actors::Signature&, std::vector<Shape>,
                               bool) -> Result<Form> {
    ++calls;
    for (const int64_t count : {3, 4, 5, 6}) has_form(forms, count);
    return Form{std::make_shared<Prepared>(), {}};
  };
  std::shared_ptr<const Prepared> form;
  while (calls == 0) form = pick(forms, rows(2), make);
  CHECK(form != nullptr);
  CHECK_FALSE(has_form(forms, 2));
}

TEST_CASE("forms: one of several threads makes the form that all want") {
  Forms forms({}, {0}, false);
  std::atomic<int> calls{0};
  const Forms::Make make = [&](const actors::Signature&, std::vector<Shape>,
                               bool) -> Result<Form> {
    ++calls;
    return Form{std::make_shared<Prepared>(), {}};
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int run = 0; run < 1000; ++run)
        for (const int64_t count : {1, 2, 3}) pick(forms, rows(count), make);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(calls == 3);
  for (const int64_t count : {1, 2, 3}) CHECK(has_form(forms, count));
}
