// HttpServer: pages of a process for whoever watches it, by HTTP/1.1.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "graph/status.h"
#include "net/link/io_thread.h"
#include "net/link/silence.h"

namespace tagflow::net {

// Answers GET and HEAD, without TLS, on a thread of its own: a stranger takes
// no time of the links'. What a request must not be is refused: 404 for another
// page, 405 for another method, 431 for a long head, 400 for what is not HTTP
// or has a body. The last two end the connection.
//
// A connection that is beyond the limits costs another one: the one whose last
// request is the longest ago is closed. So under a flood a request may be lost,
// and has to be sent again. Thread-safe.
class HttpServer {
 public:
  struct Page {
    unsigned status = 200;  // of HTTP
    std::string type = "text/plain; charset=utf-8";
    std::string body;
  };
  // Makes the page, on the server's thread, one at a time. If it throws, the
  // answer is a 500.
  using Handler = std::function<Page()>;
  struct Options {
    // As Listener::Options has them.
    std::string host = "localhost";
    uint16_t port = 0;
    bool only_loopback = true;
    size_t most_connections = 64;
    size_t most_head_bytes = 8192;  // of a request's line and fields
    size_t most_requests = 1000;    // of a connection, which then ends
    // For a request to come, from the answer to the last one on; for an answer
    // to be taken; and for the end of a connection.
    std::chrono::milliseconds time{5000 * kSlowness};
  };

  // `pages` by path: "/metrics". Unavailable if it cannot listen,
  // PermissionDenied if it may not, in the words of a Listener;
  // ResourceExhausted without a thread.
  static Result<std::unique_ptr<HttpServer>> start(
      Options options, std::map<std::string, Handler> pages);
  // No handler is called any more when this returns; it waits for one that
  // runs.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  // Connections that are open.
  size_t num_connections() const;

 private:
  struct State;
  class Exchange;
  HttpServer(std::unique_ptr<IoThread> thread, std::shared_ptr<State> state);

  const std::unique_ptr<IoThread> thread_;  // destroyed last
  const std::shared_ptr<State> state_;
};

}  // namespace tagflow::net
