// HttpServer::Exchange: one connection of an HTTP server. Internal.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "graph/fault.h"
#include "net/link/door.h"
#include "net/link/http_server.h"
#include "net/link/io_thread.h"

namespace tagflow::net {

HttpServer::Page http_refusal(unsigned status, std::string_view why);

// Belongs to the server's thread once it has started.
struct HttpServer::State : std::enable_shared_from_this<State> {
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Exchanges = std::list<std::shared_ptr<Exchange>>;

  // How answers reach the thread, if it still is there.
  struct Way {
    std::mutex mutex;
    IoThread* thread;  // guarded; null when the server has ended
  };

  State(Options server_options, std::map<std::string, Handler> server_pages,
        RequestHandler handler, SocketHandler socket_handler,
        IoThread& io_thread)
      : options(std::move(server_options)),
        pages(std::move(server_pages)),
        requests(std::move(handler)),
        sockets(std::move(socket_handler)),
        thread(io_thread),
        door(io_thread.context()),
        way(std::make_shared<Way>()) {
    way->thread = &io_thread;
  }

  Status open();
  void accept();
  void serve(Socket socket);
  Page page_of(const std::string& path) const;
  // Moves an exchange to the end of a list, or takes it off.
  void move(Exchanges::iterator place, Exchanges& from, Exchanges& to);
  void erase(Exchanges::iterator place, Exchanges& from);
  // Takes memory for bodies; false if there is none.
  bool charge(size_t more);
  // Accepts nothing from now on.
  void start_to_drain();
  void check_drained();
  void close();

  const Options options;
  const std::map<std::string, Handler> pages;
  const RequestHandler requests;
  const SocketHandler sockets;
  IoThread& thread;
  Door door;
  const std::shared_ptr<Way> way;
  uint16_t port = 0;
  Exchanges idle;  // the one whose last answer is the oldest first
  Exchanges busy;  // a request runs, or its answer is being written
  std::atomic<size_t> num_exchanges{0}, num_running{0};
  size_t bytes = 0;  // of bodies
  bool is_draining = false;
  std::mutex mutex;  // guards the below
  std::condition_variable changed;
  bool is_drained = false;  // is_draining, and no exchange is busy
};

// It reads a request, answers, and reads the next one. Handlers that wait in
// Asio own it.
//
// Life: *reading* a head and a body; *running*, if the answer is the request
// handler's; *answering*; then reading again, or *ending*: the peer's bytes are
// dropped until it closes; or *upgraded*, to a WebSocket. At any time it may be
// *closed*.
class HttpServer::Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(State& server, State::Socket socket);

  // It is at that place of the server's idle exchanges.
  void start(State::Exchanges::iterator place);
  void close();
  // The request handler has answered, on the server's thread.
  void on_answer(const std::shared_ptr<Answer::State>& from);

 private:
  using HeadParser =
      boost::beast::http::request_parser<boost::beast::http::empty_body>;
  using BodyParser =
      boost::beast::http::request_parser<boost::beast::http::string_body>;
  using ErrorCode = boost::system::error_code;

  // Calls f if the next step takes too long.
  void limit_time(void (Exchange::*f)());
  // Calls f(error, count) when a step is over, unless the connection is.
  template <class F>
  auto then(F&& f) {
    return [self = shared_from_this(), f = std::forward<F>(f)](
               const ErrorCode& error, size_t count) {
      if (self->is_closed_) return;
      const Status done = guarded("net|http", [&] { f(error, count); });
      if (!done.ok()) self->close();
    };
  }

  void read();
  void on_head(const ErrorCode& error);
  // Answers by a page. A status that is no success ends nothing.
  void answer_page(const std::string& path, bool is_head, bool has_body,
                   bool stays);
  // True if the request is one for a WebSocket.
  bool upgrade();
  void read_body();
  void read_some();
  void on_body_late();
  // False, and the request is refused, if the memory is used up.
  bool charge_to(size_t bytes);
  void run();
  // Answers that too many requests run, if they do.
  bool refuses_more();
  // Reads ahead while a request runs, to see whether the peer goes.
  void watch();
  void refuse(boost::beast::http::status status, std::string_view why);
  void answer(Page page, bool is_head, bool stays);
  template <class Response>
  void write(Response response, bool stays);
  void drop_rest();
  void set_busy(bool is_busy);
  // Gives back the memory for bodies.
  void release();

  State& server_;
  State::Exchanges::iterator place_;
  State::Socket socket_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<HeadParser> parser_;
  std::optional<BodyParser> body_;
  std::shared_ptr<Answer::State> running_;  // null unless a request runs
  std::shared_ptr<Upgraded> upgraded_;      // null unless it is a WebSocket
  std::optional<Page> page_;                // its answer, while it watches
  bool is_watching_ = false;
  bool is_busy_ = false;  // on which list it is
  bool is_late_ = false;  // the time for the body is over
  bool is_head_ = false;
  bool stays_ = false;
  size_t charged_ = 0;
  size_t requests_ = 0;
  std::array<char, 4096> dropped_;
  size_t num_dropped_ = 0;
  bool is_closed_ = false;
};

// Lives as long as an Answer, and, while the request runs, its Exchange.
struct HttpServer::Answer::State : std::enable_shared_from_this<State> {
  explicit State(std::shared_ptr<HttpServer::State::Way> to_server,
                 std::weak_ptr<Exchange> of)
      : way(std::move(to_server)), exchange(std::move(of)) {}

  // The first call is the answer.
  void give(Page answer);
  // The answer to a request that nobody has answered.
  void give_last() noexcept;
  // The peer has gone: says so to whoever runs the request.
  void leave();
  // The answer, once.
  std::optional<Page> take();

  const std::shared_ptr<HttpServer::State::Way> way;
  const std::weak_ptr<Exchange> exchange;
  std::mutex mutex;  // guards the below
  bool is_answered = false;
  bool is_gone = false;
  std::optional<Page> page;
  std::function<void()> on_gone;
};

}  // namespace tagflow::net
