#include "net/link/tls.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "net/link/listener.h"
#include "net/link/relay.h"
#include "net/link/system_io.h"
#include "tests/net/link/identity.h"
#include "tests/net/link/loopback.h"
#include "tests/net/link/test_certificates.h"

namespace tagflow::net {
namespace {

Identity with_tls(Identity identity, std::shared_ptr<Tls> tls) {
  identity.tls = std::move(tls);
  identity.cluster_name = "test";
  return identity;
}

Identity master_with(std::shared_ptr<Tls> tls) {
  return with_tls(identity_of(0, Role::kMaster), std::move(tls));
}

Identity worker_with(std::shared_ptr<Tls> tls) {
  return with_tls(identity_of(7), std::move(tls));
}

// What each side of one connection has, or says about the other one. The
// acceptor lives on, since it may be the last to hear of a refusal.
struct Ends {
  Result<Connection> connector = error(Code::kUnknown, "nothing");
  FrameInbox<Connection> accepted;
  FrameInbox<Status> refused;
  std::unique_ptr<IoThread> thread = start_thread();
  std::unique_ptr<Listener> listener;
};

std::unique_ptr<Ends> meet(const Identity& acceptor, const Identity& connector,
                           const std::string& host = "localhost",
                           Purpose purpose = Purpose::kControl) {
  auto ends = std::make_unique<Ends>();
  auto listener = Listener::start(
      *ends->thread,
      {.on_refused = [&ends =
                          *ends](const Status& why) { ends.refused.put(why); }},
      acceptor, admit_all, [&ends = *ends](Connection connection) {
        ends.accepted.put(std::move(connection));
      });
  REQUIRE(listener.ok());
  ends->listener = std::move(*listener);
  const auto thread = start_thread();
  FrameInbox<Result<Connection>> results;
  const Connector started(
      *thread,
      {.host = host, .port = ends->listener->port(), .purpose = purpose},
      connector,
      [&](Result<Connection> result) { results.put(std::move(result)); });
  ends->connector = results.take();
  return ends;
}

void expect_refusal(const Identity& acceptor, const Identity& connector,
                    std::string_view at_connector, std::string_view at_acceptor,
                    Code code, const std::string& host = "localhost") {
  const auto ends = meet(acceptor, connector, host);
  REQUIRE_FALSE(ends->connector.ok());
  const Status& said = ends->connector.status();
  INFO(said.to_string());
  CHECK(mentions(said, at_connector));
  CHECK(mentions(said, fmt::format("{} port", host)));
  CHECK(said.code() == code);
  if (at_acceptor.empty()) return;
  const Status refused = ends->refused.take();
  INFO(refused.to_string());
  CHECK(mentions(refused, at_acceptor));
  CHECK(mentions(refused, "a stranger at 127.0.0.1"));
}

TEST_CASE("processes with certificates of one authority speak inside TLS") {
  for (const Purpose purpose :
       {Purpose::kControl, Purpose::kSmall, Purpose::kBulk}) {
    auto ends = meet(master_with(master_tls()), worker_with(worker_tls(7)),
                     "localhost", purpose);
    REQUIRE(ends->connector.ok());
    CHECK(ends->connector->peer.role == Role::kMaster);
    const Connection accepted = ends->accepted.take();
    CHECK(accepted.peer.task.index == 7);
    REQUIRE(accepted.socket.tls() != nullptr);
    REQUIRE(ends->connector->socket.tls() != nullptr);
    const auto here = accepted.socket.tls()->peer();
    const auto there = ends->connector->socket.tls()->peer();
    CHECK(here->binding == there->binding);
    CHECK(here->binding.size() == 32);
    CHECK(here->names == std::vector<std::string>{"tagflow://test/worker/7"});
    CHECK(there->names == std::vector<std::string>{"tagflow://test/master"});
  }
}

TEST_CASE("a certificate that has expired is refused on both sides") {
  CertificateOptions expired = certificate_of("worker", 7);
  expired.lasts = -std::chrono::hours(1);
  expect_refusal(master_with(master_tls()), worker_with(tls_of(expired)),
                 "the certificate of this process is not valid now",
                 "the certificate of the peer expired at", Code::kUnavailable);
  expired.names = {certified_name("test", "", 0)};
  expect_refusal(master_with(tls_of(expired)), worker_with(worker_tls(7)),
                 "the certificate of the peer expired at",
                 "the certificate of this process is not valid now",
                 Code::kUnavailable);
  const Status own = tls_of(expired)->check_own("tagflow://test/master");
  CHECK(own.code() == Code::kFailedPrecondition);
  CHECK(mentions(own, "the certificate of this process expired at"));
}

TEST_CASE("a certificate of another authority is refused on both sides") {
  const Certified other =
      make_authority("somebody", std::chrono::hours(1)).value();
  expect_refusal(master_with(master_tls()),
                 worker_with(tls_of(certificate_of("worker", 7), other)),
                 "was issued by another authority", "", Code::kUnauthenticated);
  // The acceptor is the first to say it if the connector trusts both.
  TlsTexts texts = tls_texts(certificate_of("worker", 7), other);
  texts.ca += test_authority().certificate;
  expect_refusal(master_with(master_tls()),
                 worker_with(Tls::make(texts).value()),
                 "the peer does not trust the certificate of this process: "
                 "unknown CA",
                 "was issued by another authority, \"CN = somebody\"",
                 Code::kUnauthenticated);
}

TEST_CASE("a certificate of another process is refused on both sides") {
  auto ends = meet(master_with(worker_tls(3)), worker_with(worker_tls(7)));
  CHECK(ends->connector.status().code() == Code::kFailedPrecondition);
  CHECK(mentions(ends->connector.status(),
                 "/job:master/task:0 has the certificate of "
                 "tagflow://test/worker/3, not of tagflow://test/master"));
  ends = meet(master_with(master_tls()), worker_with(worker_tls(8)));
  CHECK(mentions(ends->connector.status(),
                 "/job:master/task:0 refuses: /job:worker/task:7 has the "
                 "certificate of tagflow"));
  CertificateOptions other = certificate_of("worker", 7);
  other.names = {certified_name("another", "worker", 7)};
  ends = meet(master_with(master_tls()), worker_with(tls_of(other)));
  CHECK_FALSE(ends->connector.ok());
  // A worker is not a master.
  CHECK(tls_of(other)->check_own("tagflow://test/master").code() ==
        Code::kFailedPrecondition);
}

TEST_CASE("a certificate says of which cluster its process is") {
  CertificateOptions options;
  options.subject = "a process of a test";
  options.names = {"https://example.org/master", "tagflow://a/worker/12",
                   certified_name("the 2nd/b %41", "", 0),
                   "tagflow://c/master"};
  options.lasts = std::chrono::hours(1);
  const auto tls = tls_of(options);
  CHECK(tls->cluster_of("worker", 12) == "a");
  CHECK(tls->cluster_of("", 0) == "the 2nd/b %41");
  CHECK_FALSE(tls->cluster_of("worker", 2));
  CHECK_FALSE(tls->cluster_of("chief", 12));
  CHECK_FALSE(worker_tls(7)->cluster_of("", 0));
}

TEST_CASE("a certificate with hosts is for these only") {
  CertificateOptions options = certificate_of("", 0);
  options.hosts = {"ann.example", "127.0.0.1"};
  const auto master = master_with(tls_of(options));
  CHECK(meet(master, worker_with(worker_tls(7)), "127.0.0.1")->connector.ok());
  expect_refusal(master, worker_with(worker_tls(7)),
                 "is for the host ann.example or 127.0.0.1, not localhost",
                 "does not trust the certificate of this process",
                 Code::kUnauthenticated);
}

TEST_CASE("a process without TLS and one with it tell each other so") {
  expect_refusal(master_with(master_tls()), identity_of(7),
                 "the peer speaks with TLS, and this process without",
                 "the peer speaks without TLS, and this process with it",
                 Code::kFailedPrecondition);
  expect_refusal(identity_of(0, Role::kMaster), worker_with(worker_tls(7)),
                 "the peer speaks without TLS, and this process with it",
                 "the peer speaks with TLS, and this process without",
                 Code::kFailedPrecondition);
}

TEST_CASE("a proof may begin as a message of TLS does") {
  const auto thread = start_thread();
  const auto listener =
      Listener::start(*thread, {}, identity_of(0, Role::kMaster), admit_all,
                      [](const Connection&) {});
  REQUIRE(listener.ok());
  const Socket socket = dial((*listener)->port());
  const auto hello = Hello::connector(identity_of(7), Purpose::kSmall);
  write_all(socket, hello->first());
  CHECK(read_exactly(socket, Greeting::kBytes).size() == Greeting::kBytes);
  write_all(socket, "\x16\x03" + std::string(30, 'p'));
  // It is wrong, as another one would be: the verdict is no alert.
  CHECK(read_to_end(socket) == std::string(96, '\0'));
}

TEST_CASE("a stranger at a port with TLS is told nothing but an alert") {
  const auto thread = start_thread();
  FrameInbox<Connection> accepted;
  const auto listener = Listener::start(
      *thread, {}, master_with(master_tls()), admit_all,
      [&](Connection connection) { accepted.put(std::move(connection)); });
  REQUIRE(listener.ok());
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"),
        std::string("\x16\x03\x01\xff\xff"),
        std::string("\x16") + std::string(5000, 'x')}) {
    const Socket socket = dial((*listener)->port());
    write_all(socket, bytes);
    ::shutdown(socket.descriptor(), SHUT_WR);
    CHECK(read_to_end(socket).size() <= 7);
  }
  CHECK(accepted.size() == 0);
}

TEST_CASE("the proof of a hello holds for one session of TLS only") {
  const Identity master = master_with(master_tls());
  const Identity worker = worker_with(worker_tls(7));
  auto connector = Hello::connector(worker, Purpose::kSmall).value();
  auto acceptor = Hello::acceptor(master, admit_all).value();
  connector.bind({std::string(32, 'a'), {"tagflow://test/master"}});
  acceptor.bind({std::string(32, 'b'), {"tagflow://test/worker/7"}});
  const auto greeting = acceptor.take(connector.first());
  const auto proof = connector.take(*greeting);
  REQUIRE(proof.ok());
  REQUIRE(acceptor.take(*proof).ok());
  CHECK(acceptor.refusal().code() == Code::kUnauthenticated);
}

TEST_CASE("certificates are renewed for the connections that follow") {
  TlsTexts next;
  bool has_changed = false;
  const auto tls = Tls::make(tls_texts(certificate_of("", 0)), [&] {
    return std::exchange(has_changed, false) ? std::optional(next)
                                             : std::nullopt;
  });
  REQUIRE(tls.ok());
  const Identity master = master_with(*tls);
  const auto names = [&] {
    auto ends = meet(master, worker_with(worker_tls(7)));
    REQUIRE(ends->connector.ok());
    return ends->connector->socket.tls()->peer()->names;
  };
  CHECK(names().size() == 1);
  CertificateOptions renewed = certificate_of("", 0);
  renewed.names.push_back("tagflow://test/renewed");
  next = tls_texts(renewed);
  has_changed = true;
  CHECK(names().size() == 2);
  // Half of a change is none.
  next.key = tls_texts(renewed).key;
  has_changed = true;
  CHECK(names().size() == 2);
}

TEST_CASE("texts that are no certificates or keys are named") {
  const TlsTexts good = tls_texts(certificate_of("worker", 0));
  const auto refused = [](const TlsTexts& texts) {
    const Status status = Tls::make(texts).status();
    CHECK(status.code() == Code::kInvalidArgument);
    return std::string(status.message());
  };
  TlsTexts texts = good;
  texts.ca = "x";
  CHECK(refused(texts) ==
        "[net|tls] the file of the authority has no certificate in PEM");
  texts = good;
  texts.certificate = good.key;
  CHECK(refused(texts) ==
        "[net|tls] the file of the certificate has none in PEM");
  texts = good;
  texts.key.clear();
  CHECK(refused(texts) ==
        "[net|tls] the file of the key has none in PEM without a password");
  texts.key = tls_texts(certificate_of("worker", 0)).key;
  CHECK(refused(texts) == "[net|tls] the key is not that of the certificate");
}

TEST_CASE("names and hosts with which certificates are made are checked") {
  CertificateOptions options = certificate_of("worker", 0);
  for (const char* host : {"", "a,b", "a b", "DNS:a\n", "a;b"}) {
    options.hosts = {host};
    CHECK(make_certificate(test_authority(), options).status().code() ==
          Code::kInvalidArgument);
  }
  CHECK(certified_name("a b/c%\xc3\xa4", "worker", 12) ==
        "tagflow://a%20b%2Fc%25%C3%A4/worker/12");
  CHECK(make_certificate({}, certificate_of("worker", 0)).status().code() ==
        Code::kInvalidArgument);
}

TEST_CASE("a write with TLS counts when the socket has all of it") {
  const auto [first, second] = tls_sockets();
  const std::string sent(size_t{9} << 20, 's');
  std::string got(sent.size(), '\0');
  size_t written = 0, read = 0;
  bool was_full = false;
  while (read < got.size()) {
    for (size_t count = 1; written < sent.size() && count > 0;) {
      iovec from = part(std::string_view(sent).substr(written));
      const auto some = first.tls()->write_some({&from, 1}, "the peer");
      REQUIRE(some.ok());
      count = *some;
      written += count;
      was_full = was_full || count == 0;
    }
    iovec to = part(std::span<char>(got).subspan(read));
    const auto some = second.tls()->read_some({&to, 1}, "the peer");
    REQUIRE(some.ok());
    read += some->value_or(0);
    CHECK(read <= written + 1);
  }
  CHECK(was_full);
  CHECK((got == sent));
}

TEST_CASE("a relay carries bytes both ways, and ends with either side") {
  for (const bool ends_here : {false, true}) {
    const auto thread = start_thread();
    auto [first, second] = tls_sockets();
    Socket here = without_tls(*thread, std::move(first)).value();
    Socket there = without_tls(*thread, std::move(second)).value();
    for (const auto& [from, to] :
         {std::pair(&here, &there), std::pair(&there, &here)}) {
      const std::string bytes(100'000, from == &here ? 'h' : 't');
      std::string got;
      size_t sent = 0;
      while (got.size() < bytes.size()) {
        const ssize_t count =
            ::send(from->descriptor(), bytes.data() + sent, bytes.size() - sent,
                   MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count > 0) sent += size_t(count);
        char some[4096];
        const ssize_t more =
            ::recv(to->descriptor(), some, sizeof(some), MSG_DONTWAIT);
        if (more > 0) got.append(some, size_t(more));
      }
      CHECK((got == bytes));
    }
    (ends_here ? here : there) = Socket();
    pollfd end{(ends_here ? there : here).descriptor(), POLLIN, 0};
    CHECK(::poll(&end, 1, int(std::chrono::milliseconds(kNever).count())) == 1);
    CHECK(read_to_end(ends_here ? there : here).empty());
  }
}

}  // namespace
}  // namespace tagflow::net
