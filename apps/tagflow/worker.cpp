// tagflow worker: a process that runs parts of the steps of others.
#include "net/worker/worker.h"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/end_signals.h"
#include "apps/shared/runs/engine_options.h"
#include "apps/shared/runs/log.h"
#include "apps/shared/runs/status_pages.h"
#include "apps/shared/runs/tls_options.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/model/op_libraries.h"
#include "apps/tagflow/worker_arguments.h"
#include "net/config/cluster_file.h"
#include "net/config/secret_file.h"
#include "net/link/tls.h"
#include "net/metrics/link_probe.h"
#include "net/metrics/pages.h"

namespace tagflow::apps {
namespace {

struct WorkerCommand {
  EngineOptions engine;  // of which a worker has some
  std::vector<std::string> op_libraries;
  std::string job = "worker";
  uint32_t task = 0;
  std::string listen;  // empty: as the cluster file says, or a free port
  std::string join;    // empty: nobody
  std::string http;    // empty: nowhere
  std::string name;    // empty: that of the certificate, or the usual one
  net::TlsFiles tls;   // that the cluster file names
  std::string checkpoints;
  bool is_insecure = false;
  // Less than the time after which systemd kills a service.
  double drain_time = 60;  // seconds
  bool is_quiet = false;
  bool logs_json = false;
  pid_t parent = 0;  // 0: none
};

// The kernel kills this process when its parent has gone. False if it has
// already.
bool follow_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent;
}

// Adds what the cluster file says about the task.
Failure read_cluster(WorkerCommand& command) {
  EngineOptions& engine = command.engine;
  if (engine.cluster.empty()) return {};
  auto file = net::read_cluster_file(engine.cluster);
  if (!file.ok())
    return file_error(std::move(file).status().with_prefix("[--cluster] "));
  const net::Task task{command.job, command.task};
  const net::ClusterFile::Entry* entry = file->find(task);
  if (entry == nullptr)
    return usage_error(invalid_argument("[--cluster] \"{}\" has no task {}",
                                        engine.cluster, task.to_string()));
  command.name = file->name;
  const std::string address = net::format_address(entry->address);
  if (command.listen.empty()) command.listen = address;
  if (command.listen != address)
    spdlog::warn(
        "[--listen] {} listens at {:?}, and is looked for at {:?} of "
        "\"{}\"",
        task.to_string(), command.listen, address, engine.cluster);
  const std::string named = entry->devices.empty() ? "cpu" : entry->devices;
  if (engine.devices.empty()) engine.devices = named;
  if (engine.devices != named)
    spdlog::warn("[--devices] {} has {:?}, and {:?} in \"{}\"",
                 task.to_string(), engine.devices, named, engine.cluster);
  if (engine.secret_file.empty())
    engine.secret_file = file->secret_file.string();
  command.tls = file->tls;
  return {};
}

// Whether the text is one of this machine's own. Other names are not resolved.
bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Failure make_options(const WorkerCommand& command,
                     net::WorkerOptions& options) {
  const EngineOptions& engine = command.engine;
  if (engine.secret_file.empty())
    return usage_error(invalid_argument(
        "[worker] the cluster needs a secret: add --secret-file FILE"));
  auto secret = net::read_secret(engine.secret_file);
  if (!secret.ok()) return file_error(std::move(secret).status());
  Failure failure =
      read_tls(engine.tls, command.tls,
               net::process_name({command.job, command.task}), options.tls);
  if (failure.exit_code != ExitCode::kOk) return failure;
  if (!command.listen.empty()) {
    const auto address = net::parse_address(command.listen);
    if (!address.ok())
      return usage_error(Status(address.status()).with_prefix("[--listen] "));
    options.host = address->host;
    options.port = address->port;
  }
  if (!command.join.empty()) {
    auto member = net::parse_address(command.join);
    if (member.ok() && (member->host.empty() || member->port == 0))
      member = invalid_argument("{:?} has no {}", command.join,
                                member->port == 0 ? "port" : "host");
    if (!member.ok())
      return usage_error(std::move(member).status().with_prefix("[--join] "));
    if (command.listen.empty() && !is_loopback(member->host))
      return usage_error(invalid_argument(
          "[--join] {} is told to look for this worker at localhost: add "
          "--listen HOST:PORT, an address of this machine",
          member->host));
    options.join = *std::move(member);
  }
  auto policy = to_policy(engine);
  if (!policy.ok()) return usage_error(std::move(policy).status());
  options.policy = *std::move(policy);
  if (engine.file_root.empty())
    options.policy.reads = options.policy.writes = graph::FileScope::nowhere();
  options.checkpoints = command.checkpoints;
  options.task = {command.job, command.task};
  options.cluster = command.name;
  if (options.cluster.empty() && options.tls != nullptr)
    options.cluster =
        options.tls->cluster_of(command.job, command.task).value_or("");
  if (options.cluster.empty()) options.cluster = net::ClusterFile().name;
  options.secret = *std::move(secret);
  options.beyond_loopback = command.is_insecure;
  options.devices = engine.devices;
  options.workers = engine.workers;
  // A stranger's text does not reach the terminal's own language.
  options.print_sink = [](devices::PrintStream stream, std::string_view text) {
    print_to_stderr(stream, printable(text));
  };
  options.on_event = [prefix = options.task.to_string() + ": ",
                      is_quiet = command.is_quiet](const net::Event& event) {
    if (!is_quiet) log_event(event, prefix);
  };
  return {};
}

// What the cluster says to the worker. Thread-safe.
class ClusterEvents {
 public:
  struct State {
    bool has_joined = false;  // the worker is, or was, a member
    Status refused;           // why it will never be one; OK if that is not so
    bool is_asked_to_leave = false;

    bool ends() const { return !refused.ok() || is_asked_to_leave; }
  };

  ClusterEvents() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ClusterEvents(const ClusterEvents&) = delete;
  ClusterEvents& operator=(const ClusterEvents&) = delete;
  ~ClusterEvents() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  // Readable when something has happened; -1 if the system gives none.
  int descriptor() const { return descriptor_; }
  // Changes the state by f(state).
  template <class F>
  void add(F&& f) {
    {
      const std::lock_guard lock(mutex_);
      f(state_);
    }
    eventfd_write(descriptor_, 1);
  }
  State take() {
    eventfd_t ignored;
    eventfd_read(descriptor_, &ignored);
    const std::lock_guard lock(mutex_);
    return state_;
  }

 private:
  const int descriptor_;
  std::mutex mutex_;  // guards the below
  State state_;
};

std::chrono::milliseconds to_milliseconds(double seconds) {
  return std::chrono::milliseconds(int64_t(seconds * 1000));
}

// What the worker says of itself while it lives.
StatusPages::Sources sources_of(const net::Worker& worker) {
  const auto probe = std::make_shared<net::LinkProbe>(worker.threads());
  return {.health =
              [&worker, probe] {
                const net::WorkerFigures figures = worker.figures();
                StatusPages::Health health;
                const char* reason = nullptr;
                if (figures.has_ended) {
                  reason = "the worker has left the cluster";
                } else if (figures.is_leaving) {
                  reason = "the worker is leaving the cluster";
                } else if (!figures.is_serving) {
                  reason = "the worker does not listen";
                }
                health.status = reason == nullptr
                                    ? probe->check()
                                    : error(Code::kUnavailable, "{}", reason);
                health.text = fmt::format("master: {}\n",
                                          figures.has_master ? "yes" : "no");
                return health;
              },
          .figures =
              [&worker](net::MetricText& text) {
                net::write_worker(text, worker.figures());
              }};
}

Status print_now(const std::string& text) {
  print_text(text);
  return flush_stdout();
}

Failure serve(WorkerCommand command) {
  if (command.parent != 0 && !follow_parent(command.parent)) return {};
  Failure failure = load_op_libraries(command.op_libraries);
  if (failure.exit_code == ExitCode::kOk) failure = read_cluster(command);
  net::WorkerOptions options;
  if (failure.exit_code == ExitCode::kOk)
    failure = make_options(command, options);
  if (failure.exit_code != ExitCode::kOk) return failure;
  if (command.is_insecure && options.tls == nullptr)
    spdlog::warn(
        "[--insecure] whoever is on the path to this worker can read and "
        "change what is sent");
  const bool is_insecure = command.is_insecure;
  const std::string host = options.host;
  const bool joins = !options.join.host.empty();
  using State = ClusterEvents::State;
  ClusterEvents events;
  std::unique_ptr<StatusPages> pages;
  options.on_joined = [&events] {
    log_news({}, "the worker has joined its cluster");
    events.add([](State& state) { state.has_joined = true; });
  };
  options.on_refused = [&events](const Status& reason) {
    events.add([&](State& state) { state.refused = reason; });
  };
  options.on_asked_to_leave = [&events] {
    events.add([](State& state) { state.is_asked_to_leave = true; });
  };
  std::unique_ptr<net::Worker> worker;
  std::optional<StatusPages::Opened> opened;
  State state;
  {
    const EndSignals signals;
    if (command.logs_json)
      if (Status logs = log_as_json(options.task.to_string()); !logs.ok())
        return run_time_error(std::move(logs));
    if (events.descriptor() < 0 || signals.descriptor() < 0)
      return run_time_error(error(Code::kResourceExhausted,
                                  "[worker] the system gives no descriptors"));
    failure = start_pages(command.http, "worker", is_insecure, pages);
    if (failure.exit_code != ExitCode::kOk) return failure;
    auto started = net::Worker::start(std::move(options));
    if (!started.ok())
      return not_started("worker", started.status(),
                         hint_for_listening(is_insecure));
    worker = *std::move(started);
    const std::string ready =
        fmt::format("ready: {}\n", net::format_address({host, worker->port()}));
    Status printed;
    if (pages != nullptr) {
      opened.emplace(*pages, sources_of(*worker),
                     "the worker has left the cluster");
      printed = print_now(fmt::format("http: {}\n", pages->address()));
    }
    bool is_ready = !joins;
    if (is_ready && printed.ok()) printed = print_now(ready);
    while (printed.ok() && !state.ends() &&
           signals.take(events.descriptor()) == 0) {
      state = events.take();
      if (state.has_joined && !state.ends() && !std::exchange(is_ready, true))
        printed = print_now(ready);
    }
    if (!printed.ok()) return run_time_error(std::move(printed));
  }
  log_news({}, "the worker leaves its cluster");
  // Another signal ends the process at once.
  if (state.refused.ok() && command.drain_time > 0 &&
      !worker->drain(to_milliseconds(command.drain_time)) && !command.is_quiet)
    spdlog::warn("[--drain-time] not all steps were over after {} s",
                 command.drain_time);
  opened.reset();
  worker.reset();
  log_news({}, "the worker has left its cluster");
  if (state.refused.ok()) return {};
  return run_time_error(std::move(state.refused).with_prefix("[--join] "));
}

}  // namespace

void add_worker_command(CLI::App& app, ExitCode& exit_code) {
  auto command = std::make_shared<WorkerCommand>();
  EngineOptions& engine = command->engine;
  CLI::App* sub = app.add_subcommand(
      "worker", "be a process of a cluster, until a signal ends it");
  sub->add_option("--cluster", engine.cluster,
                  "the cluster file, which has the address, the devices and "
                  "the secret of the task")
      ->type_name("FILE");
  sub->add_option("--job", command->job, "the job of its task")
      ->capture_default_str();
  sub->add_option("--task", command->task, "the number of its task")
      ->check(CLI::Range(uint32_t{0},
                         uint32_t{std::numeric_limits<int32_t>::max()}))
      ->capture_default_str();
  sub->add_option("--listen", command->listen,
                  "where it listens; port 0: one that is free; default: "
                  "localhost:0")
      ->type_name("HOST:PORT");
  sub->add_option("--join", command->join,
                  "a worker of the cluster to join; default: others join this "
                  "one")
      ->type_name("HOST:PORT");
  add_http_option(*sub, command->http);
  sub->add_option("--name", command->name,
                  "the name of the cluster, without a cluster file; default: "
                  "that of the certificate, or " +
                      net::ClusterFile().name);
  sub->add_option("--secret-file", engine.secret_file,
                  "the secret of the cluster: a file that only its owner can "
                  "read")
      ->type_name("FILE");
  add_tls_options(*sub, engine.tls);
  sub->add_option("--devices", engine.devices,
                  "its devices: KIND[:COUNT][:OPTION=VALUE]..., as those of "
                  "\"tagflow run\"; default: one CPU")
      ->type_name("SPEC");
  add_workers_option(*sub, engine.workers);
  sub->add_flag("--insecure", command->is_insecure,
                "listen without TLS at other addresses than those of loopback, "
                "too, where whoever is on the path can read and change what is "
                "sent; and have the pages of --http there, which have no TLS");
  add_drain_time_option(*sub, command->drain_time);
  sub->add_flag("--quiet", command->is_quiet,
                "do not say when a master is lost, and why");
  add_log_format_option(*sub, command->logs_json);
  // For "tagflow cluster start".
  sub->add_option("--parent", command->parent, "")->group("");
  add_op_library_option(*sub, command->op_libraries);
  add_policy_options(*sub, engine);
  add_checkpoints_option(*sub, command->checkpoints);
  sub->callback([command, &exit_code] { exit_code = report(serve(*command)); });
}

}  // namespace tagflow::apps
