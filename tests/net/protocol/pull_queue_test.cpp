#include "net/protocol/pull_queue.h"

#include <doctest/doctest.h>

using namespace tagflow;
using namespace tagflow::net;

namespace {

Pull pull_of(uint64_t step) { return {.step = step}; }

}  // namespace

TEST_CASE("pulls wait while a peer has not read the answers, in their order") {
  PullQueue queue(100);
  CHECK(*queue.add(pull_of(1)));
  queue.on_send(ObjectId(1), 60);
  // The limit may be exceeded by one answer.
  CHECK(*queue.add(pull_of(2)));
  queue.on_send(ObjectId(2), 60);
  CHECK_FALSE(*queue.add(pull_of(3)));
  CHECK_FALSE(*queue.add(pull_of(4)));
  CHECK_FALSE(queue.next().has_value());
  queue.on_sent(ObjectId(9));
  CHECK_FALSE(queue.next().has_value());
  queue.on_sent(ObjectId(1));
  // Nobody overtakes.
  CHECK_FALSE(*queue.add(pull_of(5)));
  CHECK(queue.next()->step == 3);
  queue.on_send(ObjectId(3), 60);
  CHECK_FALSE(queue.next().has_value());
  queue.on_sent(ObjectId(2));
  queue.on_sent(ObjectId(3));
  CHECK(queue.next()->step == 4);
  CHECK(queue.next()->step == 5);
  CHECK_FALSE(queue.next().has_value());
  CHECK(*queue.add(pull_of(6)));
}

TEST_CASE("a peer that names an object twice has both of its answers counted") {
  PullQueue queue(100);
  queue.on_send(ObjectId(7), 80);
  queue.on_send(ObjectId(7), 80);
  queue.on_sent(ObjectId(7));
  CHECK(*queue.add(pull_of(1)));
  queue.on_send(ObjectId(8), 30);
  CHECK_FALSE(*queue.add(pull_of(2)));
  queue.on_sent(ObjectId(7));
  CHECK(queue.next().has_value());
}

TEST_CASE("pulls that wait have a limit") {
  PullQueue queue(0);
  queue.on_send(ObjectId(1), 1);
  bool is_refused = false;
  for (size_t i = 0; i < PullQueue::kMostWaiting; ++i)
    is_refused = is_refused || !queue.add(pull_of(i)).ok();
  CHECK_FALSE(is_refused);
  CHECK(queue.add(pull_of(0)).status().code() == Code::kResourceExhausted);
}
