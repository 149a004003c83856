#include "net/link/http_server.h"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/net/link/loopback.h"

namespace tagflow::net {
namespace {

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

std::string request_of(const std::string& path,
                       const std::string& method = "GET",
                       const std::string& fields = "") {
  return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields +
         "\r\n";
}

// An answer whose body ends where its head says, or with the connection.
struct Answer {
  std::string head;
  std::string body;

  int status() const {
    return head.starts_with("HTTP/1.1 ") ? std::stoi(head.substr(9)) : 0;
  }
  bool has(const std::string& line) const {
    return head.find("\r\n" + line + "\r\n") != head.npos;
  }
};

// Empty if the server closes before.
Answer read_answer(const Socket& socket, bool has_body = true) {
  Answer answer;
  while (!answer.head.ends_with("\r\n\r\n")) {
    const std::string byte = read_exactly(socket, 1);
    if (byte.empty()) return {};
    answer.head += byte;
  }
  const std::string field = "\r\nContent-Length: ";
  const size_t begin = answer.head.find(field);
  REQUIRE(begin != answer.head.npos);
  const size_t bytes = std::stoul(answer.head.substr(begin + field.size()));
  if (has_body) answer.body = read_exactly(socket, bytes);
  return answer;
}

Answer ask(const Server& server, const std::string& request,
           bool has_body = true) {
  const Socket socket = server.dial();
  write_all(socket, request);
  return read_answer(socket, has_body);
}

// Whether the server closes the connection without another byte.
bool is_closed(const Socket& socket) { return read_to_end(socket).empty(); }

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

// A server whose requests a test answers.
struct Answering {
  using Asked = std::pair<HttpServer::Request, HttpServer::Answer>;

  explicit Answering(HttpServer::Options options = {}) {
    if (options.time == HttpServer::Options().time) options.time = kNever;
    auto started = HttpServer::start(
        std::move(options),
        {{"/page", [] { return HttpServer::Page{.body = "page\n"}; }}},
        [this](HttpServer::Request request, HttpServer::Answer answer) {
          asked.put({std::move(request), std::move(answer)});
        });
    INFO(started.status().to_string());
    REQUIRE(started.ok());
    server = std::move(*started);
  }
  Socket dial() const { return net::dial(server->port()); }

  FrameInbox<Asked> asked;
  std::unique_ptr<HttpServer> server;
};

std::string post_of(const std::string& path, const std::string& body,
                    const std::string& fields = "") {
  return request_of(path, "POST",
                    fields + "Content-Length: " + std::to_string(body.size()) +
                        "\r\n") +
         body;
}

TEST_CASE("a request is answered later, from another thread") {
  Answering f;
  const Socket socket = f.dial();
  write_all(socket, post_of("/do?x=1", "work"));
  auto [request, answer] = f.asked.take();
  CHECK(request.method == "POST");
  CHECK(request.target == "/do?x=1");
  CHECK(request.body == "work");
  CHECK(f.server->num_running() == 1);
  answer({.status = 201, .type = "text/x", .body = "done"});
  answer({.body = "again"});  // has no effect
  const Answer got = read_answer(socket);
  CHECK(got.status() == 201);
  CHECK(got.has("Content-Type: text/x"));
  CHECK(got.body == "done");
  // The connection goes on, and has pages, too.
  write_all(socket, request_of("/page"));
  CHECK(read_answer(socket).body == "page\n");
  CHECK(f.server->num_running() == 0);
}

TEST_CASE("bodies come in pieces and in chunks") {
  Answering f;
  const Socket socket = f.dial();
  const std::string body(100'000, 'x');
  write_all(socket, post_of("/a", body).substr(0, 50'000));
  write_all(socket, post_of("/a", body).substr(50'000));
  auto [request, answer] = f.asked.take();
  CHECK(request.body == body);
  answer({.body = body});
  CHECK(read_answer(socket).body == body);
  write_all(socket, request_of("/b", "PUT", "Transfer-Encoding: chunked\r\n") +
                        "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  auto chunked = f.asked.take();
  CHECK(chunked.first.method == "PUT");
  CHECK(chunked.first.body == "abcde");
  chunked.second({.body = "ok"});
  CHECK(read_answer(socket).body == "ok");
}

TEST_CASE("requests of one connection are answered in their order") {
  Answering f;
  const Socket socket = f.dial();
  write_all(socket, post_of("/1", "a") + post_of("/2", "b"));
  auto first = f.asked.take();
  CHECK(f.asked.size() == 0);  // the second one waits for the first one
  first.second({.body = "1"});
  CHECK(read_answer(socket).body == "1");
  auto second = f.asked.take();
  CHECK(second.first.body == "b");
  second.second({.body = "2"});
  CHECK(read_answer(socket).body == "2");
}

TEST_CASE("a client that asks whether to go on is told so") {
  Answering f;
  const Socket socket = f.dial();
  write_all(socket, request_of("/a", "POST",
                               "Expect: 100-continue\r\n"
                               "Content-Length: 2\r\n"));
  const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  CHECK(read_exactly(socket, go_on.size()) == go_on);
  write_all(socket, "hi");
  auto [request, answer] = f.asked.take();
  CHECK(request.body == "hi");
  answer({.body = "ok"});
  CHECK(read_answer(socket).body == "ok");
}

TEST_CASE("a body that is too long is refused before it comes") {
  Answering f({.most_body_bytes = 10});
  for (const char* length : {"11", "99999999999999999"}) {
    CAPTURE(length);
    const Socket socket = f.dial();
    write_all(socket,
              request_of("/a", "POST",
                         std::string("Content-Length: ") + length + "\r\n"));
    CHECK(read_answer(socket).status() == 413);
    CHECK(is_closed(socket));
  }
  const Socket socket = f.dial();
  write_all(socket, request_of("/a", "POST", "Transfer-Encoding: chunked\r\n") +
                        "b\r\nxxxxxxxxxxx\r\n");
  CHECK(read_answer(socket).status() == 413);
  CHECK(f.asked.size() == 0);
}

TEST_CASE("the memory for bodies is bounded over all connections") {
  Answering f({.most_body_bytes = 1000, .most_bytes = 1500});
  const Socket first = f.dial();
  write_all(first, post_of("/1", std::string(1000, 'x')));
  auto asked = f.asked.take();
  const Socket second = f.dial();
  write_all(second, post_of("/2", std::string(1000, 'x')));
  CHECK(read_answer(second).status() == 503);
  asked.second({.body = "ok"});
  CHECK(read_answer(first).status() == 200);
  const Socket third = f.dial();
  write_all(third, post_of("/3", std::string(1000, 'x')));
  f.asked.take().second({.body = "ok"});
  CHECK(read_answer(third).status() == 200);
}

TEST_CASE("a body that is only announced keeps no other one out") {
  Answering f({.most_body_bytes = 1000, .most_bytes = 1500});
  const Socket silent = f.dial();
  write_all(silent, request_of("/0", "POST", "Content-Length: 1000\r\n"));
  const Socket slow = f.dial();
  write_all(slow, request_of("/1", "POST", "Content-Length: 1000\r\n") + "x");
  const Socket other = f.dial();
  write_all(other, post_of("/2", std::string(1000, 'x')));
  f.asked.take().second({.body = "ok"});
  CHECK(read_answer(other).status() == 200);
}

TEST_CASE("a body that does not come in time is refused") {
  Answering f({.time = std::chrono::milliseconds(50)});
  const Socket socket = f.dial();
  write_all(socket, request_of("/a", "POST", "Content-Length: 2\r\n") + "x");
  CHECK(read_answer(socket).status() == 408);
  CHECK(is_closed(socket));
}

TEST_CASE("chunks that are none are refused") {
  Answering f;
  const Socket socket = f.dial();
  write_all(socket, request_of("/a", "POST", "Transfer-Encoding: chunked\r\n") +
                        "zz\r\n");
  CHECK(read_answer(socket).status() == 400);
  CHECK(is_closed(socket));
}

TEST_CASE("requests beyond the limit are refused at once") {
  Answering f({.most_running = 1});
  const Socket first = f.dial();
  write_all(first, post_of("/1", ""));
  auto asked = f.asked.take();
  const Socket second = f.dial();
  write_all(second, post_of("/2", ""));
  CHECK(read_answer(second).status() == 429);
  asked.second({.body = "ok"});
  CHECK(read_answer(first).status() == 200);
  write_all(second, post_of("/2", ""));
  f.asked.take().second({.body = "ok"});
  CHECK(read_answer(second).status() == 200);
}

TEST_CASE("whoever runs a request is told that its client has gone") {
  Answering f;
  FrameInbox<int> gone;
  {
    const Socket socket = f.dial();
    write_all(socket, post_of("/1", ""));
  }
  auto asked = f.asked.take();
  asked.second.on_gone([&] { gone.put(1); });
  CHECK(gone.take() == 1);
  while (f.server->num_running() > 0) std::this_thread::yield();
  asked.second.on_gone([&] { gone.put(2); });  // at once
  CHECK(gone.take() == 2);
  asked.second({.body = "nobody reads it"});
}

TEST_CASE("a request that nobody answers is an error of the server") {
  Answering f;
  const Socket socket = f.dial();
  write_all(socket, post_of("/1", ""));
  { const auto dropped = f.asked.take(); }
  CHECK(read_answer(socket).status() == 500);
}

TEST_CASE("requests that run are answered before a server has drained") {
  Answering f;
  const Socket idle = f.dial();
  const Socket running = f.dial();
  write_all(running, post_of("/1", ""));
  auto asked = f.asked.take();
  CHECK(f.server->drain(std::chrono::milliseconds(1)).code() ==
        Code::kDeadlineExceeded);
  CHECK(is_closed(idle));
  asked.second({.body = "last"});
  const Answer last = read_answer(running);
  CHECK(last.body == "last");
  CHECK(last.has("Connection: close"));
  CHECK(f.server->drain(kNever).ok());
}

TEST_CASE("an answer may come after the end of the server") {
  Answering f;
  const Socket socket = f.dial();
  write_all(socket, post_of("/1", ""));
  auto asked = f.asked.take();
  FrameInbox<int> gone;
  asked.second.on_gone([&] { gone.put(1); });
  f.server.reset();
  CHECK(gone.take() == 1);
  asked.second({.body = "late"});
  CHECK(is_closed(socket));
}

TEST_CASE("connections on which requests run are not closed for others") {
  Answering f({.most_connections = 2});
  const Socket first = f.dial();
  const Socket second = f.dial();
  write_all(first, post_of("/1", ""));
  auto one = f.asked.take();
  write_all(second, post_of("/2", ""));
  auto two = f.asked.take();
  CHECK(is_closed(f.dial()));
  one.second({.body = "1"});
  two.second({.body = "2"});
  CHECK(read_answer(first).body == "1");
  CHECK(read_answer(second).body == "2");
}

}  // namespace
}  // namespace tagflow::net
