// StatusPages: /healthz and /metrics of a process.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "graph/status.h"
#include "net/link/http_server.h"
#include "net/metrics/metric_text.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tagflow::apps {

// Declares --http. `address` must outlive the parsing.
CLI::Option* add_http_option(CLI::App& app, std::string& address);

// /healthz is 200 with "ok" while the process serves, and 503 with the reason
// while it does not: unless an Opened lives, and when its health says so.
// /metrics has the figures of any process, and while an Opened lives its own.
// Thread-safe.
class StatusPages {
 public:
  struct Health {
    Status status;     // why it does not serve
    std::string text;  // what else there is to say: whole lines
  };
  // What the process says of itself, on the thread of the server, one call at a
  // time.
  struct Sources {
    std::function<Health()> health;
    std::function<void(net::MetricText&)> figures;
  };

  // While it lives, the pages, which outlive it, ask the sources. Its end waits
  // for a source that runs; then the process serves no more, for the reason.
  class Opened {
   public:
    // REQUIRES: the pages have no other
    Opened(StatusPages& pages, Sources sources, std::string reason_at_end);
    ~Opened();
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    StatusPages& pages_;
    std::string reason_at_end_;
  };

  // "HOST:PORT" of --http. InvalidArgument for what is none; errors of
  // HttpServer::start().
  static Result<std::unique_ptr<StatusPages>> start(const std::string& address,
                                                    bool beyond_loopback);
  // "HOST:PORT", with the port that it has.
  std::string address() const;

 private:
  StatusPages() = default;
  net::HttpServer::Page health();
  net::HttpServer::Page metrics();

  std::string host_;
  std::mutex mutex_;                           // guards the below
  std::string reason_ = "the process begins";  // if there are no sources
  Sources sources_;
  // Destroyed first, and set once.
  std::unique_ptr<net::HttpServer> server_;
};

}  // namespace tagflow::apps
