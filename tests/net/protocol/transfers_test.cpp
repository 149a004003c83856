// The transfers of a step at one worker: what a Recv gets, and when.
#include "net/protocol/transfers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace tagflow;
using namespace tagflow::net;

namespace {

using Tokens = Inbox<std::string, int>;
using Next = Tokens::Next;

TransferKey key(uint32_t transfer, int64_t iteration = 0) {
  return {{1, 2}, iteration, transfer};
}

struct Fixture {
  Tokens inbox;
  std::optional<std::string> value;

  // The waiter that takes the token; -1 if it is kept.
  int token(const TransferKey& at, std::string text) {
    const auto waiter = inbox.on_token(at, text);
    REQUIRE(waiter.ok());
    // A waiter finds the token where it was.
    CHECK(waiter->has_value() == !text.empty());
    return waiter->value_or(-1);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "smoke: a Recv takes the token that has come") {
  CHECK(token(key(1), "x") == -1);
  CHECK(inbox.on_recv(key(1), 5, value) == Next::kTaken);
  CHECK(value == "x");
  CHECK(inbox.empty());
}

TEST_CASE_FIXTURE(Fixture, "smoke: a Recv that waits gets the token") {
  CHECK(inbox.on_recv(key(1), 5, value) == Next::kWait);
  CHECK(token(key(1), "x") == 5);
  CHECK_FALSE(value.has_value());
  CHECK(inbox.empty());
}

TEST_CASE_FIXTURE(Fixture, "smoke: a Recv pulls what was announced") {
  CHECK_FALSE(*inbox.on_announced(key(1)));
  CHECK(inbox.on_recv(key(1), 5, value) == Next::kPull);
  CHECK(*inbox.on_object(key(1)) == 5);
  CHECK(inbox.empty());
}

TEST_CASE_FIXTURE(Fixture,
                  "smoke: an announcement for a Recv is pulled at once") {
  CHECK(inbox.on_recv(key(1), 5, value) == Next::kWait);
  CHECK(*inbox.on_announced(key(1)));
  CHECK(*inbox.on_object(key(1)) == 5);
  CHECK(inbox.empty());
}

TEST_CASE_FIXTURE(Fixture, "smoke: keys differ by each of their parts") {
  const std::vector<TransferKey> keys = {{{1, 2}, 3, 4},
                                         {{9, 2}, 3, 4},
                                         {{1, 9}, 3, 4},
                                         {{1, 2}, 9, 4},
                                         {{1, 2}, 3, 9}};
  for (size_t i = 0; i < keys.size(); ++i)
    CHECK(token(keys[i], std::to_string(i)) == -1);
  for (size_t i = 0; i < keys.size(); ++i) {
    CHECK(inbox.on_recv(keys[i], 0, value) == Next::kTaken);
    CHECK(value == std::to_string(i));
  }
}

TEST_CASE_FIXTURE(Fixture, "smoke: a second token of a key is refused") {
  token(key(3, 8), "x");
  std::string again = "y";
  const Status status = inbox.on_token(key(3, 8), again).status();
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message() ==
        "[transfer] a peer sends a second token of transfer 3, iteration 8");
  CHECK_FALSE(inbox.on_announced(key(3, 8)).ok());
  CHECK(inbox.on_recv(key(3, 8), 5, value) == Next::kTaken);
  CHECK(value == "x");
}

TEST_CASE_FIXTURE(Fixture, "smoke: a token of an announced key is refused") {
  REQUIRE(inbox.on_announced(key(1)).ok());
  std::string text = "x";
  CHECK_FALSE(inbox.on_token(key(1), text).ok());
  CHECK_FALSE(inbox.on_announced(key(1)).ok());
  REQUIRE(inbox.on_recv(key(1), 5, value) == Next::kPull);
  CHECK_FALSE(inbox.on_token(key(1), text).ok());
  CHECK_FALSE(inbox.on_announced(key(1)).ok());
  CHECK(*inbox.on_object(key(1)) == 5);
}

TEST_CASE_FIXTURE(Fixture, "smoke: what was not pulled is refused") {
  CHECK(inbox.on_object(key(1)).status().message() ==
        "[transfer] a peer sends the token of transfer 1, iteration 0, which "
        "was not pulled");
  token(key(1), "x");
  CHECK_FALSE(inbox.on_object(key(1)).ok());
  REQUIRE(inbox.on_announced(key(2)).ok());
  CHECK_FALSE(inbox.on_object(key(2)).ok());
  CHECK(inbox.on_recv(key(3), 5, value) == Next::kWait);
  CHECK_FALSE(inbox.on_object(key(3)).ok());
}

TEST_CASE_FIXTURE(Fixture, "smoke: clearing gives back what nobody has taken") {
  token(key(1), "x");
  token(key(2), "y");
  token(key(3), "taken");
  CHECK(inbox.on_recv(key(3), 5, value) == Next::kTaken);
  CHECK(inbox.on_recv(key(4), 5, value) == Next::kWait);
  REQUIRE(inbox.on_announced(key(5)).ok());
  std::string dropped;
  size_t count = 0;
  inbox.clear([&](const std::string& text) {
    ++count;
    dropped = std::max(dropped, text);
  });
  CHECK(count == 2);
  CHECK(dropped == "y");
  CHECK(inbox.empty());
}

TEST_CASE("smoke: a held token is pulled once") {
  Outbox<std::string> outbox;
  outbox.announce(key(1), "x");
  outbox.announce(key(1, 1), "y");
  CHECK(outbox.size() == 2);
  CHECK(outbox.on_pull(key(1)) == "x");
  CHECK(outbox.on_pull(key(1)) == std::nullopt);
  CHECK(outbox.on_pull(key(1, 1)) == "y");
  CHECK(outbox.size() == 0);
}

TEST_CASE("smoke: what was dropped is not there to be pulled") {
  Outbox<std::string> outbox;
  outbox.announce(key(1), "x");
  outbox.clear();
  CHECK(outbox.on_pull(key(1)) == std::nullopt);
}

TEST_CASE_FIXTURE(Fixture, "announcements that no Recv wants have a limit") {
  const auto most = int64_t(Tokens::kMostAnnounced);
  for (int64_t i = 0; i < most; ++i)
    REQUIRE(inbox.on_announced(key(1, i)).ok());
  CHECK(inbox.on_announced(key(1, most)).status().code() ==
        Code::kResourceExhausted);
  CHECK(inbox.on_recv(key(1, 3), 5, value) == Next::kPull);
  CHECK(inbox.on_announced(key(1, most)).ok());
  inbox.clear([](const std::string&) {});
  CHECK(inbox.on_announced(key(1)).ok());
}
