#include "net/service/run_turns.h"

#include <doctest/doctest.h>

#include <new>

#include "tests/failing_new.h"

namespace tagflow::net {
namespace {

using Starts = RunTurns::Starts;

}  // namespace

TEST_CASE("a client of many runs delays another client by one run") {
  RunTurns turns(1);
  Starts starts;
  for (uint64_t run = 1; run <= 4; ++run) turns.add(7, run, starts);
  turns.add(8, 11, starts);
  turns.add(8, 12, starts);
  CHECK(starts == Starts{1});
  CHECK(turns.has_queue());
  for (const auto& [client, run] :
       {std::pair{7, 1}, {7, 2}, {8, 11}, {7, 3}, {8, 12}, {7, 4}})
    turns.remove(uint64_t(client), uint64_t(run), starts);
  CHECK(starts == Starts{1, 2, 11, 3, 12, 4});
  CHECK(!turns.has_queue());
}

TEST_CASE("a run that is given up leaves the queue of its client") {
  RunTurns turns(1);
  Starts starts;
  turns.add(7, 1, starts);
  turns.add(8, 2, starts);
  turns.add(8, 3, starts);
  turns.remove(8, 2, starts);
  CHECK(starts == Starts{1});
  turns.remove(8, 3, starts);
  CHECK(!turns.has_queue());
  turns.remove(7, 1, starts);
  turns.remove(7, 1, starts);  // it is not here any more
  turns.add(9, 4, starts);
  CHECK(starts == Starts{1, 4});
}

TEST_CASE("a run that waits for an event leaves its turn to another one") {
  RunTurns turns(2);
  Starts starts;
  for (uint64_t run = 1; run <= 5; ++run) turns.add(run, run, starts);
  CHECK(starts == Starts{1, 2});
  turns.set_waiting(1, 1, starts);
  CHECK(starts == Starts{1, 2, 3});
  // It goes on beyond the limit, and others wait until there are fewer.
  turns.set_waiting(1, 0, starts);
  turns.remove(2, 2, starts);
  CHECK(starts == Starts{1, 2, 3});
  turns.remove(3, 3, starts);
  CHECK(starts == Starts{1, 2, 3, 4});
  // More cannot wait than have begun.
  turns.set_waiting(4, 9, starts);
  CHECK(starts == Starts{1, 2, 3, 4, 5});
  turns.remove(4, 4, starts);
  turns.add(6, 6, starts);
  CHECK(starts == Starts{1, 2, 3, 4, 5});
  turns.remove(5, 5, starts);
  CHECK(starts == Starts{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a run that there is no memory for is as if it had not been asked") {
  RunTurns turns(1);
  Starts starts;
  turns.add(7, 1, starts);
  for (const uint64_t client : {7, 8})
    for (int64_t k = 1;; ++k) {
      bool is_in = true;
      FailAllocation fail(k);
      try {
        turns.add(client, 100 + client, starts);
      } catch (const std::bad_alloc&) {
        is_in = false;
      }
      fail.stop();
      CHECK(is_in == !fail.failed());
      CHECK(turns.has_queue() == (is_in || client == 8));
      if (is_in) break;
    }
  CHECK(starts == Starts{1});
  // Nothing else takes memory.
  FailAllocation none(1, 1000);
  turns.remove(7, 1, starts);
  turns.remove(7, 107, starts);
  turns.set_waiting(8, 1, starts);
  turns.remove(8, 108, starts);
  CHECK(!none.failed());
  none.stop();
  CHECK(starts == Starts{1, 107, 108});
}

TEST_CASE("endless runs of some clients do not stop another one") {
  RunTurns turns(128);
  Starts starts;
  for (uint64_t run = 1; run <= 200; ++run) turns.add(run % 2, run, starts);
  CHECK(starts.size() == 128);
  starts.clear();
  // Two of its runs compute at a time.
  for (uint64_t run = 201; run <= 205; ++run) turns.add(7, run, starts);
  CHECK(starts == Starts{201, 202});
  turns.remove(7, 202, starts);
  CHECK(starts == Starts{201, 202, 203});
  turns.set_waiting(7, 1, starts);
  CHECK(starts == Starts{201, 202, 203, 204});
  // The others have no more than the limit meanwhile.
  turns.remove(1, 1, starts);
  CHECK(starts == Starts{201, 202, 203, 204});
  for (uint64_t run = 2; run <= 4; ++run) turns.remove(run % 2, run, starts);
  CHECK(starts.size() == 6);
}

}  // namespace tagflow::net
