// Requests whose answer comes later, and bodies.
#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "net/link/http_server.h"
#include "tests/net/link/http_client.h"

namespace tagflow::net {
namespace {

using test::Answer;
using test::is_closed;
using test::read_answer;
using test::request_of;

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
