// HttpServer: pages of a process for whoever watches it, and an interface for
// clients, by HTTP/1.1.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "graph/status.h"
#include "net/link/io_thread.h"
#include "net/link/silence.h"

namespace tagflow::net {

// Answers requests, without TLS, on a thread of its own: a stranger takes no
// time of the links'. A page is asked for by GET or HEAD. All other paths are
// the request handler's, if there is one. What a request must not be is
// refused:
//   400  what is not HTTP, or asks for a page with a body
//   404  a path that is no page, without a request handler
//   405  another method for a page
//   408  a body that does not come in time
//   413  a body that is too long
//   429  too many requests are running
//   431  a long head
//   503  the memory for bodies is used up, or the server is about to end
// Except for 404, 405 and 429 it ends the connection. A request for a WebSocket
// is for the handler of these, if there is one, at whatever path. A WebSocket
// is a connection with a request that runs.
//
// A connection that is beyond the limits costs another one: the one without a
// running request whose last answer is the longest ago is closed. So under a
// flood a request may be lost, and has to be sent again. If a request runs on
// every connection, the new one is closed. Thread-safe.
class HttpServer {
 public:
  struct Page {
    unsigned status = 200;  // of HTTP
    std::string type = "text/plain; charset=utf-8";
    std::string body;
    std::string allow = {};  // the methods, if the status is 405
  };
  // Makes the page, on the server's thread, one at a time. If it throws, the
  // answer is a 500.
  using Handler = std::function<Page()>;

  struct Request {
    std::string method;  // "POST"
    std::string target;  // the path, and what follows "?"
    std::string body;
  };
  // Where the answer to one request goes. Copies are for the same request.
  // May outlive the server. Thread-safe.
  class Answer {
   public:
    struct State;
    explicit Answer(std::shared_ptr<State> state) : state_(std::move(state)) {}
    // The first call is the answer, and all others have no effect. If there is
    // none until the last copy has gone, the answer is a 500.
    void operator()(Page page) const;
    // Calls f, on the server's thread, if the client goes before the answer;
    // at once, on this thread, if it has gone. A client that ends its sending
    // side has gone. A second f replaces the first.
    void on_gone(std::function<void()> f) const;

   private:
    std::shared_ptr<State> state_;
  };
  // Is called on the server's thread, one at a time, and must not block: the
  // answer may come later, from any thread. If it throws, the answer is a 500.
  using RequestHandler = std::function<void(Request, Answer)>;

  // A client that asks for a WebSocket.
  struct SocketRequest {
    std::string target;
    std::string host;    // the field: "localhost:8080"
    std::string origin;  // the same, "http://localhost:8080"; empty: none
  };
  // Note [Newest text]
  // A WebSocket keeps one text that has not been written. A newer one replaces
  // it. So a client that is slow loses texts, but costs no memory.
  //
  // Copies are for the same connection, and may outlive it. Thread-safe.
  class WebSocket {
   public:
    struct State;
    explicit WebSocket(std::shared_ptr<State> state)
        : state_(std::move(state)) {}
    // Sends the text: Note [Newest text]. No effect if the client has gone.
    void send(std::string text) const;
    // Says farewell to the client.
    void close() const;

   private:
    std::shared_ptr<State> state_;
  };
  // Are called on the server's thread, and must not block. If on_text throws,
  // the connection ends.
  struct SocketEvents {
    std::function<void(std::string)> on_text;
    std::function<void()> on_close;  // once, the last one
  };
  // Takes a client, or gives the page that it gets instead. Is called as a
  // Handler is.
  using SocketHandler = std::function<std::variant<Page, SocketEvents>(
      const SocketRequest&, WebSocket)>;

  struct Options {
    // As Listener::Options has them.
    std::string host = "localhost";
    uint16_t port = 0;
    bool only_loopback = true;
    size_t most_connections = 64;
    size_t most_head_bytes = 8192;  // of a request's line and fields
    size_t most_requests = 1000;    // of a connection, which then ends
    size_t most_body_bytes = size_t{64} << 20;
    // Of the bodies of all requests that are read or running, and of answers.
    size_t most_bytes = size_t{1} << 30;
    size_t most_running = 1024;     // requests without an answer
    size_t most_text_bytes = 4096;  // from the client of a WebSocket
    // For a head to come, from the answer to the last request on; for its body;
    // for an answer to be taken; and for the end of a connection.
    std::chrono::milliseconds time{5000 * kSlowness};
  };

  // `pages` by path: "/metrics". Unavailable if it cannot listen,
  // PermissionDenied if it may not, in the words of a Listener;
  // ResourceExhausted without a thread.
  static Result<std::unique_ptr<HttpServer>> start(
      Options options, std::map<std::string, Handler> pages,
      RequestHandler requests = {}, SocketHandler sockets = {});
  // No handler is called any more when this returns; it waits for one that
  // runs. Clients of running requests have gone.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  // Connections that are open, and requests without an answer.
  size_t num_connections() const;
  size_t num_running() const;

  // Accepts no connection and no request from now on, and waits until what
  // runs is answered, and the answers are taken: DeadlineExceeded if that takes
  // longer. REQUIRES: not called on the server's thread
  Status drain(std::chrono::milliseconds time);

 private:
  struct State;
  class Exchange;
  class Upgraded;
  HttpServer(std::unique_ptr<IoThread> thread, std::shared_ptr<State> state);

  const std::unique_ptr<IoThread> thread_;  // destroyed last
  const std::shared_ptr<State> state_;
};

}  // namespace tagflow::net
