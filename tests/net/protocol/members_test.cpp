// A master's view of its workers: each case is a rule of Note [Membership].
#include "net/protocol/members.h"

#include <doctest/doctest.h>

#include <string>

using namespace tagflow;
using namespace tagflow::net;
using std::chrono::milliseconds;

namespace {

constexpr TaskIndex kFirst{0}, kSecond{1};

Time at(int ms) { return Time() + milliseconds(ms); }

struct Fixture {
  Members members{{"/job:w/task:0", "/job:w/task:1"}, "digest"};
  Members::Actions actions;

  Status hello(TaskIndex task, uint64_t incarnation, int ms = 0,
               const std::string& digest = "digest") {
    return members.on_hello({task, Incarnation{incarnation}, digest}, at(ms));
  }
  void lose(TaskIndex task, uint64_t incarnation) {
    members.on_lost(task, Incarnation{incarnation},
                    error(Code::kUnavailable, "its link has ended"), actions);
  }
  size_t num_lost() const {
    size_t count = 0;
    for (const auto& action : actions)
      count += std::holds_alternative<Members::Lost>(action);
    return count;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "smoke: a worker joins, is ready, and drains") {
  CHECK(members.state(kFirst) == Members::State::kLost);
  REQUIRE(hello(kFirst, 7).ok());
  CHECK(members.state(kFirst) == Members::State::kJoining);
  CHECK(members.incarnation(kFirst) == Incarnation{7});
  members.on_ready(kFirst, Incarnation{7});
  CHECK(members.state(kFirst) == Members::State::kReady);
  members.on_drain(kFirst, Incarnation{7});
  CHECK(members.state(kFirst) == Members::State::kDraining);
  // It stays so: a late word does not undo it.
  members.on_ready(kFirst, Incarnation{7});
  CHECK(members.state(kFirst) == Members::State::kDraining);
  CHECK(members.state(kSecond) == Members::State::kLost);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a task that the cluster lacks is refused") {
  const Status status = hello(TaskIndex{2}, 7);
  CHECK(status.code() == Code::kNotFound);
  CHECK(status.message() ==
        "[members] the cluster has 2 tasks: none has the index 2");
}

TEST_CASE_FIXTURE(Fixture, "smoke: the incarnation 0 is refused") {
  CHECK(hello(kFirst, 0).code() == Code::kInvalidArgument);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a worker of another build is refused") {
  const Status status = hello(kSecond, 7, 0, "other");
  CHECK(status.code() == Code::kFailedPrecondition);
  CHECK(status.message() ==
        "[members] /job:w/task:1 has another build than its master: its digest "
        "is other, the master's is digest");
}

TEST_CASE_FIXTURE(Fixture, "smoke: a task has one member at a time") {
  REQUIRE(hello(kFirst, 0xa1).ok());
  const Status status = hello(kFirst, 0xb2);
  CHECK(status.code() == Code::kAlreadyExists);
  CHECK(status.message() ==
        "[members] /job:w/task:0 is a member already, by incarnation "
        "00000000000000a1");
  CHECK(hello(kFirst, 0xa1).code() == Code::kAlreadyExists);
  CHECK(members.incarnation(kFirst) == Incarnation{0xa1});
  CHECK(hello(kSecond, 0xb2).ok());
}

TEST_CASE_FIXTURE(Fixture, "smoke: another process takes a lost task") {
  REQUIRE(hello(kFirst, 7).ok());
  lose(kFirst, 7);
  CHECK(num_lost() == 1);
  REQUIRE(hello(kFirst, 8).ok());
  CHECK(members.incarnation(kFirst) == Incarnation{8});
}

TEST_CASE_FIXTURE(Fixture, "smoke: a lost incarnation never comes back") {
  REQUIRE(hello(kFirst, 7).ok());
  lose(kFirst, 7);
  REQUIRE(hello(kFirst, 8).ok());
  lose(kFirst, 8);
  for (uint64_t incarnation : {7, 8}) {
    const Status status = hello(kFirst, incarnation);
    CHECK(status.code() == Code::kAborted);
    CHECK(status.message().find("was lost, which is final") !=
          status.message().npos);
    // Nor as another task.
    CHECK(hello(kSecond, incarnation).code() == Code::kAborted);
  }
}

TEST_CASE_FIXTURE(Fixture, "smoke: a loss is said once, and names the worker") {
  REQUIRE(hello(kSecond, 7).ok());
  lose(kSecond, 7);
  lose(kSecond, 7);
  REQUIRE(num_lost() == 1);
  const auto& lost = std::get<Members::Lost>(actions[0]);
  CHECK(lost.task == kSecond);
  CHECK(lost.incarnation == Incarnation{7});
  CHECK(lost.reason.to_string() ==
        "Unavailable: [members] /job:w/task:1 is lost: its link has ended");
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: what comes of an old incarnation has no effect") {
  REQUIRE(hello(kFirst, 7).ok());
  lose(kFirst, 7);
  REQUIRE(hello(kFirst, 8).ok());
  actions.clear();
  lose(kFirst, 7);
  members.on_ready(kFirst, Incarnation{7});
  members.on_drain(kFirst, Incarnation{7});
  CHECK(actions.empty());
  CHECK(members.state(kFirst) == Members::State::kJoining);
  // Nor is it a sign of life.
  for (int ms = 300; ms <= 1500; ms += 300) {
    members.on_heard(kFirst, Incarnation{7});
    members.on_time(at(ms), actions);
  }
  CHECK(num_lost() == 1);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a task out of range has no effect") {
  lose(TaskIndex{9}, 7);
  members.on_ready(TaskIndex{9}, Incarnation{7});
  CHECK(actions.empty());
}

TEST_CASE_FIXTURE(Fixture, "smoke: a task that is added can be joined") {
  CHECK(hello(TaskIndex{2}, 7).code() == Code::kNotFound);
  CHECK(members.add("/job:w/task:9") == TaskIndex{2});
  CHECK(members.state(TaskIndex{2}) == Members::State::kLost);
  REQUIRE(hello(TaskIndex{2}, 7).ok());
  lose(TaskIndex{2}, 7);
  REQUIRE(num_lost() == 1);
  CHECK(std::get<Members::Lost>(actions[0]).reason.message() ==
        "[members] /job:w/task:9 is lost: its link has ended");
}

TEST_CASE_FIXTURE(Fixture, "smoke: a silent worker is asked, and then lost") {
  REQUIRE(hello(kFirst, 7).ok());
  CHECK(members.next() == at(300));
  for (int ms = 300; ms < 1500; ms += 300) members.on_time(at(ms), actions);
  REQUIRE(actions.size() == 4);
  CHECK(std::get<Members::Ping>(actions[0]).task == kFirst);
  CHECK(num_lost() == 0);
  members.on_time(at(1500), actions);
  REQUIRE(num_lost() == 1);
  CHECK(std::get<Members::Lost>(actions[4]).reason.message() ==
        "[members] /job:w/task:0 is lost: it was silent for 1500 ms");
  CHECK(members.next() == kNever);
  CHECK(hello(kFirst, 7).code() == Code::kAborted);
}

TEST_CASE_FIXTURE(Fixture, "smoke: the silence of one is not that of another") {
  REQUIRE(hello(kFirst, 7).ok());
  REQUIRE(hello(kSecond, 8, 100).ok());
  for (int ms = 100; ms <= 2000; ms += 100) {
    members.on_heard(kSecond, Incarnation{8});
    members.on_time(at(ms), actions);
  }
  CHECK(num_lost() == 1);
  CHECK(members.state(kFirst) == Members::State::kLost);
  CHECK(members.state(kSecond) == Members::State::kJoining);
}

TEST_CASE_FIXTURE(Fixture, "smoke: a draining worker can be lost, too") {
  REQUIRE(hello(kFirst, 7).ok());
  members.on_drain(kFirst, Incarnation{7});
  lose(kFirst, 7);
  CHECK(num_lost() == 1);
}
