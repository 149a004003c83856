// Both ends of a window: Note [Window].
#include "net/protocol/window.h"

#include <doctest/doctest.h>

#include <deque>

#include "tests/net/protocol/sim_world.h"

using namespace tagflow;
using namespace tagflow::net;

TEST_CASE("smoke: small tokens go inline while there is room") {
  SendWindow window(1000);
  CHECK(window.take(400));
  CHECK(window.available() == 1000 - 464);
  CHECK_FALSE(window.take(500));
  CHECK(window.take(400));
  CHECK(window.available() == 72);
  CHECK(window.take(8));
  CHECK(window.available() == 0);
  CHECK_FALSE(window.take(0));
}

TEST_CASE("smoke: large tokens are announced, however much room there is") {
  SendWindow window(kDefaultWindow);
  CHECK(window.take(kSmallToken));
  CHECK_FALSE(window.take(kSmallToken + 1));
  CHECK_FALSE(window.take(UINT64_MAX));
  CHECK(window.available() == kDefaultWindow - charge_of(kSmallToken));
}

TEST_CASE("smoke: dead tokens and empty tensors have a charge") {
  SendWindow window(1000);
  int count = 0;
  while (window.take(0)) ++count;
  CHECK(count == 15);
}

TEST_CASE("smoke: credit makes room again") {
  SendWindow window(200);
  REQUIRE(window.take(100));
  CHECK_FALSE(window.take(100));
  CHECK(window.on_credit(164).ok());
  CHECK(window.take(100));
}

TEST_CASE("smoke: credit that was never taken breaks the protocol") {
  SendWindow window(200);
  REQUIRE(window.take(36));
  for (uint64_t bytes : {uint64_t{101}, UINT64_MAX}) {
    const Status status = window.on_credit(bytes);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(status.message().find("100 are unconsumed") != std::string::npos);
  }
  CHECK(window.available() == 100);
}

TEST_CASE("smoke: a sender without credit breaks the protocol") {
  ReceiveWindow window(200);
  CHECK(window.on_token(100).ok());
  for (uint64_t bytes : {uint64_t{0}, uint64_t{100}, UINT64_MAX})
    CHECK(window.on_token(bytes).code() == Code::kResourceExhausted);
  CHECK(window.unconsumed() == 164);
}

TEST_CASE("smoke: what is owed is not room yet") {
  ReceiveWindow window(1000);
  REQUIRE(window.on_token(100).ok());
  CHECK(window.on_consumed(100) == 0);
  CHECK(window.unconsumed() == 0);
  CHECK(window.owed() == 164);
  CHECK(window.on_token(1000 - 164 - 64).ok());
  CHECK_FALSE(window.on_token(0).ok());
}

TEST_CASE("smoke: credit returns by quarters of the window") {
  ReceiveWindow window(1000);
  uint64_t returned = 0;
  int messages = 0;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(window.on_token(0).ok());
    const uint64_t credit = window.on_consumed(0);
    returned += credit;
    messages += credit > 0;
  }
  CHECK(messages == 25);
  CHECK(returned == 6400);
}

TEST_CASE("smoke: both ends agree after any exchange") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    simulated::Random random(seed);
    const uint64_t size = random.between(64, 5000);
    SendWindow sender(size);
    ReceiveWindow receiver(size);
    std::deque<uint64_t> under_way, arrived, credits;
    const auto do_something = [&](uint64_t what) {
      if (what == 0) {
        const uint64_t bytes = random.below(size);
        if (sender.take(bytes)) under_way.push_back(bytes);
      } else if (what == 1 && !under_way.empty()) {
        REQUIRE(receiver.on_token(under_way.front()).ok());
        arrived.push_back(under_way.front());
        under_way.pop_front();
      } else if (what == 2 && !arrived.empty()) {
        const uint64_t credit = receiver.on_consumed(arrived.front());
        arrived.pop_front();
        if (credit > 0) credits.push_back(credit);
      } else if (what == 3 && !credits.empty()) {
        REQUIRE(sender.on_credit(credits.front()).ok());
        credits.pop_front();
      }
      CHECK(receiver.unconsumed() <= size);
    };
    for (int i = 0; i < 200; ++i) do_something(random.below(4));
    while (!under_way.empty() || !arrived.empty() || !credits.empty())
      do_something(random.between(1, 3));
    CHECK(sender.available() + receiver.owed() == size);
    CHECK(receiver.owed() < std::max<uint64_t>(size / 4, 1));
  }
}
