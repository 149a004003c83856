#include "net/link/http_server.h"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/net/link/http_client.h"

namespace tagflow::net {
namespace {

using test::Answer;
using test::is_closed;
using test::read_answer;
using test::request_of;

constexpr char kBody[] = "one figure 1\n";

// A server with a page that counts how often it was made, and one that throws.
struct Server {
  explicit Server(HttpServer::Options options = {}) {
    // A busy machine keeps a client waiting for longer than that.
    if (options.time == HttpServer::Options().time) options.time = kNever;
    auto started = HttpServer::start(
        std::move(options),
        {{"/metrics",
          [this] {
            ++made;
            return HttpServer::Page{.body = kBody};
          }},
         {"/healthz",
          [] { return HttpServer::Page{.status = 503, .body = "leaving\n"}; }},
         {"/broken", []() -> HttpServer::Page {
            throw std::runtime_error("no figures");
          }}});
    INFO(started.status().to_string());
    REQUIRE(started.ok());
    server = std::move(*started);
  }
  Socket dial() const { return net::dial(server->port()); }
  void wait_for_connections(size_t count) const {
    while (server->num_connections() != count) std::this_thread::yield();
  }

  std::atomic<int> made{0};
  std::unique_ptr<HttpServer> server;
};

Answer ask(const Server& server, const std::string& request,
           bool has_body = true) {
  const Socket socket = server.dial();
  write_all(socket, request);
  return read_answer(socket, has_body);
}

TEST_CASE("a page is served with its type and length") {
  const Server server;
  const Answer answer = ask(server, request_of("/metrics"));
  CHECK(answer.status() == 200);
  CHECK(answer.has("Content-Type: text/plain; charset=utf-8"));
  CHECK(answer.body == kBody);
  CHECK(ask(server, request_of("/metrics?name=x")).body == kBody);
  CHECK(server.made == 2);
}

TEST_CASE("a page says its own status") {
  const Answer answer = ask(Server(), request_of("/healthz"));
  CHECK(answer.status() == 503);
  CHECK(answer.body == "leaving\n");
}

TEST_CASE("HEAD has the head of the answer, and no body") {
  const Server server;
  const Socket socket = server.dial();
  write_all(socket, request_of("/metrics", "HEAD"));
  const Answer answer = read_answer(socket, false);
  CHECK(answer.status() == 200);
  CHECK(answer.has("Content-Length: 13"));
  // What comes next is the next answer.
  write_all(socket, request_of("/healthz"));
  CHECK(read_answer(socket).status() == 503);
}

TEST_CASE("another page is not found, and the answer names those there are") {
  const Answer answer = ask(Server(), request_of("/metric"));
  CHECK(answer.status() == 404);
  CHECK(answer.body == "there is: /broken, /healthz, /metrics\n");
}

TEST_CASE("a page that throws is an error of the server, which goes on") {
  const Server server;
  const Socket socket = server.dial();
  write_all(socket, request_of("/broken"));
  const Answer answer = read_answer(socket);
  CHECK(answer.status() == 500);
  CHECK(answer.body.find("no figures") != answer.body.npos);
  write_all(socket, request_of("/metrics"));
  CHECK(read_answer(socket).status() == 200);
}

TEST_CASE("other methods are refused, and the answer says which there are") {
  const Server server;
  const Socket socket = server.dial();
  for (const char* method : {"DELETE", "OPTIONS", "CONJURE"}) {
    CAPTURE(method);
    write_all(socket, request_of("/metrics", method));
    const Answer answer = read_answer(socket);
    CHECK(answer.status() == 405);
    CHECK(answer.has("Allow: GET, HEAD"));
  }
  CHECK(server.made == 0);
}

TEST_CASE("a request with a body is refused, and the connection ends") {
  const Server server;
  for (const char* fields :
       {"Content-Length: 4\r\n", "Transfer-Encoding: chunked\r\n"})
    for (const char* method : {"GET", "POST"}) {
      CAPTURE(fields);
      CAPTURE(method);
      const Socket socket = server.dial();
      write_all(socket, request_of("/metrics", method, fields) + "body");
      const Answer answer = read_answer(socket);
      CHECK(answer.status() == (method == std::string("GET") ? 400 : 405));
      CHECK(answer.has("Connection: close"));
      CHECK(is_closed(socket));
    }
  CHECK(server.made == 0);
}

TEST_CASE("what is no request is refused, and the connection ends") {
  const Server server;
  const std::string garbage(200, '\x01');
  for (const std::string& text :
       {garbage + "\r\n\r\n", std::string("GET\r\n\r\n"),
        std::string("GET /metrics HTTP/1.1\r\n\r\n"),  // no host
        std::string("GET /metrics HTTP/2.0\r\nHost: x\r\n\r\n"),
        std::string("GET /metrics HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n"),
        std::string("GET /metrics HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"),
        request_of("/metrics", "GET", "Content-Length: -1\r\n"),
        request_of("/metrics", "GET",
                   "Content-Length: 99999999999999999999\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) +
            "\r\n\r\n"}) {  // as TLS begins
    CAPTURE(text);
    const Socket socket = server.dial();
    write_all(socket, text);
    CHECK(read_answer(socket).status() == 400);
    CHECK(is_closed(socket));
  }
  CHECK(server.made == 0);
  CHECK(ask(server, request_of("/metrics")).status() == 200);
}

TEST_CASE("half a request makes no page") {
  const Server server;
  const std::string whole = request_of("/metrics");
  for (size_t count = 0; count < whole.size(); ++count) {
    const Socket socket = server.dial();
    write_all(socket, whole.substr(0, count));
    REQUIRE(::shutdown(socket.descriptor(), SHUT_WR) == 0);
    const std::string answer = read_to_end(socket);
    CAPTURE(count);
    if (count == 0) {
      CHECK(answer.empty());
    } else {
      CHECK(answer.starts_with("HTTP/1.1 400 "));
    }
  }
  CHECK(server.made == 0);
  server.wait_for_connections(0);
}

TEST_CASE("a request that comes byte by byte is one") {
  const Server server;
  const Socket socket = server.dial();
  for (const char byte : request_of("/metrics"))
    write_all(socket, std::string(1, byte));
  CHECK(read_answer(socket).body == kBody);
}

TEST_CASE("a long head is refused, however it is made") {
  Server server;
  const std::string much(size_t{256} << 10, 'x');
  std::string fields;
  while (fields.size() < much.size())
    fields += "Field" + std::to_string(fields.size()) + ": x\r\n";
  for (const std::string& request :
       {request_of("/" + much), request_of("/metrics", much),
        request_of("/metrics", "GET", "Field: " + much + "\r\n"),
        request_of("/metrics", "GET", much + ": x\r\n"),
        request_of("/metrics", "GET", fields), "GET /" + much}) {
    CAPTURE(request.substr(0, 40));
    const Socket socket = server.dial();
    write_all(socket, request);
    CHECK(read_answer(socket).status() == 431);
    CHECK(is_closed(socket));
  }
  // One that is just not too long is answered.
  const std::string fits(8000 - request_of("/metrics").size(), 'x');
  CHECK(ask(server, request_of("/metrics", "GET", "F: " + fits + "\r\n"))
            .status() == 200);
}

TEST_CASE("a request that does not come in time ends its connection") {
  const Server server({.time = std::chrono::milliseconds(50)});
  for (const char* begin : {"", "GET /metr"}) {
    const Socket socket = server.dial();
    write_all(socket, begin);
    CHECK(is_closed(socket));
  }
  // Nor does one that comes by and by have longer.
  const Socket socket = server.dial();
  write_all(socket, "GET /metrics HTTP/1.1\r\n");
  while (write_all(socket, "Field: x\r\n") && server.server->num_connections())
    std::this_thread::yield();
  server.wait_for_connections(0);
  CHECK(server.made == 0);
}

TEST_CASE("requests that are sent at once are answered in their order") {
  const Server server;
  const Socket socket = server.dial();
  std::string all;
  for (int i = 0; i < 200; ++i)
    all += request_of(i % 2 == 0 ? "/metrics" : "/healthz");
  std::thread writer([&] { write_all(socket, all); });
  for (int i = 0; i < 200; ++i)
    CHECK(read_answer(socket).status() == (i % 2 == 0 ? 200 : 503));
  writer.join();
  CHECK(server.made == 100);
}

TEST_CASE("a connection ends after so many requests, or when asked to") {
  const Server server({.most_requests = 3});
  const Socket socket = server.dial();
  for (int i = 0; i < 3; ++i) {
    write_all(socket, request_of("/metrics"));
    const Answer answer = read_answer(socket);
    CHECK(answer.status() == 200);
    CHECK(answer.has("Connection: close") == (i == 2));
  }
  CHECK(is_closed(socket));
  const Socket other = server.dial();
  write_all(other, request_of("/metrics", "GET", "Connection: close\r\n"));
  CHECK(read_answer(other).status() == 200);
  CHECK(is_closed(other));
  const Socket older = server.dial();
  write_all(older, "GET /metrics HTTP/1.0\r\n\r\n");
  CHECK(read_answer(older).body == kBody);
  CHECK(is_closed(older));
}

TEST_CASE("idle connections do not keep others out") {
  const Server server({.most_connections = 8});
  std::deque<Socket> idle;  // fewer than a process may have
  for (int i = 0; i < 1000; ++i) {
    idle.push_back(server.dial());
    if (idle.size() > 500) idle.pop_front();
    if (i % 100 == 99) {
      // The others have not asked yet: theirs are closed first.
      CHECK(ask(server, request_of("/metrics")).body == kBody);
      CHECK(server.server->num_connections() <= 8);
    }
  }
  CHECK(is_closed(idle.front()));
  idle.clear();
  server.wait_for_connections(0);
}

TEST_CASE("a connection that asks outlives those that are idle") {
  const Server server({.most_connections = 4});
  const Socket asking = server.dial();
  for (int i = 0; i < 50; ++i) {
    const Socket idle = server.dial();
    write_all(asking, request_of("/metrics"));
    CHECK(read_answer(asking).body == kBody);
  }
}

TEST_CASE("several clients at once get whole answers") {
  const Server server;
  std::atomic<int> right{0};
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client)
    clients.emplace_back([&] {
      const Socket socket = server.dial();
      for (int i = 0; i < 50; ++i) {
        write_all(socket, request_of("/metrics"));
        const std::string answer = read_answer(socket).body;
        if (answer == kBody) ++right;
      }
    });
  for (std::thread& client : clients) client.join();
  CHECK(right == 200);
}

TEST_CASE("a peer that resets its connection costs nothing else") {
  const Server server;
  for (int i = 0; i < 20; ++i) {
    const Socket socket = server.dial();
    write_all(socket, request_of("/metrics"));
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    REQUIRE(::setsockopt(socket.descriptor(), SOL_SOCKET, SO_LINGER, &at_once,
                         sizeof(at_once)) == 0);
  }
  CHECK(ask(server, request_of("/metrics")).body == kBody);
  server.wait_for_connections(0);
}

TEST_CASE("a server that ends closes its connections") {
  Server server;
  const Socket idle = server.dial();
  const Socket half = server.dial();
  write_all(half, "GET /");
  server.wait_for_connections(2);
  server.server.reset();
  CHECK(read_to_end(idle).empty());
  CHECK(read_to_end(half).empty());
}

TEST_CASE("a server that may listen at loopback alone says so") {
  const auto refused = HttpServer::start({.host = "0.0.0.0"}, {});
  CHECK(refused.status().code() == Code::kPermissionDenied);
  CHECK(refused.status().message() ==
        "[net|listener] cannot listen at 0.0.0.0 port 0: 0.0.0.0 is not a "
        "loopback address");
}

TEST_CASE("a port that is taken is an error that names it") {
  const Server server;
  const uint16_t port = server.server->port();
  const auto second = HttpServer::start({.port = port}, {});
  CHECK(second.status().code() == Code::kUnavailable);
  CHECK(mentions(second.status(), "localhost port " + std::to_string(port)));
}

}  // namespace
}  // namespace tagflow::net
