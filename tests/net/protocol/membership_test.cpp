// A worker's view of the directory of its cluster.
#include "net/protocol/membership.h"

#include <doctest/doctest.h>

#include <set>

using namespace tagflow;
using namespace tagflow::net;
using std::chrono::milliseconds;

namespace {

using State = Membership::State;

Time at(int ms) { return Time() + milliseconds(ms); }

struct Fixture {
  Membership membership{at(0)};
  Membership::Actions actions;

  void time(int ms, uint64_t random) {
    actions.clear();
    membership.on_time(at(ms), random, actions);
  }
  void refuse(uint64_t incarnation, Code code, int ms) {
    actions.clear();
    membership.on_refused(Incarnation{incarnation}, error(code, "no"), at(ms),
                          0, actions);
  }
  void lose(uint64_t incarnation, int ms, uint64_t random = 0) {
    actions.clear();
    membership.on_lost(Incarnation{incarnation},
                       error(Code::kUnavailable, "its link has ended"), at(ms),
                       random, actions);
  }
  void join(int ms, uint64_t incarnation) {
    time(ms, incarnation);
    REQUIRE(actions.size() == 1);
    REQUIRE(std::holds_alternative<Membership::Join>(actions[0]));
    membership.on_accepted(Incarnation{incarnation}, at(ms));
    REQUIRE(membership.state() == State::kJoined);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "smoke: a worker joins by a number of its own") {
  CHECK(membership.next() == at(0));
  time(0, 42);
  REQUIRE(actions.size() == 1);
  CHECK(std::get<Membership::Join>(actions[0]).incarnation == Incarnation{42});
  CHECK(membership.state() == State::kJoining);
  membership.on_accepted(Incarnation{42}, at(1));
  CHECK(membership.state() == State::kJoined);
  CHECK(membership.incarnation() == Incarnation{42});
}

TEST_CASE_FIXTURE(Fixture, "smoke: the number is never 0") {
  time(0, 0);
  CHECK(membership.incarnation() == Incarnation{1});
}

TEST_CASE_FIXTURE(
    Fixture, "smoke: a worker that loses the directory clears, then joins") {
  join(0, 42);
  lose(42, 1000);
  REQUIRE(actions.size() == 1);
  const auto& clear = std::get<Membership::Clear>(actions[0]);
  CHECK(clear.incarnation == Incarnation{42});
  CHECK(clear.reason.message() == "its link has ended");
  CHECK(membership.state() == State::kWaiting);
  CHECK(membership.incarnation() == Incarnation::kNone);
  CHECK(membership.next() == at(1100));
  time(1099, 43);
  CHECK(actions.empty());
  join(1100, 43);
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: what comes of an old attempt has no effect") {
  join(0, 42);
  lose(41, 10);
  CHECK(actions.empty());
  refuse(42, Code::kFailedPrecondition, 10);
  CHECK(actions.empty());
  CHECK(membership.state() == State::kJoined);
  lose(42, 20);
  time(120, 43);
  membership.on_accepted(Incarnation{42}, at(130));
  CHECK(membership.state() == State::kJoining);
  lose(0, 140);
  CHECK(actions.empty());
}

TEST_CASE_FIXTURE(Fixture, "smoke: a directory that does not answer is left") {
  time(0, 42);
  CHECK(membership.next() == at(2000));
  time(1999, 43);
  CHECK(actions.empty());
  time(2000, 0);
  REQUIRE(actions.size() == 1);
  CHECK(std::get<Membership::Clear>(actions[0]).reason.message() ==
        "[membership] the directory has not answered for 2000 ms");
  time(2100, 43);
  CHECK(std::get<Membership::Join>(actions[0]).incarnation == Incarnation{43});
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: a silent directory is asked, and then lost") {
  join(0, 42);
  for (int ms = 300; ms < 1500; ms += 300) {
    CHECK(membership.next() == at(ms));
    time(ms, 1);
    REQUIRE(actions.size() == 1);
    CHECK(std::holds_alternative<Membership::Ping>(actions[0]));
  }
  time(1500, 0);
  REQUIRE(actions.size() == 1);
  CHECK(std::get<Membership::Clear>(actions[0]).reason.message() ==
        "[membership] the directory was silent for 1500 ms");
  CHECK(membership.state() == State::kWaiting);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a directory that is heard is kept") {
  join(0, 42);
  for (int ms = 300; ms < 6000; ms += 300) {
    membership.on_heard(Incarnation{42});
    time(ms, 1);
    CHECK(actions.empty());
  }
  CHECK(membership.state() == State::kJoined);
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: the pauses double up to a bound, and begin anew") {
  int ms = 0;
  for (int pause : {100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
    time(ms, uint64_t(ms) + 1);
    refuse(uint64_t(ms) + 1, Code::kAlreadyExists, ms);
    CHECK(membership.next() == at(ms + pause));
    ms += pause;
  }
  join(ms, 42);
  lose(42, ms);
  CHECK(membership.next() == at(ms + 100));
}

TEST_CASE_FIXTURE(Fixture, "smoke: chance shortens a pause by half at most") {
  join(0, 1);
  std::set<Time> times;
  for (uint64_t i = 0; i < 100; ++i) {
    const int ms = int(i) * 1000;
    const uint64_t incarnation = i + 1;
    lose(incarnation, ms, i * 0x9e3779b97f4a7c15u);
    const Duration pause = membership.next() - at(ms);
    CHECK(pause >= milliseconds(50));
    CHECK(pause <= milliseconds(100));
    times.insert(Time() + pause);
    join(ms + 100, incarnation + 1);
  }
  CHECK(times.size() > 50);
}

TEST_CASE_FIXTURE(Fixture, "smoke: an attempt that may succeed later goes on") {
  int ms = 0;
  for (Code code : {Code::kAlreadyExists, Code::kAborted, Code::kUnavailable}) {
    time(ms, uint64_t(ms) + 1);
    refuse(uint64_t(ms) + 1, code, ms);
    REQUIRE(actions.size() == 1);
    CHECK(std::holds_alternative<Membership::Clear>(actions[0]));
    CHECK(membership.state() == State::kWaiting);
    ms += 10'000;
  }
}

TEST_CASE_FIXTURE(Fixture, "smoke: a worker that will never fit gives up") {
  for (Code code : {Code::kFailedPrecondition, Code::kNotFound,
                    Code::kUnauthenticated, Code::kInvalidArgument}) {
    Fixture one;
    one.time(0, 42);
    one.refuse(42, code, 1);
    REQUIRE(one.actions.size() == 2);
    CHECK(std::get<Membership::GiveUp>(one.actions[1]).reason.code() == code);
    CHECK(one.membership.state() == State::kGivenUp);
    CHECK(one.membership.next() == kNever);
    one.time(100'000, 43);
    CHECK(one.actions.empty());
  }
}
