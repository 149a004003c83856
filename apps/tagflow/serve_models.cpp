#include "apps/tagflow/serve_models.h"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "apps/shared/io/file.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/cluster_connection.h"
#include "apps/shared/runs/end_signals.h"
#include "apps/shared/runs/status_pages.h"
#include "apps/tagflow/worker_arguments.h"
#include "net/config/cluster_file.h"
#include "net/grpc/serving_doors.h"
#include "net/link/http_server.h"
#include "net/metrics/pages.h"
#include "net/serving/rest_api.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;
using net::serving::ModelConfig;
using net::serving::ModelServer;
using net::serving::TaskPool;

constexpr size_t kMostConfigBytes = size_t{16} << 20;
// How long runs that are cancelled at the end have to end.
constexpr std::chrono::seconds kCancelTime{2};

std::chrono::milliseconds in_milliseconds(double seconds) {
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::duration<double>(seconds));
}

// The models of the command line and those of the file.
Failure read_configs(const ServeModels& models,
                     std::vector<ModelConfig>& configs) {
  if (!models.name.empty() && models.folders.size() != 1)
    return usage_error(invalid_argument(
        "[--name] it is for one MODEL_DIR, not for {}", models.folders.size()));
  if (!models.config.empty()) {
    auto text = io::read_file(models.config, kMostConfigBytes);
    if (!text.ok())
      return file_error(std::move(text).status().with_prefix("[--config] "));
    auto parsed = net::serving::parse_model_configs(*text);
    if (!parsed.ok())
      return run_time_error(std::move(parsed).status().with_prefix(
          fmt::format("{}: ", models.config)));
    configs = *std::move(parsed);
  }
  for (const std::string& folder : models.folders) {
    std::error_code code;
    const fs::path path = fs::weakly_canonical(folder, code);
    if (code || !fs::is_directory(path, code))
      return file_error(
          error(Code::kNotFound, "[serve] there is no folder \"{}\"", folder));
    configs.push_back(
        {models.name.empty() ? path.filename().string() : models.name,
         path.string()});
  }
  if (Status valid = net::serving::check_configs(configs); !valid.ok())
    return usage_error(std::move(valid));
  return {};
}

Failure read_batching(const ServeModels& models,
                      std::optional<net::serving::BatchOptions>& batching) {
  if (!models.has_batching && models.batching.empty()) return {};
  batching.emplace();
  if (models.batching.empty()) return {};
  auto text = io::read_file(models.batching, kMostConfigBytes);
  if (!text.ok())
    return file_error(std::move(text).status().with_prefix("[--batching] "));
  auto parsed = net::serving::parse_batch_options(*text);
  if (!parsed.ok())
    return run_time_error(std::move(parsed).status().with_prefix(
        fmt::format("{}: ", models.batching)));
  *batching = *std::move(parsed);
  return {};
}

void log_change(const std::string& model,
                const net::serving::VersionStatus& version) {
  const auto text =
      fmt::format("[serve] version {} of model \"{}\": {}{}{}", version.version,
                  model, net::serving::state_name(version.state),
                  version.status.ok() ? "" : ", ", version.status.message());
  version.status.ok() ? spdlog::info("{}", text) : spdlog::warn("{}", text);
}

Failure make_server(const ServeOptions& options, const ServeModels& models,
                    std::unique_ptr<ModelServer>& server) {
  EngineOptions engine = options.engine;
  engine.keeps_stdout = true;
  Failure failure = connect_cluster(engine);
  if (failure.exit_code != ExitCode::kOk) return failure;
  auto session = to_session_options(engine);
  if (!session.ok()) return usage_error(std::move(session).status());
  const int workers = engine.workers > 0
                          ? engine.workers
                          : int(std::thread::hardware_concurrency());
  session->max_active_runs =
      models.active_runs > 0 ? models.active_runs : 2 * std::max(workers, 1);
  session->max_queued_runs = models.queued_runs;
  ModelServer::Options wanted;
  wanted.servable = {*std::move(session), models.allows_file_ops};
  failure = read_batching(models, wanted.batching);
  if (failure.exit_code != ExitCode::kOk) return failure;
  wanted.poll_interval = in_milliseconds(models.poll);
  wanted.allows_reloads = !models.refuses_reloads;
  wanted.on_change = log_change;
  auto made = ModelServer::create(std::move(wanted));
  if (!made.ok()) return run_time_error(std::move(made).status());
  server = *std::move(made);
  return {};
}

// Each connection is a descriptor.
void allow_descriptors(size_t connections) {
  constexpr size_t kOthers = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max<rlim_t>(
      limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, connections + kOthers));
  setrlimit(RLIMIT_NOFILE, &limit);
}

StatusPages::Sources sources_of(const ModelServer& server) {
  return {.health =
              [&server] {
                return StatusPages::Health{server.models().ready(), ""};
              },
          .figures =
              [&server](net::MetricText& text) { server.write_figures(text); }};
}

// What serves models. Each part outlives those below it.
struct Service {
  std::unique_ptr<ModelServer> server;
  std::unique_ptr<TaskPool> pool, loads;
  std::unique_ptr<net::serving::RestApi> api;
  std::string rest_host, grpc_host;
  std::unique_ptr<net::GrpcServer> grpc;
  std::unique_ptr<net::HttpServer> rest;
};

Failure open_rest(const ServeOptions& options, const ServeModels& models,
                  Service& service) {
  auto at = net::parse_address(models.rest);
  if (!at.ok())
    return usage_error(std::move(at).status().with_prefix("[--rest] "));
  service.rest_host = at->host;
  net::HttpServer::Options http;
  http.host = at->host;
  http.port = at->port;
  http.only_loopback = !options.is_insecure;
  http.most_connections = models.connections;
  http.most_running = models.connections;
  http.most_requests = SIZE_MAX;  // keep-alive as long as clients like
  http.most_body_bytes = models.max_body << 20;
  http.most_bytes = models.max_bytes << 20;
  http.time = in_milliseconds(models.request_time);
  allow_descriptors(models.connections);
  const auto health = [&server = *service.server] {
    const Status ready = server.models().ready();
    net::HttpServer::Page page;
    page.status = ready.ok() ? 200 : 503;
    page.body = ready.ok() ? "ok\n" : fmt::format("{}\n", ready.message());
    return page;
  };
  const auto metrics = [&server = *service.server] {
    net::MetricText text;
    net::write_process(text);
    server.write_figures(text);
    net::HttpServer::Page page;
    page.type = net::MetricText::kType;
    page.body = text.text();
    return page;
  };
  auto started = net::HttpServer::start(
      std::move(http), {{"/healthz", health}, {"/metrics", metrics}},
      [&api = *service.api](net::HttpServer::Request request,
                            net::HttpServer::Answer answer) {
        api.handle(std::move(request), std::move(answer));
      });
  if (!started.ok())
    return not_started("server", started.status(),
                       hint_for_listening(options.is_insecure));
  service.rest = *std::move(started);
  return {};
}

Failure open_grpc(const ServeOptions& options, const ServeModels& models,
                  Service& service) {
  net::GrpcServerOptions wanted;
  Failure failure = grpc_options(options, "--grpc", models.grpc, wanted);
  if (failure.exit_code != ExitCode::kOk) return failure;
  service.grpc_host = wanted.host;
  auto started = net::GrpcServer::start(
      std::move(wanted),
      net::make_serving_doors(*service.server, *service.loads));
  if (!started.ok())
    return not_started("server", started.status(),
                       hint_for_listening(options.is_insecure));
  service.grpc = *std::move(started);
  return {};
}

// Loads the models, unless a signal comes: then what loads is given up.
// Another signal then ends the process at once.
Failure load_models(net::serving::ModelStore& models,
                    std::optional<EndSignals>& signals, bool& is_ended) {
  const int loaded = signals->descriptor() < 0 ? -1 : eventfd(0, EFD_CLOEXEC);
  if (loaded < 0)
    return run_time_error(
        error(Code::kResourceExhausted, "[serve] too many files are open"));
  Status status;
  std::thread loading([&] {
    status = models.look();
    eventfd_write(loaded, 1);
  });
  is_ended = signals->take(loaded) != 0;
  if (is_ended) {
    signals.reset();
    models.stop();
    // A large file may be read.
    if (!models.wait_until_idle(kCancelTime)) std::_Exit(0);
  }
  loading.join();
  close(loaded);
  return is_ended || status.ok() ? Failure() : file_error(std::move(status));
}

Failure open_doors(const ServeOptions& options, const ServeModels& models,
                   Service& service) {
  auto pool = TaskPool::create(
      std::max<size_t>(std::thread::hardware_concurrency(), 2));
  if (!pool.ok()) return run_time_error(std::move(pool).status());
  service.pool = *std::move(pool);
  // Loads of models take long, and keep no request waiting.
  auto loads = TaskPool::create(1);
  if (!loads.ok()) return run_time_error(std::move(loads).status());
  service.loads = *std::move(loads);
  service.api = std::make_unique<net::serving::RestApi>(
      *service.server, *service.pool,
      net::serving::RestApi::Options{.time =
                                         in_milliseconds(models.request_time)});
  if (!models.rest.empty()) {
    Failure failure = open_rest(options, models, service);
    if (failure.exit_code != ExitCode::kOk) return failure;
  }
  return models.grpc.empty() ? Failure() : open_grpc(options, models, service);
}

// Says where it listens.
Failure announce(const Service& service, const StatusPages* pages) {
  if (pages != nullptr) print_text(fmt::format("http: {}\n", pages->address()));
  const auto ready = [](const char* door, const std::string& host,
                        uint16_t port) {
    print_text(
        fmt::format("ready: {} {}\n", door, net::format_address({host, port})));
  };
  if (service.rest != nullptr)
    ready("rest", service.rest_host, service.rest->port());
  if (service.grpc != nullptr)
    ready("grpc", service.grpc_host, service.grpc->port());
  if (Status printed = flush_stdout(); !printed.ok())
    return run_time_error(std::move(printed));
  return {};
}

// Answers what runs, for so long at most. Ends the process if something cannot
// be interrupted: a kernel, or a load that reads a large file.
void close_doors(Service& service, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience + kCancelTime;
  const auto left = [end] {
    return std::chrono::ceil<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
  };
  net::serving::ModelStore& models = service.server->models();
  models.stop();
  const auto stopped = std::async(std::launch::async, [&] {
    if (service.grpc != nullptr) service.grpc->stop(patience);
  });
  if (service.rest != nullptr)
    if (Status drained = service.rest->drain(patience); !drained.ok())
      spdlog::warn("[serve] {}", drained.message());
  service.rest.reset();
  if (!models.wait_until_idle(left()) ||
      stopped.wait_for(left()) != std::future_status::ready ||
      !service.api->wait_until_idle(kCancelTime))
    std::_Exit(0);
}

}  // namespace

Failure serve_models(const ServeOptions& options, const ServeModels& models) {
  std::vector<ModelConfig> configs;
  Failure failure = read_configs(models, configs);
  if (failure.exit_code != ExitCode::kOk) return failure;
  std::optional<EndSignals> signals(std::in_place);
  std::unique_ptr<StatusPages> pages;
  failure = start_pages(options.http, "server", options.is_insecure, pages);
  if (failure.exit_code != ExitCode::kOk) return failure;
  Service service;
  failure = make_server(options, models, service.server);
  if (failure.exit_code != ExitCode::kOk) return failure;
  if (Status set = service.server->models().set_configs(configs); !set.ok())
    return usage_error(std::move(set));
  bool is_ended = false;
  failure = load_models(service.server->models(), signals, is_ended);
  if (failure.exit_code != ExitCode::kOk || is_ended) return failure;
  failure = open_doors(options, models, service);
  if (failure.exit_code != ExitCode::kOk) return failure;
  std::optional<StatusPages::Opened> opened;
  if (pages != nullptr)
    opened.emplace(*pages, sources_of(*service.server), "the server ends");
  failure = announce(service, pages.get());
  if (failure.exit_code != ExitCode::kOk) return failure;
  signals->take();
  signals.reset();  // another one ends the process at once
  close_doors(service, in_milliseconds(options.drain));
  return {};
}

void add_model_options(CLI::App& app, ServeModels& models) {
  const std::string group = "Models";
  app.add_option("model_dir", models.folders,
                 "a folder with a SavedModel, or with one for each version in "
                 "a folder whose name is its number")
      ->type_name("MODEL_DIR");
  const auto add = [&](const char* name, auto& value, const char* type,
                       const char* help) {
    return app.add_option(name, value, help)->type_name(type)->group(group);
  };
  add("--name", models.name, "NAME",
      "the name of the model; default: that of its folder");
  add("--config", models.config, "FILE",
      "models, versions and labels, as --model_config_file of TensorFlow "
      "Serving has them");
  add("--rest", models.rest, "HOST:PORT",
      "where it listens for REST; port 0: one that is free");
  add("--grpc", models.grpc, "HOST:PORT",
      "where it listens for gRPC; port 0: one that is free");
  app.add_flag("--enable-batching", models.has_batching,
               "run the rows of several requests at once")
      ->group(group);
  add("--batching", models.batching, "FILE",
      "how, as --batching_parameters_file of TensorFlow Serving says it");
  app.add_flag("--allow-file-ops", models.allows_file_ops,
               "serve models that read or write files, too")
      ->group(group);
  app.add_flag(
         "--refuse-reloads", models.refuses_reloads,
         "refuse requests of clients (HandleReloadConfigRequest) to serve "
         "other models")
      ->group(group);
  add("--poll-interval", models.poll, "SECONDS",
      "how often it looks for new versions")
      ->check(CLI::Range(0.01, 86400.0))
      ->capture_default_str();
  add("--request-time", models.request_time, "SECONDS",
      "for a request by REST to come, and as long again for its answer")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  add("--max-active-runs", models.active_runs, "N",
      "runs of a model that compute at a time; 0: twice the workers")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  add("--max-queued-runs", models.queued_runs, "N",
      "runs of a model that wait for their turn; further ones are refused")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  add("--max-connections", models.connections, "N", "connections by REST")
      ->check(CLI::Range(size_t{1}, size_t{1} << 20))
      ->capture_default_str();
  add("--max-body", models.max_body, "MIB", "MiB of a request by REST")
      ->check(CLI::Range(size_t{1}, size_t{1} << 12))
      ->capture_default_str();
  add("--max-bodies", models.max_bytes, "MIB",
      "MiB of all requests and answers by REST at a time")
      ->check(CLI::Range(size_t{1}, size_t{1} << 20))
      ->capture_default_str();
}

}  // namespace tagflow::apps
