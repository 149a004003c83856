#include "net/link/http_server.h"

#include <algorithm>

#include "net/link/http_exchange.h"
#include "net/link/socket.h"
#include "net/link/system_io.h"

namespace tagflow::net {

namespace asio = boost::asio;

void HttpServer::Answer::State::give(Page answer) {
  {
    const std::lock_guard lock(mutex);
    if (std::exchange(is_answered, true)) return;
    page = std::move(answer);
    on_gone = {};
  }
  const std::lock_guard lock(way->mutex);
  if (way->thread == nullptr) return;
  way->thread->post([state = shared_from_this()] {
    if (const auto found = state->exchange.lock()) found->on_answer(state);
  });
}

void HttpServer::Answer::State::give_last() noexcept {
  {
    const std::lock_guard lock(mutex);
    if (is_answered) return;
  }
  static_cast<void>(guarded("net|http", [this] {
    give(http_refusal(500, "[net|http] nobody answered the request"));
  }));
}

void HttpServer::Answer::State::leave() {
  std::function<void()> f;
  {
    const std::lock_guard lock(mutex);
    is_gone = true;
    f = std::exchange(on_gone, {});
  }
  if (f) static_cast<void>(guarded("net|http", f));
}

std::optional<HttpServer::Page> HttpServer::Answer::State::take() {
  const std::lock_guard lock(mutex);
  return std::exchange(page, std::nullopt);
}

void HttpServer::Answer::operator()(Page page) const {
  state_->give(std::move(page));
}

void HttpServer::Answer::on_gone(std::function<void()> f) const {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->is_answered) return;
    if (!state_->is_gone) {
      state_->on_gone = std::move(f);
      return;
    }
  }
  f();
}

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
      [self = shared_from_this()](const boost::system::error_code& error,
                                  Socket socket) {
        if (self->is_draining) return;
        if (!error) {
          static_cast<void>(guarded([&] { self->serve(std::move(socket)); }));
          return self->accept();
        }
        self->door.pause.expires_after(Door::kPause);
        self->door.pause.async_wait([self](const boost::system::error_code&) {
          if (!self->is_draining) self->accept();
        });
      });
}

void HttpServer::State::serve(Socket socket) {
  close_at_exec(socket.native_handle());
  const size_t most = std::max<size_t>(options.most_connections, 1);
  while (num_exchanges >= most && !idle.empty()) idle.front()->close();
  if (num_exchanges >= most) return;  // the socket closes
  const auto exchange = std::make_shared<Exchange>(*this, std::move(socket));
  const auto place = idle.insert(idle.end(), exchange);
  ++num_exchanges;
  const Status started = guarded("net|http", [&] { exchange->start(place); });
  if (!started.ok()) exchange->close();
}

HttpServer::Page HttpServer::State::page_of(const std::string& path) const {
  const auto found = pages.find(path);
  if (found == pages.end()) {
    std::string there;
    for (const auto& [name, handler] : pages)
      there += (there.empty() ? "" : ", ") + name;
    return http_refusal(404, "there is: " + there);
  }
  Page page;
  const Status made = guarded("net|http", [&] { page = found->second(); });
  return made.ok() ? page : http_refusal(500, made.message());
}

void HttpServer::State::move(Exchanges::iterator place, Exchanges& from,
                             Exchanges& to) {
  to.splice(to.end(), from, place);
  check_drained();
}

void HttpServer::State::erase(Exchanges::iterator place, Exchanges& from) {
  from.erase(place);
  --num_exchanges;
  check_drained();
}

bool HttpServer::State::charge(size_t more) {
  if (bytes + more > options.most_bytes) return false;
  bytes += more;
  return true;
}

void HttpServer::State::start_to_drain() {
  is_draining = true;
  door.close();
  while (!idle.empty()) idle.front()->close();
  check_drained();
}

void HttpServer::State::check_drained() {
  if (!is_draining || !busy.empty()) return;
  const std::lock_guard lock(mutex);
  is_drained = true;
  changed.notify_all();
}

void HttpServer::State::close() {
  start_to_drain();
  while (!busy.empty()) busy.front()->close();
  const std::lock_guard lock(way->mutex);
  way->thread = nullptr;
}

HttpServer::HttpServer(std::unique_ptr<IoThread> thread,
                       std::shared_ptr<State> state)
    : thread_(std::move(thread)), state_(std::move(state)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::start(
    Options options, std::map<std::string, Handler> pages,
    RequestHandler requests, SocketHandler sockets) {
  return guarded("net|http", [&]() -> Result<std::unique_ptr<HttpServer>> {
    TAGFLOW_ASSIGN(auto thread, IoThread::start("tagflow http"));
    const auto state = std::make_shared<State>(
        std::move(options), std::move(pages), std::move(requests),
        std::move(sockets), *thread);
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

size_t HttpServer::num_running() const { return state_->num_running; }

Status HttpServer::drain(std::chrono::milliseconds time) {
  thread_->call([this] { state_->start_to_drain(); });
  std::unique_lock lock(state_->mutex);
  if (state_->changed.wait_for(lock, time, [&] { return state_->is_drained; }))
    return {};
  return error(Code::kDeadlineExceeded,
               "[net|http] the requests that run did not end in {} ms",
               time.count());
}

}  // namespace tagflow::net
