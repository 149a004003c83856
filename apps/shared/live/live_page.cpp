#include "apps/shared/live/live_page.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "apps/shared/live/page_parts.h"
#include "graph/fault.h"
#include "net/link/crypto.h"

namespace tagflow::apps::live {
namespace {

using net::HttpServer;
using Clock = std::chrono::steady_clock;

// How often it looks, and how long it waits for a run to be at rest. A run that
// must wait for a long kernel is looked at less often: looking takes at most a
// fortieth of the time.
constexpr std::chrono::milliseconds kPeriod{200};
constexpr std::chrono::milliseconds kPatience{20};
constexpr int kShare = 40;

constexpr unsigned kForbidden = 403, kNotFound = 404, kNotAllowed = 405,
                   kUnavailable = 503;

HttpServer::Page refusal(unsigned status, const std::string& why) {
  HttpServer::Page page;
  page.status = status;
  page.body = why + "\n";
  return page;
}

std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
}

std::string whole_page(const std::string& title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n{}<script>\n"
      "{}</script>\n</body>\n</html>\n",
      title, kPageStyle, kPageBody, kPageScript);
}

}  // namespace

LivePage::LivePage()
    : inspector_(std::make_shared<actors::Inspector>()), start_(Clock::now()) {}

Result<std::unique_ptr<LivePage>> LivePage::start(uint16_t port,
                                                  std::string title) {
  std::unique_ptr<LivePage> page(new LivePage());
  page->title_ = std::move(title);
  TAGFLOW_ASSIGN(page->token_, net::draw_token());
  HttpServer::Options options;
  options.host = "127.0.0.1";
  options.port = port;
  options.most_connections = 2 * kMostViewers;
  options.most_body_bytes = 0;
  LivePage* const self = page.get();
  TAGFLOW_ASSIGN(page->server_,
                 HttpServer::start(
                     std::move(options), {},
                     [self](HttpServer::Request request,
                            const HttpServer::Answer& answer) {
                       answer(self->page_for(request));
                     },
                     [self](const HttpServer::SocketRequest& request,
                            HttpServer::WebSocket socket) {
                       return self->admit(request, std::move(socket));
                     }));
  TAGFLOW_RETURN_IF_ERROR(guarded("inspect", [&] {
    self->sampler_ = std::thread([self] { self->sample(); });
  }));
  return page;
}

LivePage::~LivePage() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_all();
  if (sampler_.joinable()) sampler_.join();
  server_.reset();
  inspector_->go_on();
}

std::string LivePage::address() const {
  return fmt::format("http://127.0.0.1:{}/?token={}", server_->port(), token_);
}

void LivePage::set_fill(Fill fill) {
  const std::lock_guard lock(fill_mutex_);
  fill_ = std::move(fill);
}

void LivePage::set_check(Check check) {
  const std::lock_guard lock(check_mutex_);
  check_ = std::move(check);
}

void LivePage::set_can_watch(bool can_watch) {
  const std::lock_guard lock(mutex_);
  can_watch_ = can_watch;
}

// --- Who may see it ----------------------------------------------------------

bool LivePage::has_token(std::string_view target) const {
  const size_t at = target.find('?');
  return at != std::string_view::npos &&
         net::equal_in_constant_time(target.substr(at), "?token=" + token_);
}

HttpServer::Page LivePage::page_for(const HttpServer::Request& request) {
  if (!has_token(request.target))
    return refusal(kForbidden,
                   "the address has a token: see what the run has printed");
  if (request.method != "GET" && request.method != "HEAD") {
    HttpServer::Page page =
        refusal(kNotAllowed, "the methods are GET and HEAD");
    page.allow = "GET, HEAD";
    return page;
  }
  if (path_of(request.target) != "/") return refusal(kNotFound, "there is: /");
  HttpServer::Page page;
  page.type = "text/html; charset=utf-8";
  page.body = whole_page(title_);
  return page;
}

std::variant<HttpServer::Page, HttpServer::SocketEvents> LivePage::admit(
    const HttpServer::SocketRequest& request, HttpServer::WebSocket socket) {
  // A page of another server has its own origin, whatever it calls this one.
  if (!has_token(request.target) ||
      (!request.origin.empty() && request.origin != "http://" + request.host))
    return refusal(kForbidden, "this is not the page of the run");
  if (path_of(request.target) != "/live")
    return refusal(kNotFound, "there is: /live");
  Viewers::iterator viewer;
  {
    const std::lock_guard lock(mutex_);
    if (viewers_.size() == kMostViewers)
      return refusal(kUnavailable, "there are enough viewers");
    viewer = viewers_.insert(viewers_.end(), {std::move(socket), {}});
    is_wanted_ = true;
  }
  changed_.notify_all();
  return HttpServer::SocketEvents{
      [this, viewer](const std::string& text) { on_wish(viewer, text); },
      [this, viewer] { leave(viewer); }};
}

void LivePage::leave(Viewers::iterator viewer) {
  {
    const std::lock_guard lock(mutex_);
    viewers_.erase(viewer);
    if (!viewers_.empty()) return;
  }
  inspector_->go_on();
  if (!inspector_->watched().empty()) {
    static_cast<void>(inspector_->watch({}));
    const std::lock_guard lock(mutex_);
    must_unwatch_ = true;
  }
  changed_.notify_all();
}

// --- What viewers ask for ----------------------------------------------------

void LivePage::on_wish(Viewers::iterator viewer, std::string_view text) {
  const Status status = fulfil(text);
  {
    const std::lock_guard lock(mutex_);
    viewer->error = status.ok() ? std::string() : std::string(status.message());
    is_wanted_ = true;
  }
  changed_.notify_all();
}

Status LivePage::fulfil(std::string_view text) {
  TAGFLOW_ASSIGN(const Wish wish, Wish::parse(text));
  {
    const std::lock_guard lock(check_mutex_);
    if (check_ != nullptr) TAGFLOW_RETURN_IF_ERROR(check_(wish));
  }
  switch (wish.kind) {
    case Wish::Kind::kStop:
      inspector_->stop_at(wish.stop);
      break;
    case Wish::Kind::kGo:
      inspector_->go_on();
      break;
    case Wish::Kind::kNext:
      inspector_->advance(wish.stop.frame);
      break;
    case Wish::Kind::kWatch:
      return inspector_->watch(wish.tensors);
  }
  return {};
}

// --- Pictures ----------------------------------------------------------------

void LivePage::sample() {
  std::unique_lock lock(mutex_);
  auto next = Clock::now();
  for (;;) {
    changed_.wait(
        lock, [&] { return has_ended_ || !viewers_.empty() || must_unwatch_; });
    changed_.wait_until(lock, next, [&] { return has_ended_ || is_wanted_; });
    if (has_ended_) return;
    is_wanted_ = false;
    const bool is_seen = !viewers_.empty();
    lock.unlock();
    if (!is_seen) {
      unwatch();
      lock.lock();
      next = Clock::now() + kPeriod;
      continue;
    }
    const auto begin = Clock::now();
    // Without memory there is no picture.
    static_cast<void>(guarded("inspect", [&] { send(make_picture()); }));
    const auto end = Clock::now();
    next = end + std::max<Clock::duration>(kPeriod, kShare * (end - begin));
    lock.lock();
  }
}

// A watch ends with a look, which nobody else takes now.
void LivePage::unwatch() {
  bool is_running = false;
  std::optional<actors::StepView> view;
  static_cast<void>(guarded(
      "inspect", [&] { view = inspector_->look(kPatience, &is_running); }));
  const std::lock_guard lock(mutex_);
  if (view || !is_running) must_unwatch_ = false;
}

Picture LivePage::make_picture() {
  Picture picture;
  const auto begin = Clock::now();
  picture.parts = inspector_->look_at_parts(kPatience, &picture.is_running);
  const auto end = Clock::now();
  using Seconds = std::chrono::duration<double>;
  picture.seconds = Seconds(end - start_).count();
  picture.look_ms = Seconds(end - begin).count() * 1e3;
  picture.stop = inspector_->stop();
  picture.watched = inspector_->watched();
  {
    const std::lock_guard lock(mutex_);
    picture.can_watch = can_watch_;
    picture.viewers = viewers_.size();
  }
  const std::lock_guard lock(fill_mutex_);
  if (fill_) fill_(picture);
  return picture;
}

// Each viewer has its own error; most have none, and get the same text.
void LivePage::send(Picture picture) {
  const std::string common = to_json(picture);
  const std::lock_guard lock(mutex_);
  for (const Viewer& viewer : viewers_) {
    picture.error = viewer.error;
    viewer.socket.send(picture.error.empty() ? common : to_json(picture));
  }
}

void LivePage::say_end() {
  static_cast<void>(guarded("inspect", [&] {
    const std::lock_guard lock(mutex_);
    for (const Viewer& viewer : viewers_) viewer.socket.send("{\"over\":true}");
  }));
}

}  // namespace tagflow::apps::live
