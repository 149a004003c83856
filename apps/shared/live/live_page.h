// LivePage: a page of a run that goes on, for browsers on this machine.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "actors/session/inspector.h"
#include "apps/shared/live/picture.h"
#include "graph/status.h"
#include "net/link/http_server.h"

namespace tagflow::apps::live {

// Serves the page at http://127.0.0.1:PORT/?token=..., and pictures of the run
// by a WebSocket, some five times a second. It listens on loopback alone. The
// token is drawn anew for each page: whoever does not have it gets a 403, and
// so does a page of another origin. There are kMostViewers at a time. While
// there is none, nobody looks at the run. When the last one goes, nothing is
// stopped or watched any more, so that no run waits for nobody. Thread-safe.
class LivePage {
 public:
  static constexpr size_t kMostViewers = 8;

  // What there is beside the run. Called on a thread of the page, one call at a
  // time.
  using Fill = std::function<void(Picture&)>;
  // Whether what a viewer asks for exists; an error is for that viewer alone.
  // Called as above.
  using Check = std::function<Status(const Wish&)>;

  // Errors of HttpServer::start(); Internal without random numbers.
  // `title` is HTML, and says what the program is.
  static Result<std::unique_ptr<LivePage>> start(uint16_t port,
                                                 std::string title);
  // Waits for a picture that is being made.
  ~LivePage();
  LivePage(const LivePage&) = delete;
  LivePage& operator=(const LivePage&) = delete;

  // Where it is, with the token.
  std::string address() const;
  actors::Inspector& inspector() { return *inspector_; }
  // The same, for whoever must keep it.
  std::shared_ptr<actors::Inspector> share() const { return inspector_; }
  // Waits for a call of the last one; null: there is nothing beside the run.
  void set_fill(Fill fill);
  // The same for this one; null: whatever is asked for is tried.
  void set_check(Check check);
  void set_can_watch(bool can_watch);
  // Sends a last picture, of a run that is over.
  void say_end();

 private:
  struct Viewer {
    net::HttpServer::WebSocket socket;
    std::string error;  // of what it has asked for last
  };
  using Viewers = std::list<Viewer>;

  LivePage();
  net::HttpServer::Page page_for(const net::HttpServer::Request& request);
  std::variant<net::HttpServer::Page, net::HttpServer::SocketEvents> admit(
      const net::HttpServer::SocketRequest& request,
      net::HttpServer::WebSocket socket);
  bool has_token(std::string_view target) const;
  void on_wish(Viewers::iterator viewer, std::string_view text);
  Status fulfil(std::string_view text);
  void leave(Viewers::iterator viewer);
  void sample();
  void unwatch();
  Picture make_picture();
  void send(Picture picture);

  const std::shared_ptr<actors::Inspector> inspector_;
  const std::chrono::steady_clock::time_point start_;
  std::string title_;
  std::string token_;
  // Each guards the one below, also while it is called.
  std::mutex fill_mutex_;
  Fill fill_;
  std::mutex check_mutex_;
  Check check_;
  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  bool has_ended_ = false;
  bool is_wanted_ = false;  // a picture, at once
  bool must_unwatch_ = false;
  bool can_watch_ = true;
  Viewers viewers_;
  std::thread sampler_;
  std::unique_ptr<net::HttpServer> server_;  // set once; destroyed first
};

}  // namespace tagflow::apps::live
