// WebSockets of an HTTP server, as a client sees their bytes.
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <utility>

#include "net/link/http_server.h"
#include "tests/net/link/loopback.h"

namespace tagflow::net {
namespace {

using Request = HttpServer::SocketRequest;
using WebSocket = HttpServer::WebSocket;

// A server that hands over each WebSocket, and what comes by it.
struct Serving {
  explicit Serving(HttpServer::Options options = {}) {
    if (options.time == HttpServer::Options().time) options.time = kNever;
    auto started = HttpServer::start(
        std::move(options), {}, {},
        [this](const Request& request, WebSocket socket)
            -> std::variant<HttpServer::Page, HttpServer::SocketEvents> {
          if (request.target != "/live")
            return HttpServer::Page{.status = 403, .body = "no\n"};
          if (request.origin == "http://bad") throw std::runtime_error("bad");
          sockets.put(std::move(socket));
          return HttpServer::SocketEvents{
              [this](std::string text) {
                if (text == "throw") throw std::runtime_error("thrown");
                texts.put(std::move(text));
              },
              [this] { closed.put(1); }};
        });
    REQUIRE(started.ok());
    server = std::move(*started);
  }
  Socket dial() const { return net::dial(server->port()); }
  // A client, and the server's side of it.
  std::pair<Socket, WebSocket> connect();

  FrameInbox<WebSocket> sockets;
  FrameInbox<std::string> texts;
  FrameInbox<int> closed;
  std::unique_ptr<HttpServer> server;
};

std::string upgrade_of(const std::string& path, const std::string& more = "") {
  return "GET " + path +
         " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
         "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
         // The one of RFC 6455.
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
         more + "\r\n";
}

std::string read_head(const Socket& socket) {
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    const std::string byte = read_exactly(socket, 1);
    if (byte.empty()) break;
    head += byte;
  }
  return head;
}

std::pair<Socket, WebSocket> Serving::connect() {
  Socket client = dial();
  write_all(client, upgrade_of("/live"));
  const std::string head = read_head(client);
  CHECK(head.starts_with("HTTP/1.1 101 "));
  CHECK(head.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") !=
        head.npos);
  return {std::move(client), sockets.take()};
}

bool is_closed(const Socket& socket) { return read_exactly(socket, 1).empty(); }

// Masked by zeros. REQUIRES: text.size() < 126
std::string text_frame(const std::string& text) {
  return std::string({char(0x81), char(0x80 | text.size()), 0, 0, 0, 0}) + text;
}

// The text of a short frame of the server; empty for another kind.
std::string read_text(const Socket& client) {
  const std::string head = read_exactly(client, 2);
  if (head.size() < 2) return {};
  const std::string body = read_exactly(client, size_t(uint8_t(head[1])));
  return uint8_t(head[0]) == 0x81 ? body : std::string();
}

TEST_CASE("a client of a WebSocket says and gets texts") {
  Serving f;
  auto [client, socket] = f.connect();
  write_all(client, text_frame("first") + text_frame("second"));
  CHECK(f.texts.take() == "first");
  CHECK(f.texts.take() == "second");
  socket.send("answer");
  CHECK(read_text(client) == "answer");
  socket.send("more");
  CHECK(read_text(client) == "more");
  CHECK(f.server->num_connections() == 1);

  SUBCASE("until the server closes it") {
    socket.close();
    CHECK(read_exactly(client, 1) == "\x88");
    client = Socket();
    CHECK(f.closed.take() == 1);
  }
  SUBCASE("until the client goes") {
    client = Socket();
    CHECK(f.closed.take() == 1);
    socket.send("to nobody");
  }
  SUBCASE("until the server ends") {
    f.server.reset();
    CHECK(f.closed.take() == 1);
    CHECK(is_closed(client));
    socket.send("to nobody");
  }
  SUBCASE("until its handler throws") {
    write_all(client, text_frame("throw"));
    CHECK(f.closed.take() == 1);
    CHECK(is_closed(client));
  }
}

TEST_CASE("what is no text of a WebSocket ends it alone") {
  Serving f({.most_text_bytes = 10});
  auto [other, kept] = f.connect();
  for (const std::string& bytes :
       {text_frame("eleven bytes"), std::string("\x82\x80\0\0\0\0", 6),
        std::string(64, '\xff'), std::string("\x81\x01x", 3)}) {
    auto [client, socket] = f.connect();
    write_all(client, bytes);
    // It is told why, or the connection ends at once.
    const std::string end = read_exactly(client, 1);
    CHECK((end.empty() || end == "\x88"));
    client = Socket();
    CHECK(f.closed.take() == 1);
  }
  kept.send("still here");
  CHECK(read_text(other) == "still here");
}

TEST_CASE("the handler decides who gets a WebSocket") {
  Serving f;
  const Socket refused = f.dial();
  write_all(refused, upgrade_of("/other"));
  CHECK(read_head(refused).starts_with("HTTP/1.1 403 "));
  const Socket broken = f.dial();
  write_all(broken, upgrade_of("/live", "Origin: http://bad\r\n"));
  CHECK(read_head(broken).starts_with("HTTP/1.1 500 "));
  // Bytes before the answer are nobody's.
  const Socket hasty = f.dial();
  write_all(hasty, upgrade_of("/live") + text_frame("early"));
  CHECK(read_head(hasty).starts_with("HTTP/1.1 400 "));
}

TEST_CASE("a slow client gets the newest text") {
  Serving f;
  auto [client, socket] = f.connect();
  // More than the system keeps for it, in texts that are not read.
  const std::string large(size_t{1} << 20, 'x');
  for (int i = 0; i < 64; ++i) socket.send(large);
  socket.send("newest");
  size_t count = 0;
  std::string text;
  do {
    const std::string head = read_exactly(client, 2);
    REQUIRE(head.size() == 2);
    size_t size = uint8_t(head[1]);
    if (size == 127) {
      size = 0;
      for (const char byte : read_exactly(client, 8))
        size = size << 8 | uint8_t(byte);
    }
    text = read_exactly(client, size);
    ++count;
  } while (text != "newest");
  CHECK(count < 64);
}

TEST_CASE("there are as many WebSockets as requests may run") {
  Serving f({.most_running = 1});
  auto [client, socket] = f.connect();
  const Socket second = f.dial();
  write_all(second, upgrade_of("/live"));
  CHECK(read_head(second).starts_with("HTTP/1.1 429 "));
  client = Socket();
  CHECK(f.closed.take() == 1);
  while (f.server->num_running() > 0) std::this_thread::yield();
  const auto third = f.connect();
  CHECK(f.server->num_running() == 1);
}

}  // namespace
}  // namespace tagflow::net
