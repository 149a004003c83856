#include "net/link/http_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <list>
#include <optional>
#include <string_view>
#include <utility>

#include "graph/fault.h"
#include "net/link/door.h"
#include "net/link/io_thread.h"
#include "net/link/socket.h"
#include "net/link/system_io.h"

namespace tagflow::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using ErrorCode = boost::system::error_code;
using StreamSocket = asio::generic::stream_protocol::socket;

namespace {

constexpr unsigned kHttp11 = 11;  // as Beast writes it
// After a last answer, what a peer still sends is dropped, up to so many bytes.
// If the socket closed at once, the system would take back the answer.
constexpr size_t kMostDropped = size_t{1} << 20;

HttpServer::Page refusal(http::status status, std::string_view why) {
  return {unsigned(status), "text/plain; charset=utf-8",
          std::string(why) + "\n"};
}

}  // namespace

// Belongs to the server's thread once it has started.
struct HttpServer::State : std::enable_shared_from_this<State> {
  using Exchanges = std::list<std::shared_ptr<Exchange>>;

  State(Options server_options, std::map<std::string, Handler> server_pages,
        IoThread& io_thread)
      : options(std::move(server_options)),
        pages(std::move(server_pages)),
        thread(io_thread),
        door(thread.context()) {}

  Status open();

  void accept();
  void serve(StreamSocket socket);
  Page page_of(std::string_view target) const;
  // The exchange has had an answer: others are closed before it.
  void touch(Exchanges::iterator place);
  void erase(Exchanges::iterator place);
  void close();

  const Options options;
  const std::map<std::string, Handler> pages;
  IoThread& thread;
  Door door;
  uint16_t port = 0;
  Exchanges exchanges;  // the one whose last answer is the oldest first
  std::atomic<size_t> num_exchanges{0};
  bool is_closed = false;
};

// A connection: it reads a request, answers, and reads the next one. Handlers
// that wait in Asio own it.
class HttpServer::Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(State& server, StreamSocket socket)
      : server_(server),
        socket_(std::move(socket)),
        timer_(server.thread.context()),
        // Also what follows the request.
        buffer_(2 * server.options.most_head_bytes) {}

  // It is at that place of the server's list.
  void start(State::Exchanges::iterator place) {
    place_ = place;
    read();
  }
  void close() {
    if (std::exchange(is_closed_, true)) return;
    ErrorCode ignored;
    timer_.cancel(ignored);
    socket_.close(ignored);
    server_.erase(place_);
  }

 private:
  using Parser = http::request_parser<http::empty_body>;

  // The connection ends if the next step takes too long.
  void limit_time() {
    timer_.expires_after(server_.options.time);
    timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
      if (!error) self->close();
    });
  }
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

  void read() {
    parser_.emplace();
    parser_->header_limit(uint32_t(server_.options.most_head_bytes));
    limit_time();
    http::async_read_header(
        socket_, buffer_, *parser_,
        then([this](const ErrorCode& error, size_t) { on_head(error); }));
  }

  void on_head(const ErrorCode& error) {
    if (error == http::error::end_of_stream) return close();
    if (error == http::error::header_limit ||
        error == http::error::buffer_overflow)
      return refuse(http::status::request_header_fields_too_large,
                    "the head of the request is too long");
    if (error && error.category() ==
                     http::make_error_code(http::error::bad_method).category())
      return refuse(http::status::bad_request,
                    "this is no request: " + error.message());
    if (error) return close();
    const auto& request = parser_->get();
    const bool is_head = request.method() == http::verb::head;
    const bool has_body = !parser_->is_done();
    const bool stays = !has_body && request.keep_alive() &&
                       ++requests_ < server_.options.most_requests;
    if (request.version() / 10 != kHttp11 / 10)
      return refuse(http::status::bad_request, "the protocol is HTTP/1.1");
    if (request.version() >= kHttp11 && request.count(http::field::host) != 1)
      return refuse(http::status::bad_request, "a request names its host");
    if (request.method() != http::verb::get && !is_head)
      return answer(refusal(http::status::method_not_allowed,
                            "the methods are GET and HEAD"),
                    false, stays);
    if (has_body)
      return refuse(http::status::bad_request, "a request has no body");
    const auto target = request.target();
    answer(server_.page_of({target.data(), target.size()}), is_head, stays);
  }

  void refuse(http::status status, std::string_view why) {
    answer(refusal(status, why), false, false);
  }

  void answer(Page page, bool is_head, bool stays) {
    http::response<http::string_body> response;
    response.version(int(kHttp11));
    response.result(page.status);
    response.set(http::field::content_type, page.type);
    response.set(http::field::cache_control, "no-store");
    if (page.status == unsigned(http::status::method_not_allowed))
      response.set(http::field::allow, "GET, HEAD");
    response.keep_alive(stays);
    response.content_length(page.body.size());
    if (is_head) {
      http::response<http::empty_body> head(std::move(response.base()));
      return write(std::move(head), stays);
    }
    response.body() = std::move(page.body);
    write(std::move(response), stays);
  }

  template <class Response>
  void write(Response response, bool stays) {
    const auto kept = std::make_shared<Response>(std::move(response));
    limit_time();
    http::async_write(socket_, *kept,
                      then([this, kept, stays](const ErrorCode& error, size_t) {
                        if (error) return close();
                        server_.touch(place_);
                        if (stays) return read();
                        ErrorCode ignored;
                        socket_.shutdown(StreamSocket::shutdown_send, ignored);
                        limit_time();
                        drop_rest();
                      }));
  }

  // Until the peer has closed, too.
  void drop_rest() {
    socket_.async_read_some(asio::buffer(dropped_),
                            then([this](const ErrorCode& error, size_t count) {
                              num_dropped_ += count;
                              if (error || num_dropped_ > kMostDropped)
                                return close();
                              drop_rest();
                            }));
  }

  State& server_;
  State::Exchanges::iterator place_;
  StreamSocket socket_;
  asio::steady_timer timer_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  size_t requests_ = 0;
  std::array<char, 4096> dropped_;
  size_t num_dropped_ = 0;
  bool is_closed_ = false;
};

Status HttpServer::State::open() {
  TAGFLOW_RETURN_IF_ERROR(open_first(
      thread.context(), {options.host, options.port, options.only_loopback},
      [this](const asio::ip::tcp::endpoint& address) {
        return door.open(address);
      }));
  port = port_of(door.acceptor.native_handle());
  return {};
}

void HttpServer::State::accept() {
  door.acceptor.async_accept(
      [self = shared_from_this()](const ErrorCode& error, StreamSocket socket) {
        if (self->is_closed) return;
        if (!error) {
          static_cast<void>(guarded([&] { self->serve(std::move(socket)); }));
          return self->accept();
        }
        self->door.pause.expires_after(Door::kPause);
        self->door.pause.async_wait([self](const ErrorCode&) {
          if (!self->is_closed) self->accept();
        });
      });
}

void HttpServer::State::serve(StreamSocket socket) {
  close_at_exec(socket.native_handle());
  while (exchanges.size() >= std::max<size_t>(options.most_connections, 1))
    exchanges.front()->close();
  const auto exchange = std::make_shared<Exchange>(*this, std::move(socket));
  const auto place = exchanges.insert(exchanges.end(), exchange);
  num_exchanges = exchanges.size();
  const Status started = guarded("net|http", [&] { exchange->start(place); });
  if (!started.ok()) exchange->close();
}

HttpServer::Page HttpServer::State::page_of(std::string_view target) const {
  const std::string path(target.substr(0, target.find('?')));
  const auto found = pages.find(path);
  if (found == pages.end()) {
    std::string there;
    for (const auto& [name, handler] : pages)
      there += (there.empty() ? "" : ", ") + name;
    return refusal(http::status::not_found, "there is: " + there);
  }
  Page page;
  const Status made = guarded("net|http", [&] { page = found->second(); });
  if (made.ok()) return page;
  return refusal(http::status::internal_server_error, made.message());
}

void HttpServer::State::touch(Exchanges::iterator place) {
  exchanges.splice(exchanges.end(), exchanges, place);
}

void HttpServer::State::erase(Exchanges::iterator place) {
  exchanges.erase(place);
  num_exchanges = exchanges.size();
}

void HttpServer::State::close() {
  is_closed = true;
  door.close();
  while (!exchanges.empty()) exchanges.front()->close();
}

HttpServer::HttpServer(std::unique_ptr<IoThread> thread,
                       std::shared_ptr<State> state)
    : thread_(std::move(thread)), state_(std::move(state)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::start(
    Options options, std::map<std::string, Handler> pages) {
  return guarded("net|http", [&]() -> Result<std::unique_ptr<HttpServer>> {
    TAGFLOW_ASSIGN(auto thread, IoThread::start("tagflow http"));
    const auto state =
        std::make_shared<State>(std::move(options), std::move(pages), *thread);
    TAGFLOW_RETURN_IF_ERROR(state->open());
    std::unique_ptr<HttpServer> server(
        new HttpServer(std::move(thread), state));
    state->thread.post([state] { state->accept(); });
    return server;
  });
}

HttpServer::~HttpServer() {
  thread_->call([this] { state_->close(); });
}

uint16_t HttpServer::port() const { return state_->port; }

size_t HttpServer::num_connections() const { return state_->num_exchanges; }

}  // namespace tagflow::net
