#include "net/grpc/server.h"

#include <google/protobuf/stubs/logging.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/resource_quota.h>

#include <climits>
#include <mutex>
#include <utility>

#include "graph/fault.h"
#include "net/config/small_file.h"
#include "net/grpc/listen_address.h"

namespace tagflow::net {
namespace {

constexpr size_t kLargestPem = size_t{1} << 20;  // bytes

Result<std::shared_ptr<grpc::ServerCredentials>> credentials_of(
    const GrpcServerOptions& options) {
  const TlsFiles& files = options.tls;
  if (files.empty()) return grpc::InsecureServerCredentials();
  if (files.certificate.empty() || files.key.empty() ||
      (files.ca.empty() && options.asks_for_certificates))
    return invalid_argument(
        "[grpc] TLS needs the files of a certificate, of its key, and, if "
        "clients must show certificates, of their authority");
  grpc::SslServerCredentialsOptions ssl(
      options.asks_for_certificates
          ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
          : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  grpc::SslServerCredentialsOptions::PemKeyCertPair own;
  if (!files.ca.empty()) {
    TAGFLOW_ASSIGN(ssl.pem_root_certs,
                   read_small_file(files.ca, kLargestPem, Readers::kAnybody));
  }
  TAGFLOW_ASSIGN(own.cert_chain, read_small_file(files.certificate, kLargestPem,
                                                 Readers::kAnybody));
  TAGFLOW_ASSIGN(own.private_key,
                 read_small_file(files.key, kLargestPem, Readers::kOwner));
  ssl.pem_key_cert_pairs.push_back(std::move(own));
  return grpc::SslServerCredentials(ssl);
}

class RunningServer final : public GrpcServer {
 public:
  explicit RunningServer(std::vector<std::unique_ptr<GrpcService>> services)
      : services_(std::move(services)) {}
  ~RunningServer() override { stop(std::chrono::nanoseconds(0)); }

  Status open(const GrpcServerOptions& options);
  uint16_t port() const override { return uint16_t(port_); }
  void stop(std::chrono::nanoseconds patience) override;

 private:
  const std::vector<std::unique_ptr<GrpcService>> services_;
  int port_ = 0;
  std::mutex stopping_;
  std::unique_ptr<grpc::Server> server_;  // destroyed first
};

Status RunningServer::open(const GrpcServerOptions& options) {
  TAGFLOW_ASSIGN(auto credentials, credentials_of(options));
  TAGFLOW_ASSIGN(
      const std::string address,
      listen_address(options.host, options.port,
                     options.tls.empty() && !options.beyond_loopback));
  // What is wrong with the messages of strangers is not told to stderr.
  google::protobuf::SetLogHandler(nullptr);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, std::move(credentials), &port_);
  for (const auto& service : services_)
    builder.RegisterService(dynamic_cast<grpc::Service*>(service.get()));
  builder.SetMaxReceiveMessageSize(options.max_message);
  builder.SetMaxSendMessageSize(options.max_message);
  grpc::ResourceQuota quota("tagflow");
  quota.Resize(options.max_buffers);
  builder.SetResourceQuota(quota);
  const int keep_alive = int(std::chrono::milliseconds(options.keep_alive) /
                             std::chrono::milliseconds(1));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keep_alive);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keep_alive);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             options.max_calls);
  // A port that another process has is an error.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port_ == 0)
    return error(Code::kUnavailable, "[grpc] cannot listen at {}", address);
  return {};
}

void RunningServer::stop(std::chrono::nanoseconds patience) {
  const std::lock_guard lock(stopping_);
  if (server_ == nullptr) return;
  server_->Shutdown(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::microseconds>(patience));
  server_->Wait();
  server_ = nullptr;
}

Status check(const GrpcServerOptions& options, size_t num_services) {
  constexpr std::chrono::hours kLongest{24};
  if (num_services == 0 || options.max_message <= 0 ||
      options.max_buffers == 0 || options.max_calls <= 0 ||
      options.keep_alive.count() <= 0 || options.keep_alive > kLongest)
    return invalid_argument(
        "[grpc] a server needs a service, and limits that are positive");
  return {};
}

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(
    GrpcServerOptions options,
    std::vector<std::unique_ptr<GrpcService>> services) {
  return guarded("grpc", [&]() -> Result<std::unique_ptr<GrpcServer>> {
    TAGFLOW_RETURN_IF_ERROR(check(options, services.size()));
    auto server = std::make_unique<RunningServer>(std::move(services));
    TAGFLOW_RETURN_IF_ERROR(server->open(options));
    return std::unique_ptr<GrpcServer>(std::move(server));
  });
}

}  // namespace tagflow::net
