#include "net/link/hello.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "net/link/crypto.h"
#include "tests/net/link/identity.h"
#include "tests/net/wire/hex.h"

namespace tagflow::net {
namespace {

bool has(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string_view::npos;
}

// How a hello ended for each side.
struct Ends {
  Status connector;
  Status acceptor;
  Greeting seen_by_connector;
  Greeting seen_by_acceptor;
};

// Carries the frames between two sides until one of them ends it. `change` is
// called with each frame and its number, from 0 on.
Ends talk(Hello connector, Hello acceptor,
          const std::function<void(std::string&, int)>& change = {}) {
  Ends ends;
  std::string frame = connector.first();
  int number = 0;
  while (connector.wanted() != 0 || acceptor.wanted() != 0) {
    Hello& to = number % 2 == 0 ? acceptor : connector;
    Status& status = number % 2 == 0 ? ends.acceptor : ends.connector;
    if (change) change(frame, number);
    CHECK(frame.size() == to.wanted());
    auto answer = to.take(frame);
    ++number;
    if (!answer.ok()) {
      // The other side sees that the connection is closed.
      status = answer.status();
      Status& other = number % 2 == 0 ? ends.acceptor : ends.connector;
      other = error(Code::kUnavailable, "closed");
      if (!acceptor.refusal().ok()) ends.acceptor = acceptor.refusal();
      return ends;
    }
    frame = *answer;
  }
  ends.acceptor = acceptor.refusal();
  ends.seen_by_connector = connector.peer();
  ends.seen_by_acceptor = acceptor.peer();
  return ends;
}

Hello connector_of(const Identity& identity, uint64_t wanted = 0) {
  auto hello = Hello::connector(identity, Purpose::kBulk, wanted);
  REQUIRE(hello.ok());
  return std::move(*hello);
}

Hello acceptor_of(const Identity& identity, Hello::Admit admit = admit_all) {
  auto hello = Hello::acceptor(identity, std::move(admit));
  REQUIRE(hello.ok());
  return std::move(*hello);
}

Ends talk(const Identity& connector, const Identity& acceptor) {
  return talk(connector_of(connector), acceptor_of(acceptor));
}

TEST_CASE("a greeting has the bytes that docs/wire.md says") {
  Greeting greeting;
  greeting.role = Role::kMaster;
  greeting.purpose = Purpose::kBulk;
  greeting.port = 0x1f90;
  greeting.task = {"w", 5};
  greeting.incarnation = 1;
  greeting.wanted_incarnation = 2;
  greeting.node = 3;
  greeting.cluster.fill(0xcc);
  greeting.digest.fill(0xdd);
  greeting.nonce.fill(0xee);
  const auto repeated = [](const char* byte, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += byte;
    return text;
  };
  const std::string expected = unhex(
      "54 41 47 46 4c 4f 57 00 08 00 08 00 01 03 90 1f 05 00 00 00"
      "00 00 00 00 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00"
      "03 00 00 00 00 00 00 00" +
      repeated("cc", 16) + "77" + repeated("00", 63) + repeated("dd", 32) +
      repeated("ee", 32));
  const auto bytes = greeting.write();
  REQUIRE(bytes.ok());
  CHECK(bytes->size() == Greeting::kBytes);
  CHECK(hex(*bytes) == hex(expected));
  const auto read = Greeting::read(*bytes);
  REQUIRE(read.ok());
  CHECK(hex(*read->write()) == hex(expected));
  CHECK(read->task == greeting.task);
}

TEST_CASE("a greeting that was made up gives an error or just these bytes") {
  const auto bytes = connector_of(identity_of(1)).first();
  const bool holds = rc::check([&](uint8_t at, uint8_t value) {
    std::string changed = bytes;
    changed[at % changed.size()] = char(value);
    const auto greeting = Greeting::read(changed);
    RC_ASSERT((!greeting.ok() || *greeting->write() == changed));
  });
  CHECK(holds);
  std::string garbage(Greeting::kBytes, 'x');
  CHECK(has(Greeting::read(garbage).status(), "not a greeting of tagflow"));
}

TEST_CASE("the name of a job fits into a greeting, or is refused") {
  Identity identity = identity_of(1);
  identity.task.job = std::string(64, 'j');
  CHECK(connector_of(identity).first().size() == Greeting::kBytes);
  for (const std::string& job :
       {std::string(65, 'j'), std::string(), std::string("a\0b", 3)}) {
    identity.task.job = job;
    const auto hello = Hello::connector(identity, Purpose::kSmall);
    CHECK(hello.status().code() == Code::kInvalidArgument);
    CHECK(has(hello.status(), "the name of a job has 1 to 64 bytes"));
  }
}

TEST_CASE("two processes of a cluster know each other after a hello") {
  const Identity worker = identity_of(3);
  const Identity master = identity_of(0, Role::kMaster);
  const Ends ends = talk(worker, master);
  CHECK(ends.connector.ok());
  CHECK(ends.acceptor.ok());
  CHECK(ends.seen_by_acceptor.task.to_string() == "/job:worker/task:3");
  CHECK(ends.seen_by_acceptor.incarnation == worker.incarnation);
  CHECK(ends.seen_by_acceptor.purpose == Purpose::kBulk);
  CHECK(ends.seen_by_connector.role == Role::kMaster);
  CHECK(ends.seen_by_connector.incarnation == master.incarnation);
}

TEST_CASE("another secret is refused by a verdict that proves nothing") {
  Identity other = identity_of(1);
  other.secret = "another secret";
  std::vector<std::string> verdicts;
  for (int i = 0; i < 2; ++i) {
    const Ends ends = talk(connector_of(other), acceptor_of(identity_of(2)),
                           [&](std::string& frame, int number) {
                             if (number == 3) verdicts.push_back(frame);
                           });
    CHECK(ends.acceptor.code() == Code::kUnauthenticated);
    CHECK(has(ends.acceptor,
              "/job:worker/task:1 has another secret than this cluster"));
    CHECK(ends.connector.code() == Code::kUnauthenticated);
    CHECK(has(ends.connector,
              "/job:worker/task:2 refuses the proof of this process, as it "
              "does if the secrets differ"));
  }
  // There is nothing in it by which secrets could be tried.
  CHECK(verdicts == std::vector<std::string>(2, std::string(96, '\0')));
}

TEST_CASE("an acceptor without the secret is found out") {
  // It takes any proof, and makes up its verdict.
  Hello connector = connector_of(identity_of(1));
  Identity thief = identity_of(2);
  thief.secret = "a guess";
  Hello acceptor = acceptor_of(thief);
  auto proof = connector.take(*acceptor.take(connector.first()));
  REQUIRE(proof.ok());
  const auto end = connector.take(std::string(connector.wanted(), 'x'));
  CHECK(end.status().code() == Code::kUnauthenticated);
  CHECK(has(end.status(), "/job:worker/task:2 does not know this cluster's"));
}

TEST_CASE("both sides say what differs between them") {
  const Identity ours = identity_of(1);
  Identity other = identity_of(2);
  SUBCASE("the cluster") {
    other.cluster = *cluster_id("production");
    CHECK(has(talk(ours, other).connector,
              "/job:worker/task:2 is of another cluster"));
  }
  SUBCASE("the build") {
    other.digest = *sha256("build 2");
    CHECK(has(talk(ours, other).connector,
              "/job:worker/task:2 is of another build"));
  }
  SUBCASE("there is only one process") {
    CHECK(has(talk(ours, ours).connector, "a process speaks with itself"));
  }
  SUBCASE("both are masters") {
    CHECK(has(talk(identity_of(0, Role::kMaster), identity_of(1, Role::kMaster))
                  .connector,
              "both processes are masters"));
  }
  SUBCASE("the connector wants a process that is gone") {
    const Ends ends =
        talk(connector_of(ours, other.incarnation + 1), acceptor_of(other));
    CHECK(has(ends.connector, "/job:worker/task:2 was started anew"));
    CHECK(ends.connector.code() == Code::kNotFound);
  }
  SUBCASE("the connector wants the process that is there") {
    CHECK(talk(connector_of(ours, other.incarnation), acceptor_of(other))
              .connector.ok());
  }
}

TEST_CASE("a process of another version is refused by the versions") {
  const auto newer = [](std::string& frame, int number) {
    if (number > 1) return;
    frame[8] = char(kWireVersion + 1);
    frame[10] = char(kWireVersion + 2);
  };
  const Ends ends =
      talk(connector_of(identity_of(1)), acceptor_of(identity_of(2)), newer);
  CHECK(has(ends.acceptor,
            "the peer speaks versions 9 to 10 of the wire format, and this "
            "process version 8"));
  const auto newer_acceptor = [&](std::string& frame, int number) {
    if (number == 1) newer(frame, number);
  };
  CHECK(has(talk(connector_of(identity_of(1)), acceptor_of(identity_of(2)),
                 newer_acceptor)
                .connector,
            "versions 9 to 10"));
}

TEST_CASE("an acceptor that has reasons of its own tells them") {
  const auto is_there = [](const Greeting& peer) {
    return error(Code::kAlreadyExists, "{} is there already",
                 peer.task.to_string());
  };
  const Ends ends =
      talk(connector_of(identity_of(1)), acceptor_of(identity_of(2), is_there));
  CHECK(ends.acceptor.code() == Code::kAlreadyExists);
  CHECK(ends.connector.message() ==
        "[net|hello] /job:worker/task:2 refuses: /job:worker/task:1 is there "
        "already");
  // Unlike what does not fit, this may change.
  CHECK(ends.connector.code() == Code::kAborted);

  // Cut between characters.
  const auto is_long = [](const Greeting&) {
    std::string text(63, 'x');
    return error(Code::kAborted, "{}\u00e9 and more", text);
  };
  CHECK(talk(connector_of(identity_of(1)), acceptor_of(identity_of(2), is_long))
            .connector.message()
            .ends_with("refuses: " + std::string(63, 'x')));
  const auto is_silent = [](const Greeting&) {
    return Status(Code::kAborted, "");
  };
  CHECK(has(
      talk(connector_of(identity_of(1)), acceptor_of(identity_of(2), is_silent))
          .connector,
      "refuses: refused"));
}

TEST_CASE("nobody is asked about a peer that has not proved itself") {
  Identity other = identity_of(1);
  other.secret = "another secret";
  int asked = 0;
  const auto count = [&](const Greeting&) {
    ++asked;
    return Status();
  };
  talk(connector_of(other), acceptor_of(identity_of(2), count));
  CHECK(asked == 0);
  other.secret = identity_of(1).secret;
  talk(connector_of(other), acceptor_of(identity_of(2), count));
  CHECK(asked == 1);
}

TEST_CASE(
    "a hello with any bit changed on its way fails on one side at least") {
  for (int number = 0; number < 4; ++number) {
    for (size_t at = 0; at < 192; ++at) {
      bool was_changed = false;
      const Ends ends =
          talk(connector_of(identity_of(1)), acceptor_of(identity_of(2)),
               [&](std::string& frame, int n) {
                 if (n != number || at >= frame.size()) return;
                 frame[at] = char(frame[at] ^ 0x10);
                 was_changed = true;
               });
      CAPTURE(number);
      CAPTURE(at);
      CHECK((ends.connector.ok() && ends.acceptor.ok()) != was_changed);
    }
  }
}

TEST_CASE("a session that was recorded proves nothing the next time") {
  const Identity worker = identity_of(1), master = identity_of(2);
  std::vector<std::string> frames;
  talk(connector_of(worker), acceptor_of(master),
       [&](std::string& frame, int) { frames.push_back(frame); });
  REQUIRE(frames.size() == 4);
  Hello again = acceptor_of(master);
  REQUIRE(again.take(frames[0]).ok());
  REQUIRE(again.take(frames[2]).ok());
  CHECK(again.refusal().code() == Code::kUnauthenticated);
  Hello connector = connector_of(worker);
  REQUIRE(connector.take(frames[1]).ok());
  CHECK(connector.take(frames[3]).status().code() == Code::kUnauthenticated);
}

TEST_CASE("hashes are those of the standards") {
  CHECK(hex({reinterpret_cast<const char*>(sha256("abc")->data()), 32}) ==
        "ba 78 16 bf 8f 01 cf ea 41 41 40 de 5d ae 22 23 b0 03 61 a3 96 17 7a "
        "9c b4 10 ff 61 f2 00 15 ad");
  const auto mac = hmac_sha256("Jefe", "what do ya want for nothing?");
  CHECK(hex({reinterpret_cast<const char*>(mac->data()), 32}) ==
        "5b dc c1 46 bf 60 75 4e 6a 04 24 26 08 95 75 c7 5a 00 3f 08 9d 27 39 "
        "83 9d ec 58 b9 64 ec 38 43");
  CHECK(hmac_sha256("", "x").ok());
  const std::string token = *draw_token();
  CHECK(token.size() == 32);
  CHECK(token.find_first_not_of("0123456789abcdef") == token.npos);
  CHECK(token != *draw_token());
  CHECK(equal_in_constant_time(token, std::string(token)));
  CHECK(!equal_in_constant_time(token, token.substr(1)));
  CHECK(!equal_in_constant_time(token, token.substr(1) + "g"));
  CHECK(*draw_incarnation() != *draw_incarnation());
}

}  // namespace
}  // namespace tagflow::net
