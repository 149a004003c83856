// Locks of state: who gets them, in which order, and how waits end.
#include "devices/state/state_lock.h"

#include <doctest/doctest.h>

#include <new>
#include <string>
#include <thread>
#include <vector>

#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

using Mode = StateLock::Mode;

class Owner : public Resource {
 public:
  std::string describe() const override { return "owner"; }
};

class TestWaiter final : public StateLock::Waiter {
 public:
  TestWaiter(std::string name, std::vector<std::string>& heard)
      : name_(std::move(name)), heard_(heard) {}
  void on_granted() override { heard_.push_back(name_ + " granted"); }

 protected:
  void on_cancel() override { heard_.push_back(name_ + " cancelled"); }

 private:
  const std::string name_;
  std::vector<std::string>& heard_;
};

using Heard = std::vector<std::string>;

}  // namespace

TEST_CASE("readers share a lock, a writer has it alone") {
  StateLock lock;
  CHECK(lock.try_lock(Mode::kShared));
  CHECK(lock.try_lock(Mode::kShared));
  CHECK_FALSE(lock.try_lock(Mode::kExclusive));
  lock.unlock(Mode::kShared);
  CHECK_FALSE(lock.try_lock(Mode::kExclusive));
  lock.unlock(Mode::kShared);
  CHECK(lock.try_lock(Mode::kExclusive));
  CHECK_FALSE(lock.try_lock(Mode::kExclusive));
  CHECK_FALSE(lock.try_lock(Mode::kShared));
  lock.unlock(Mode::kExclusive);
  CHECK(lock.try_lock(Mode::kShared));
}

TEST_CASE("a state lock goes to those that wait in order, readers together") {
  StateLock lock;
  Heard heard;
  const auto waiter = [&](const char* name) {
    return std::make_shared<TestWaiter>(name, heard);
  };
  REQUIRE(lock.try_lock(Mode::kExclusive));
  lock.wait(Mode::kShared, waiter("reader 1"));
  lock.wait(Mode::kShared, waiter("reader 2"));
  lock.wait(Mode::kExclusive, waiter("writer"));
  lock.wait(Mode::kShared, waiter("reader 3"));
  CHECK(heard.empty());
  lock.unlock(Mode::kExclusive);
  CHECK(heard == Heard{"reader 1 granted", "reader 2 granted"});
  // Nobody overtakes the writer.
  CHECK_FALSE(lock.try_lock(Mode::kShared));
  lock.unlock(Mode::kShared);
  lock.unlock(Mode::kShared);
  CHECK(heard.back() == "writer granted");
  lock.unlock(Mode::kExclusive);
  CHECK(heard.back() == "reader 3 granted");
  CHECK(lock.try_lock(Mode::kShared));
}

TEST_CASE("a wait for a lock that is free is over at once") {
  StateLock lock;
  Heard heard;
  lock.wait(Mode::kExclusive, std::make_shared<TestWaiter>("writer", heard));
  CHECK(heard == Heard{"writer granted"});
  CHECK_FALSE(lock.try_lock(Mode::kShared));
}

TEST_CASE("a wait that was cancelled is passed over") {
  StateLock lock;
  Heard heard;
  CancelList cancels;
  REQUIRE(lock.try_lock(Mode::kExclusive));
  const auto first = std::make_shared<TestWaiter>("first", heard);
  REQUIRE(cancels.add(first));
  lock.wait(Mode::kExclusive, first);
  lock.wait(Mode::kShared, std::make_shared<TestWaiter>("second", heard));
  cancels.cancel();
  CHECK(heard == Heard{"first cancelled"});
  lock.unlock(Mode::kExclusive);
  CHECK(heard == Heard{"first cancelled", "second granted"});
}

TEST_CASE("a writer that gives up keeps no readers waiting") {
  StateLock lock;
  Heard heard;
  REQUIRE(lock.try_lock(Mode::kShared));
  const auto writer = std::make_shared<TestWaiter>("writer", heard);
  lock.wait(Mode::kExclusive, writer);
  lock.wait(Mode::kShared, std::make_shared<TestWaiter>("reader", heard));
  CHECK(heard.empty());
  REQUIRE(writer->claim());
  lock.pass_over();
  CHECK(heard == Heard{"reader granted"});
  CHECK(lock.try_lock(Mode::kShared));
}

TEST_CASE("a wait that lacks memory, or was given up, keeps no reader out") {
  StateLock lock;
  Heard heard;
  REQUIRE(lock.try_lock(Mode::kShared));
  int failures = 0;
  // The line of those that wait needs memory from time to time.
  for (int i = 0; i < 100; ++i) {
    const auto writer = std::make_shared<TestWaiter>("writer", heard);
    FailAllocation fail(1);
    try {
      lock.wait(Mode::kExclusive, writer);
      REQUIRE(writer->claim());
      lock.pass_over();
    } catch (const std::bad_alloc&) {
      ++failures;
    }
    fail.stop();
    CHECK(lock.try_lock(Mode::kShared));
    lock.unlock(Mode::kShared);
  }
  CHECK(failures > 0);
  lock.unlock(Mode::kShared);
  CHECK(lock.try_lock(Mode::kExclusive));
  CHECK(heard.empty());
}

TEST_CASE("a claim takes its locks in one order, each once, the stronger way") {
  StateLock locks[2];
  const Ref<Resource> owner(new Owner);
  StateClaim claim;
  claim.add(locks[1], Mode::kShared, *owner);
  claim.add(locks[0], Mode::kShared, *owner);
  claim.add(locks[1], Mode::kExclusive, *owner);
  CHECK(claim.take());
  CHECK(locks[0].try_lock(Mode::kShared));
  CHECK_FALSE(locks[1].try_lock(Mode::kShared));
  locks[0].unlock(Mode::kShared);
  claim.release();
  CHECK(locks[0].try_lock(Mode::kExclusive));
  CHECK(locks[1].try_lock(Mode::kExclusive));
}

TEST_CASE("a claim keeps what it has while it waits for the rest") {
  StateLock locks[3];
  const Ref<Resource> owner(new Owner);
  Heard heard;
  REQUIRE(locks[1].try_lock(Mode::kShared));
  StateClaim claim;
  for (StateLock& lock : locks) claim.add(lock, Mode::kExclusive, *owner);
  CHECK_FALSE(claim.take());
  CHECK_FALSE(locks[0].try_lock(Mode::kShared));
  claim.next().wait(std::make_shared<TestWaiter>("claim", heard));
  CHECK(locks[2].try_lock(Mode::kShared));
  locks[2].unlock(Mode::kShared);
  locks[1].unlock(Mode::kShared);
  REQUIRE(heard == Heard{"claim granted"});
  claim.note_granted();
  CHECK(claim.take());
  StateClaim moved = std::move(claim);
  claim.release();
  CHECK_FALSE(locks[2].try_lock(Mode::kShared));
  // What a claim has is released when it becomes another.
  StateLock other;
  StateClaim next;
  next.add(other, Mode::kExclusive, *owner);
  REQUIRE(next.take());
  moved = std::move(next);
  for (StateLock& lock : locks) CHECK(lock.try_lock(Mode::kExclusive));
  CHECK_FALSE(other.try_lock(Mode::kShared));
}

TEST_CASE("a claim that must wait keeps the owners of its locks") {
  bool is_gone = false;
  struct Witness final : Owner {
    explicit Witness(bool& gone) : gone_(gone) {}
    ~Witness() override { gone_ = true; }
    bool& gone_;
  };
  StateLock locks[2];
  REQUIRE(locks[1].try_lock(Mode::kShared));
  Ref<Resource> owner(new Witness(is_gone));
  StateClaim claim;
  claim.add(locks[0], Mode::kExclusive, *owner);
  claim.add(locks[1], Mode::kExclusive, *owner);
  CHECK_FALSE(claim.take());
  owner = {};
  CHECK_FALSE(is_gone);
  claim.release();
  CHECK(is_gone);
}

TEST_CASE("a thread may wait for a claim, until it is cancelled") {
  StateLock lock;
  const Ref<Resource> owner(new Owner);
  REQUIRE(lock.try_lock(Mode::kExclusive));
  CancelList cancels;
  bool has_it = true;
  std::thread waiting([&] {
    StateClaim claim;
    claim.add(lock, Mode::kShared, *owner);
    has_it = claim.take_blocking(&cancels);
  });
  cancels.cancel();
  waiting.join();
  CHECK_FALSE(has_it);
  CancelList others;
  std::thread patient([&] {
    StateClaim claim;
    claim.add(lock, Mode::kShared, *owner);
    has_it = claim.take_blocking(&others);
  });
  lock.unlock(Mode::kExclusive);
  patient.join();
  CHECK(has_it);
  CHECK(lock.try_lock(Mode::kExclusive));
}

TEST_CASE("a thread that gives up keeps nobody behind it waiting") {
  StateLock lock;
  const Ref<Resource> owner(new Owner);
  Heard heard;
  REQUIRE(lock.try_lock(Mode::kShared));
  CancelList cancels;
  bool has_it = true;
  std::thread writer([&] {
    StateClaim claim;
    claim.add(lock, Mode::kExclusive, *owner);
    has_it = claim.take_blocking(&cancels);
  });
  // Until it waits.
  while (lock.try_lock(Mode::kShared)) {
    lock.unlock(Mode::kShared);
    std::this_thread::yield();
  }
  lock.wait(Mode::kShared, std::make_shared<TestWaiter>("reader", heard));
  CHECK(heard.empty());
  cancels.cancel();
  writer.join();
  CHECK_FALSE(has_it);
  CHECK(heard == Heard{"reader granted"});
}

TEST_CASE("threads that change what a lock guards never meet") {
  StateLock locks[2];
  const Ref<Resource> owner(new Owner);
  int values[2] = {0, 0};
  constexpr int kTimes = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTimes; ++i) {
        StateClaim claim;
        if (t != 0) claim.add(locks[0], Mode::kExclusive, *owner);
        if (t != 1) claim.add(locks[1], Mode::kExclusive, *owner);
        REQUIRE(claim.take_blocking(nullptr));
        if (t != 0) ++values[0];
        if (t != 1) ++values[1];
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(values[0] == 3 * kTimes);
  CHECK(values[1] == 3 * kTimes);
}
