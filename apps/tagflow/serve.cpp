// tagflow serve: a process that runs graphs and models for clients of other
// kinds.
#include "apps/tagflow/serve.h"

#include <google/protobuf/stubs/logging.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/status_pages.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/model/op_libraries.h"
#include "apps/tagflow/serve_models.h"
#include "apps/tagflow/serve_sessions.h"
#include "net/config/cluster_file.h"

namespace tagflow::apps {
namespace {

struct ServeCommand {
  ServeOptions options;
  ServeModels models;
  ServeSessions sessions;
};

Failure serve(const ServeCommand& command) {
  const bool has_models = command.models.is_wanted();
  if (has_models == command.sessions.is_wanted)
    return usage_error(invalid_argument(
        "[serve] say what to serve: MODEL_DIR, --config or --tf-session{}",
        has_models ? ", not both" : ""));
  if (has_models && command.models.rest.empty() && command.models.grpc.empty())
    return usage_error(invalid_argument(
        "[serve] say where to serve: --rest HOST:PORT, --grpc HOST:PORT"));
  Failure failure = load_op_libraries(command.options.op_libraries);
  if (failure.exit_code != ExitCode::kOk) return failure;
  if (command.options.is_insecure && command.options.tls.empty())
    spdlog::warn(
        "[--insecure] whoever reaches this server can run graphs here, and "
        "whoever is on the path can read and change what is sent");
  // What strangers send would fill the log.
  google::protobuf::SetLogHandler(nullptr);
  return has_models ? serve_models(command.options, command.models)
                    : serve_sessions(command.options, command.sessions);
}

void add_tls_of_doors(CLI::App& app, net::TlsFiles& tls) {
  const std::string group = "TLS";
  app.add_option("--grpc-cert", tls.certificate,
                 "the certificate of the server, in PEM")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--grpc-key", tls.key,
                 "its key, in PEM, a file that only its owner can read")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--grpc-ca", tls.ca,
                 "clients must show a certificate of these authorities")
      ->type_name("FILE")
      ->group(group);
}

}  // namespace

Failure grpc_options(const ServeOptions& options, const std::string& option,
                     const std::string& address,
                     net::GrpcServerOptions& server) {
  auto at = net::parse_address(address);
  if (!at.ok())
    return usage_error(
        std::move(at).status().with_prefix(fmt::format("[{}] ", option)));
  server.host = std::move(at->host);
  server.port = at->port;
  server.beyond_loopback = options.is_insecure;
  server.tls = options.tls;
  server.asks_for_certificates = !options.tls.ca.empty();
  server.max_message = options.max_message_mebibytes << 20;
  server.max_buffers = size_t(options.max_buffers_mebibytes) << 20;
  return {};
}

void add_serve_command(CLI::App& app, ExitCode& exit_code) {
  auto command = std::make_shared<ServeCommand>();
  CLI::App* sub = app.add_subcommand(
      "serve",
      "run models for clients of TensorFlow Serving, or graphs for those of "
      "TensorFlow, until a signal ends it");
  add_model_options(*sub, command->models);
  add_session_options(*sub, command->sessions);
  ServeOptions& options = command->options;
  add_http_option(*sub, options.http);
  sub->add_flag("--insecure", options.is_insecure,
                "listen without TLS at other addresses than those of loopback, "
                "too, and have the pages of --http there");
  constexpr int kMostMebibytes = 2047;  // of a message
  sub->add_option("--max-message", options.max_message_mebibytes,
                  "the most MiB of a request or an answer")
      ->check(CLI::Range(1, kMostMebibytes))
      ->capture_default_str();
  constexpr int kMostBuffers = 1 << 20;  // MiB
  sub->add_option("--max-buffers", options.max_buffers_mebibytes,
                  "the most MiB of all that is on its way from and to clients")
      ->check(CLI::Range(1, kMostBuffers))
      ->capture_default_str();
  sub->add_option("--drain-time", options.drain,
                  "seconds that runs have to end when a signal has come")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  add_tls_of_doors(*sub, options.tls);
  add_op_library_option(*sub, options.op_libraries);
  add_engine_options(*sub, options.engine);
  sub->callback([command, &exit_code] { exit_code = report(serve(*command)); });
}

}  // namespace tagflow::apps
