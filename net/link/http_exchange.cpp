#include "net/link/http_exchange.h"

#include <algorithm>
#include <boost/asio/write.hpp>

#include "net/link/http_socket.h"

namespace tagflow::net {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

constexpr unsigned kHttp11 = 11;  // as Beast writes it
// After a last answer, what a peer still sends is dropped, up to so many bytes.
// If the socket closed at once, the system would take back the answer.
constexpr size_t kMostDropped = size_t{1} << 20;
constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

HttpServer::Page http_refusal(unsigned status, std::string_view why) {
  HttpServer::Page page;
  page.status = status;
  page.body = std::string(why) + "\n";
  return page;
}

HttpServer::Exchange::Exchange(State& server, State::Socket socket)
    : server_(server),
      socket_(std::move(socket)),
      timer_(server.thread.context()),
      // Also what follows the request.
      buffer_(2 * server.options.most_head_bytes) {}

void HttpServer::Exchange::start(State::Exchanges::iterator place) {
  place_ = place;
  read();
}

void HttpServer::Exchange::close() {
  if (std::exchange(is_closed_, true)) return;
  ErrorCode ignored;
  timer_.cancel(ignored);
  socket_.close(ignored);
  release();
  const auto running = std::exchange(running_, nullptr);
  const auto upgraded = std::exchange(upgraded_, nullptr);
  if (running != nullptr || upgraded != nullptr) --server_.num_running;
  server_.erase(place_, is_busy_ ? server_.busy : server_.idle);
  if (running != nullptr) running->leave();
  if (upgraded != nullptr) upgraded->close();
}

void HttpServer::Exchange::set_busy(bool is_busy) {
  server_.move(place_, is_busy_ ? server_.busy : server_.idle,
               is_busy ? server_.busy : server_.idle);
  is_busy_ = is_busy;
}

void HttpServer::Exchange::limit_time(void (Exchange::*f)()) {
  timer_.expires_after(server_.options.time);
  timer_.async_wait([self = shared_from_this(), f](const ErrorCode& error) {
    if (error || self->is_closed_) return;
    const Status done = guarded("net|http", [&] { ((*self).*f)(); });
    if (!done.ok()) self->close();
  });
}

void HttpServer::Exchange::read() {
  body_.reset();
  parser_.emplace();
  parser_->header_limit(uint32_t(server_.options.most_head_bytes));
  parser_->body_limit(UINT64_MAX);  // see read_body()
  limit_time(&Exchange::close);
  http::async_read_header(
      socket_, buffer_, *parser_,
      then([this](const ErrorCode& error, size_t) { on_head(error); }));
}

void HttpServer::Exchange::on_head(const ErrorCode& error) {
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
  is_head_ = request.method() == http::verb::head;
  const bool has_body = !parser_->is_done();
  stays_ = request.keep_alive() && ++requests_ < server_.options.most_requests;
  if (request.version() / 10 != kHttp11 / 10)
    return refuse(http::status::bad_request, "the protocol is HTTP/1.1");
  if (request.version() >= kHttp11 && request.count(http::field::host) != 1)
    return refuse(http::status::bad_request, "a request names its host");
  const auto target = request.target();
  const std::string path(target.data(),
                         std::min(target.find('?'), target.size()));
  if (upgrade()) return;
  if (!server_.requests || server_.pages.contains(path))
    return answer_page(path, is_head_, has_body, stays_ && !has_body);
  body_.emplace(std::move(*parser_));
  has_body ? read_body() : run();
}

bool HttpServer::Exchange::upgrade() {
  const auto& request = parser_->get();
  if (!server_.sockets || !boost::beast::websocket::is_upgrade(request))
    return false;
  if (server_.is_draining || buffer_.size() > 0) {
    refuse(http::status::bad_request, "a client waits for the upgrade");
    return true;
  }
  stays_ = stays_ && parser_->is_done();
  if (refuses_more()) return true;
  const auto field = [&](http::field name) {
    const auto value = request[name];
    return std::string(value.data(), value.size());
  };
  const auto target = request.target();
  const auto state = std::make_shared<WebSocket::State>(server_.way);
  std::variant<Page, SocketEvents> decided;
  const Status made = guarded("net|http", [&] {
    decided = server_.sockets({{target.data(), target.size()},
                               field(http::field::host),
                               field(http::field::origin)},
                              WebSocket(state));
  });
  if (!made.ok()) decided = http_refusal(500, made.message());
  if (auto* page = std::get_if<Page>(&decided)) {
    answer(std::move(*page), false, false);
    return true;
  }
  ErrorCode ignored;
  timer_.cancel(ignored);
  set_busy(true);
  ++server_.num_running;
  upgraded_ = std::make_shared<Upgraded>(
      server_, std::move(socket_), [self = weak_from_this()] {
        if (const auto exchange = self.lock()) exchange->close();
      });
  {
    const std::lock_guard lock(state->mutex);
    state->connection = upgraded_;
  }
  upgraded_->start(request, std::get<SocketEvents>(std::move(decided)));
  return true;
}

void HttpServer::Exchange::answer_page(const std::string& path, bool is_head,
                                       bool has_body, bool stays) {
  if (parser_->get().method() != http::verb::get && !is_head) {
    Page page = http_refusal(unsigned(http::status::method_not_allowed),
                             "the methods are GET and HEAD");
    page.allow = "GET, HEAD";
    return answer(std::move(page), false, stays);
  }
  if (has_body)
    return refuse(http::status::bad_request, "a request has no body");
  answer(server_.page_of(path), is_head, stays);
}

void HttpServer::Exchange::read_body() {
  const size_t most = server_.options.most_body_bytes;
  const auto length = body_->content_length();
  if (length && *length > most)
    return refuse(http::status::payload_too_large,
                  fmt::format("a body has {} bytes at most", most));
  body_->body_limit(most);
  limit_time(&Exchange::on_body_late);
  if (!boost::beast::iequals(body_->get()[http::field::expect], "100-continue"))
    return read_some();
  asio::async_write(socket_, asio::buffer(kContinue, sizeof(kContinue) - 1),
                    then([this](const ErrorCode& error, size_t) {
                      if (error) return close();
                      read_some();
                    }));
}

void HttpServer::Exchange::read_some() {
  http::async_read_some(
      socket_, buffer_, *body_, then([this](const ErrorCode& error, size_t) {
        if (is_late_)
          return refuse(http::status::request_timeout,
                        "the body did not come in time");
        if (error == http::error::body_limit)
          return refuse(http::status::payload_too_large,
                        fmt::format("a body has {} bytes at most",
                                    server_.options.most_body_bytes));
        if (error &&
            error.category() ==
                http::make_error_code(http::error::bad_chunk).category())
          return refuse(http::status::bad_request,
                        "this is no body: " + error.message());
        if (error) return close();
        // What has come: a length that is only said takes no memory, although
        // the parser reserves it.
        const std::string& body = body_->get().body();
        if (!charge_to(body_->content_length() ? body.size() : body.capacity()))
          return;
        body_->is_done() ? run() : read_some();
      }));
}

void HttpServer::Exchange::on_body_late() {
  // The step that waits refuses it.
  is_late_ = true;
  ErrorCode ignored;
  socket_.cancel(ignored);
}

bool HttpServer::Exchange::charge_to(size_t bytes) {
  if (bytes <= charged_) return true;
  if (server_.charge(bytes - charged_)) {
    charged_ = bytes;
    return true;
  }
  refuse(http::status::service_unavailable,
         "the memory for requests is used up; try again");
  return false;
}

bool HttpServer::Exchange::refuses_more() {
  if (server_.num_running < server_.options.most_running) return false;
  answer(http_refusal(unsigned(http::status::too_many_requests),
                      "too many requests are running; try again"),
         is_head_, stays_);
  return true;
}

void HttpServer::Exchange::run() {
  ErrorCode ignored;
  timer_.cancel(ignored);
  if (server_.is_draining)
    return refuse(http::status::service_unavailable, "the server ends");
  if (refuses_more()) return;
  auto& message = body_->get();
  const auto method = message.method_string();
  const auto target = message.target();
  Request request{{method.data(), method.size()},
                  {target.data(), target.size()},
                  std::move(message.body())};
  set_busy(true);
  ++server_.num_running;
  running_ = std::make_shared<Answer::State>(server_.way, weak_from_this());
  const auto running = running_;
  const Status ran = guarded("net|http", [&] {
    // An answer that nobody gives is a 500.
    const std::shared_ptr<Answer::State> last(
        running.get(), [running](Answer::State* state) { state->give_last(); });
    server_.requests(std::move(request), Answer(last));
  });
  if (is_closed_) return;
  if (!ran.ok()) running->give(http_refusal(500, ran.message()));
  on_answer(running);
  if (running_ == running) watch();
}

void HttpServer::Exchange::watch() {
  const size_t room = buffer_.max_size() - buffer_.size();
  if (room == 0) return;
  is_watching_ = true;
  socket_.async_read_some(buffer_.prepare(std::min<size_t>(room, 1024)),
                          then([this](const ErrorCode& error, size_t count) {
                            is_watching_ = false;
                            buffer_.commit(count);
                            if (page_) {
                              Page page = *std::move(page_);
                              page_.reset();
                              return answer(std::move(page), is_head_, stays_);
                            }
                            if (error) return close();
                            watch();
                          }));
}

void HttpServer::Exchange::on_answer(
    const std::shared_ptr<Answer::State>& from) {
  if (is_closed_ || running_ != from) return;
  auto page = from->take();
  if (!page) return;
  running_ = nullptr;
  --server_.num_running;
  if (server_.is_draining) stays_ = false;
  if (!is_watching_) return answer(*std::move(page), is_head_, stays_);
  page_ = std::move(page);
  ErrorCode ignored;
  socket_.cancel(ignored);
}

void HttpServer::Exchange::refuse(http::status status, std::string_view why) {
  answer(http_refusal(unsigned(status), why), false, false);
}

void HttpServer::Exchange::answer(Page page, bool is_head, bool stays) {
  http::response<http::string_body> response;
  response.version(int(kHttp11));
  response.result(page.status);
  response.set(http::field::content_type, page.type);
  response.set(http::field::cache_control, "no-store");
  if (!page.allow.empty()) response.set(http::field::allow, page.allow);
  response.keep_alive(stays);
  response.content_length(page.body.size());
  if (is_head) {
    http::response<http::empty_body> head(std::move(response.base()));
    return write(std::move(head), stays);
  }
  // It is made already: without room for it, the next bodies are refused.
  release();
  charged_ = page.body.capacity();
  server_.bytes += charged_;
  response.body() = std::move(page.body);
  write(std::move(response), stays);
}

template <class Response>
void HttpServer::Exchange::write(Response response, bool stays) {
  const auto kept = std::make_shared<Response>(std::move(response));
  limit_time(&Exchange::close);
  http::async_write(socket_, *kept,
                    then([this, kept, stays](const ErrorCode& error, size_t) {
                      if (error) return close();
                      release();
                      set_busy(false);
                      if (stays && !server_.is_draining) return read();
                      ErrorCode ignored;
                      socket_.shutdown(State::Socket::shutdown_send, ignored);
                      limit_time(&Exchange::close);
                      drop_rest();
                    }));
}

// Until the peer has closed, too.
void HttpServer::Exchange::drop_rest() {
  socket_.async_read_some(asio::buffer(dropped_),
                          then([this](const ErrorCode& error, size_t count) {
                            num_dropped_ += count;
                            if (error || num_dropped_ > kMostDropped)
                              return close();
                            drop_rest();
                          }));
}

void HttpServer::Exchange::release() {
  server_.bytes -= std::exchange(charged_, 0);
}

}  // namespace tagflow::net
