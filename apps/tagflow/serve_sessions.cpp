#include "apps/tagflow/serve_sessions.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/cluster_connection.h"
#include "apps/shared/runs/end_signals.h"
#include "apps/shared/runs/status_pages.h"
#include "apps/tagflow/worker_arguments.h"
#include "net/config/cluster_file.h"
#include "net/grpc/session_door.h"
#include "net/metrics/pages.h"
#include "net/tensorflow/session_service.h"

namespace tagflow::apps {
namespace {

StatusPages::Sources sources_of(net::SessionService& service) {
  return {.health = [] { return StatusPages::Health(); },
          .figures =
              [&service](net::MetricText& text) {
                net::write_sessions(text, service.figures());
              }};
}

}  // namespace

Failure serve_sessions(const ServeOptions& options,
                       const ServeSessions& sessions) {
  net::GrpcServerOptions server;
  Failure failure = grpc_options(options, "--listen", sessions.listen, server);
  if (failure.exit_code != ExitCode::kOk) return failure;
  const std::string host = server.host;
  std::optional<EndSignals> signals(std::in_place);
  std::unique_ptr<StatusPages> pages;
  failure = start_pages(options.http, "server", options.is_insecure, pages);
  if (failure.exit_code != ExitCode::kOk) return failure;
  EngineOptions engine = options.engine;
  engine.keeps_stdout = true;
  failure = connect_cluster(engine);
  if (failure.exit_code != ExitCode::kOk) return failure;
  auto session = to_session_options(engine);
  if (!session.ok()) return usage_error(std::move(session).status());
  auto service = net::SessionService::create(
      {*std::move(session), sessions.limits,
       [](const std::string& text) { spdlog::warn("[serve] {}", text); }});
  if (!service.ok()) return not_started("server", service.status());
  std::vector<std::unique_ptr<net::GrpcService>> doors;
  doors.push_back(net::make_session_door(**service));
  auto door = net::GrpcServer::start(std::move(server), std::move(doors));
  if (!door.ok())
    return not_started("server", door.status(),
                       hint_for_listening(options.is_insecure));
  std::optional<StatusPages::Opened> opened;
  if (pages != nullptr) {
    opened.emplace(*pages, sources_of(**service), "the server ends");
    print_text(fmt::format("http: {}\n", pages->address()));
  }
  print_text(
      fmt::format("ready: {}\n", net::format_address({host, (*door)->port()})));
  if (Status printed = flush_stdout(); !printed.ok())
    return run_time_error(std::move(printed));
  signals->take();
  signals.reset();  // another one ends the process at once
  (*door)->stop(std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.drain)));
  return {};
}

void add_session_options(CLI::App& app, ServeSessions& sessions) {
  const std::string group = "Sessions";
  app.add_flag("--tf-session", sessions.is_wanted,
               "run the graphs of TensorFlow's clients, which open "
               "Session(\"grpc://HOST:PORT\")")
      ->group(group);
  app.add_option("--listen", sessions.listen,
                 "where it listens for them; port 0: one that is free")
      ->capture_default_str()
      ->type_name("HOST:PORT")
      ->group(group);
  const auto add = [&](const char* name, auto& limit, const char* help) {
    app.add_option(name, limit, help)
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
        ->capture_default_str()
        ->group(group);
  };
  add("--max-sessions", sessions.limits.sessions,
      "sessions at a time; one that is idle for an hour makes room");
  add("--max-runs", sessions.limits.runs, "runs that are not answered");
  add("--max-bytes", sessions.limits.bytes,
      "bytes of feeds of these runs, and of the graphs of sessions");
}

}  // namespace tagflow::apps
