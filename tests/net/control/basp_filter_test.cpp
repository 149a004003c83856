#include "net/control/basp_filter.h"

#include <doctest/doctest.h>

#include <random>

#include "net/control/control_system.h"
#include "net/transfer/identity.h"
#include "tests/net/control/basp_bytes.h"
#include "tests/net/control/cluster_of.h"
#include "tests/repeats.h"

namespace tagflow::net {
namespace {

using namespace basp_bytes;  // NOLINT: for tests

constexpr Node kHere{1}, kPeer{2};
constexpr uint64_t kOurs = 20, kTheirs = 30;  // actors

BaspFilter filter_of(bool is_connector) {
  return BaspFilter({.is_connector = is_connector,
                     .node = kHere.id(),
                     .peer_node = ControlSystem::hash_of(kPeer.id()),
                     .actor = kOurs});
}

// Whether CAF would get the message.
Result<bool> take(BaspFilter& filter, const Message& message) {
  TAGFLOW_ASSIGN(const size_t size, BaspFilter::payload_size(message.head()));
  REQUIRE(size == message.payload.size());
  return filter.take(message.head(), message.payload);
}

// What a listener takes after the handshake of its peer.
Result<bool> take_after_handshake(const Message& message) {
  BaspFilter filter = filter_of(false);
  REQUIRE(take(filter, client_handshake(kPeer)).ok());
  // The peer's actor is known.
  REQUIRE(take(filter, direct(kTheirs, kOurs, tuple("+@str", text("")))).ok());
  return take(filter, message);
}

// What peers say.
std::vector<Message> sound_messages(const Node& peer, const std::string& here,
                                    uint64_t theirs, uint64_t ours) {
  std::vector<Message> all;
  const auto add = [&](std::string_view types, const std::string& values) {
    all.push_back(direct(theirs, ours, tuple(types, values)));
  };
  for (const uint64_t value :
       {caf::close_atom::uint_value(), caf::get_atom::uint_value(),
        caf::leave_atom::uint_value(), caf::ok_atom::uint_value(),
        caf::ping_atom::uint_value(), caf::redirect_atom::uint_value()})
    add("+@atom", big(value));
  for (const uint64_t value :
       {caf::get_atom::uint_value(), caf::join_atom::uint_value()})
    add("+@atom+@str", big(value) + text("/job:worker/task:1"));
  add("+@str", text(std::string(300, 'x')));
  add("+@str+@u16", text("localhost") + big(uint16_t{4000}));
  add("+@error", '\2' + atom(caf::atom("tagflow")) + big(uint16_t{0}) +
                     text("@<>+@str") + text("a reason"));
  all.push_back(monitor(peer, here, ours));
  all.push_back(down(peer, here, theirs));
  return all;
}

}  // namespace

TEST_CASE("CAF gets what the actors of the control plane say") {
  for (const Message& message :
       sound_messages(kPeer, kHere.bytes(), kTheirs, kOurs)) {
    const auto taken = take_after_handshake(message);
    INFO(taken.status().to_string());
    CHECK((taken.ok() && *taken));
  }
  // The handshake of a connector comes twice.
  BaspFilter listener = filter_of(false);
  CHECK(take(listener, client_handshake(kPeer)).ok());
  CHECK(take(listener, client_handshake(kPeer, 2)).ok());
  CHECK_FALSE(take(listener, client_handshake(kPeer, 2)).ok());
  BaspFilter connector = filter_of(true);
  CHECK(take(connector, server_handshake(kPeer, kTheirs)).ok());
  CHECK(take(connector, direct(kTheirs, kOurs, tuple("+@str", text("")))).ok());
  CHECK_FALSE(take(connector, server_handshake(kPeer, kTheirs)).ok());
}

TEST_CASE("a control message to an actor by its name is dropped") {
  Message named = direct(kTheirs, 99, "any bytes");
  named.flags = 1;
  const auto taken = take_after_handshake(named);
  REQUIRE(taken.ok());
  CHECK_FALSE(*taken);
}

TEST_CASE("CAF gets no message that is shorter or longer than its fields") {
  for (const Message& sound :
       sound_messages(kPeer, kHere.bytes(), kTheirs, kOurs)) {
    for (size_t size = 1; size < sound.payload.size(); ++size) {
      Message cut = sound;
      cut.payload.resize(size);
      CHECK_FALSE(take_after_handshake(cut).ok());
    }
    Message longer = sound;
    longer.payload += '\0';
    CHECK_FALSE(take_after_handshake(longer).ok());
  }
}

TEST_CASE("a header of BASP that CAF would not bear is refused") {
  CHECK_FALSE(BaspFilter::payload_size(header(2, 0, 0, 1, 1, 1)).ok());
  CHECK_FALSE(BaspFilter::payload_size(header(6, 0, 0, 0, 0, 0)).ok());
  CHECK_FALSE(
      BaspFilter::payload_size(header(2, 0, size_t{1} << 20, 1, 1, 1)).ok());
  CHECK(BaspFilter::payload_size(header(2, 0, kLongestControl, 1, 1, 1)).ok());
  std::string padded = header(2, 0, 5, 1, 1, 1);
  padded[1] = 1;
  CHECK_FALSE(BaspFilter::payload_size(padded).ok());
}

TEST_CASE("CAF gets nothing before the handshake, and none of another node") {
  for (const bool is_connector : {false, true}) {
    for (const Message& early :
         sound_messages(kPeer, kHere.bytes(), kTheirs, kOurs)) {
      BaspFilter filter = filter_of(is_connector);
      CHECK_FALSE(take(filter, early).ok());
    }
    const Message handshakes[] = {
        client_handshake(kPeer),   server_handshake(kPeer, kTheirs),
        client_handshake(Node{3}), server_handshake(Node{3}, kTheirs),
        client_handshake(kHere),   server_handshake(kHere, kTheirs)};
    for (size_t i = 0; i < std::size(handshakes); ++i) {
      BaspFilter filter = filter_of(is_connector);
      CHECK(take(filter, handshakes[i]).ok() == (i == size_t(is_connector)));
    }
    BaspFilter filter = filter_of(is_connector);
    CHECK_FALSE(take(filter, server_handshake(kPeer, 0)).ok());
  }
}

TEST_CASE("peers speak as one actor to one actor, in the words of actors.h") {
  const std::string get =
      tuple("+@atom", big(uint64_t(caf::get_atom::uint_value())));
  const std::string here = kHere.bytes();
  CHECK(take_after_handshake(direct(kTheirs, kOurs, get)).ok());
  CHECK(take_after_handshake(direct(0, kOurs, get)).ok());
  Message flagged = direct(kTheirs, kOurs, get);
  flagged.flags = 2;
  Message routed = direct(kTheirs, kOurs, kPeer.bytes() + here + get);
  routed.operation = 3;
  // An actor that the message came by.
  std::string by = get;
  by[0] = 1;
  const Message wrong[] = {
      direct(kTheirs, 21, get), direct(31, kOurs, get), flagged, routed,
      direct(kTheirs, kOurs, by), monitor(kPeer, here, 21),
      monitor(kPeer, kPeer.bytes(), kOurs), monitor(Node{3}, here, kOurs),
      down(kPeer, here, 31), down(Node{3}, here, kTheirs),
      // What an actor says to itself only.
      direct(kTheirs, kOurs,
             tuple("+@atom+@str",
                   big(uint64_t(caf::put_atom::uint_value())) + text(""))),
      direct(kTheirs, kOurs,
             tuple("+@atom", big(uint64_t(caf::tick_atom::uint_value())))),
      // Types of CAF that no peer needs.
      direct(kTheirs, kOurs, tuple("+@exit", std::string(64, '\0'))),
      direct(kTheirs, kOurs, tuple("+@ldouble", text("inf"))),
      direct(kTheirs, kOurs, tuple("", ""))};
  for (const Message& message : wrong)
    CHECK_FALSE(take_after_handshake(message).ok());
}

TEST_CASE("no bytes of a control connection end a worker, or keep it busy") {
  const Joined directory = start_worker(joining(0));
  const Joined worker = start_worker(joining(1, directory.address()));
  wait_for_members(directory.address(), 2);
  const auto thread = start_thread();
  auto identity =
      make_identity(Role::kWorker, {"worker", 9}, kTestCluster, kTestSecret);
  REQUIRE(identity.ok());
  std::mt19937_64 random(7);
  const auto below = [&random](size_t end) { return random() % end; };
  const int count = testing::repeats(1000);
  for (int i = 0; i < count; ++i) {
    const Joined& victim = i % 2 == 0 ? directory : worker;
    const Node node{uint32_t(i) + 1};
    identity->node = ControlSystem::hash_of(node.id());
    const auto connection =
        connect(*thread, victim.address(), *identity, Purpose::kControl);
    INFO(connection.status().to_string());
    REQUIRE(connection.ok());
    const int descriptor = connection->socket.descriptor();
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    // CAF's greeting, with its node, and its actor after the application.
    const std::string greeting =
        read_exactly(connection->socket, BaspFilter::kHeader + 32 + 1 +
                                             text("generic-app").size() + 8);
    const std::string here = greeting.substr(BaspFilter::kHeader, 32);
    uint64_t ours = 0;
    for (const char byte : greeting.substr(greeting.size() - 8))
      ours = ours << 8 | uint8_t(byte);
    std::string bytes = client_handshake(node).bytes();
    // Half of the streams have a handshake that is sound.
    const size_t first = below(2) == 0 ? 0 : bytes.size();
    const auto sound = sound_messages(node, here, kTheirs, ours);
    for (size_t j = below(3) + 1; j > 0; --j)
      bytes += sound[below(sound.size())].bytes();
    for (size_t j = below(4) + 1; j > 0; --j) {
      const size_t at = first + below(bytes.size() - first);
      switch (below(5)) {
        case 0:
          bytes[at] = char(random());
          break;
        case 1:
          bytes[at] = char(bytes[at] ^ (1 << below(8)));
          break;
        case 2:
          bytes.erase(at, below(40));
          break;
        case 3:
          bytes.insert(
              at, bytes.substr(first + below(bytes.size() - first), below(80)));
          break;
        default:
          bytes.insert(at, below(64), below(2) == 0 ? '\0' : '\xff');
      }
      if (bytes.size() == first) bytes += '\0';
    }
    // It may be closed before it has read all.
    static_cast<void>(
        ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    ::shutdown(descriptor, SHUT_WR);
    read_to_end(connection->socket);
  }
  CHECK(directory.warnings->mention("the connection of /job:worker/task:9 at"));
  wait_for_members(worker.address(), 2);
}

}  // namespace tagflow::net
