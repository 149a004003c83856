#include "apps/shared/runs/status_pages.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "net/config/cluster_file.h"
#include "net/metrics/pages.h"

namespace tagflow::apps {

CLI::Option* add_http_option(CLI::App& app, std::string& address) {
  return app
      .add_option("--http", address,
                  "where it answers GET /healthz and GET /metrics, by HTTP "
                  "without TLS, to anybody; port 0: one that is free")
      ->type_name("HOST:PORT");
}

Result<std::unique_ptr<StatusPages>> StatusPages::start(
    const std::string& address, bool beyond_loopback) {
  auto at = net::parse_address(address);
  if (!at.ok()) return std::move(at).status().with_prefix("[--http] ");
  std::unique_ptr<StatusPages> pages(new StatusPages());
  pages->host_ = at->host;
  StatusPages* const self = pages.get();
  net::HttpServer::Options options;
  options.host = std::move(at->host);
  options.port = at->port;
  options.only_loopback = !beyond_loopback;
  auto server = net::HttpServer::start(
      std::move(options), {{"/healthz", [self] { return self->health(); }},
                           {"/metrics", [self] { return self->metrics(); }}});
  if (!server.ok()) return std::move(server).status().with_prefix("[--http] ");
  pages->server_ = std::move(*server);
  return pages;
}

std::string StatusPages::address() const {
  return net::format_address({host_, server_->port()});
}

StatusPages::Opened::Opened(StatusPages& pages, Sources sources,
                            std::string reason_at_end)
    : pages_(pages), reason_at_end_(std::move(reason_at_end)) {
  const std::lock_guard lock(pages_.mutex_);
  pages_.sources_ = std::move(sources);
}

StatusPages::Opened::~Opened() {
  const std::lock_guard lock(pages_.mutex_);
  pages_.sources_ = {};
  pages_.reason_ = std::move(reason_at_end_);
}

net::HttpServer::Page StatusPages::health() {
  Health health;
  {
    const std::lock_guard lock(mutex_);
    if (sources_.health) {
      health = sources_.health();
    } else {
      health.status = error(Code::kUnavailable, "{}", reason_);
    }
  }
  net::HttpServer::Page page;
  page.status = health.status.ok() ? 200 : 503;
  page.body = health.status.ok() ? "ok\n"
                                 : fmt::format("{}\n", health.status.message());
  page.body += health.text;
  return page;
}

net::HttpServer::Page StatusPages::metrics() {
  net::MetricText text;
  net::write_process(text);
  {
    const std::lock_guard lock(mutex_);
    if (sources_.figures) sources_.figures(text);
  }
  net::HttpServer::Page page;
  page.type = net::MetricText::kType;
  page.body = text.text();
  return page;
}

}  // namespace tagflow::apps
