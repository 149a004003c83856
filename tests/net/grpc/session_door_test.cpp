#include "net/grpc/session_door.h"

#include <doctest/doctest.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "graph/utf8.h"
#include "net/config/certificate_files.h"
#include "net/grpc/unary_call.h"
#include "net/proto/master.grpc.pb.h"
#include "tests/net/tensorflow/asked.h"

namespace tagflow::net {
namespace {

using test::Asked;

// A service behind a server.
class Served : public Asked {
 public:
  explicit Served(GrpcServerOptions options = {}) {
    std::vector<std::unique_ptr<GrpcService>> doors;
    doors.push_back(make_session_door(*service));
    auto started = GrpcServer::start(std::move(options), std::move(doors));
    REQUIRE(started.status().to_string() == "OK");
    server = *std::move(started);
  }
  std::unique_ptr<tensorflow::MasterService::Stub> stub(
      std::shared_ptr<grpc::ChannelCredentials> credentials =
          grpc::InsecureChannelCredentials()) const {
    return tensorflow::MasterService::NewStub(grpc::CreateChannel(
        "localhost:" + std::to_string(server->port()), credentials));
  }

  std::unique_ptr<GrpcServer> server;
};

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string open_at(tensorflow::MasterService::Stub& stub) {
  tensorflow::CreateSessionRequest request;
  *request.mutable_graph_def() =
      test::from_text<tensorflow::GraphDef>(test::kGraph);
  tensorflow::CreateSessionResponse response;
  grpc::ClientContext context;
  REQUIRE(stub.CreateSession(&context, request, &response).ok());
  return response.session_handle();
}

TEST_CASE("a client opens a session, runs it and closes it") {
  Served served;
  const auto stub = served.stub();
  const std::string session = open_at(*stub);
  tensorflow::RunStepResponse response;
  {
    grpc::ClientContext context;
    REQUIRE(stub->RunStep(&context, Asked::step(session, {{"x:0", 2}}, {"y:0"}),
                          &response)
                .ok());
  }
  REQUIRE(response.tensor_size() == 1);
  CHECK(test::to_float(response.tensor(0).tensor()) == 3);
  grpc::ClientContext context;
  const grpc::Status status =
      stub->RunStep(&context, Asked::step(session, {}, {"read:0"}), &response);
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(status.error_message().find("{{node read}}") != std::string::npos);
  CHECK(served.close(session).ok());
}

TEST_CASE("many runs wait at a time, and hold no thread") {
  Served served;
  const auto stub = served.stub();
  const std::string session = open_at(*stub);
  constexpr int kRuns = 200;
  grpc::ClientContext contexts[kRuns];
  tensorflow::RunStepResponse responses[kRuns];
  std::vector<std::future<grpc::Status>> answers;
  const auto waits = Asked::step(session, {}, {"get:0"});
  for (int i = 0; i < kRuns; ++i) {
    auto answered = std::make_shared<std::promise<grpc::Status>>();
    answers.push_back(answered->get_future());
    stub->async()->RunStep(
        &contexts[i], &waits, &responses[i],
        [answered](grpc::Status status) { answered->set_value(status); });
  }
  float sum = 0;
  for (int i = 0; i < kRuns; ++i) {
    tensorflow::RunStepResponse response;
    grpc::ClientContext context;
    REQUIRE(
        stub->RunStep(&context,
                      Asked::step(session, {{"x:0", float(i)}}, {}, {"put"}),
                      &response)
            .ok());
  }
  for (int i = 0; i < kRuns; ++i) {
    REQUIRE(answers[size_t(i)].get().ok());
    sum += test::to_float(responses[i].tensor(0).tensor());
  }
  CHECK(sum == kRuns * (kRuns - 1) / 2);
}

TEST_CASE("a run ends when its client gives up, or its time is up") {
  Served served;
  const auto stub = served.stub();
  const std::string session = open_at(*stub);
  const auto waits = Asked::step(session, {}, {"get:0"});
  tensorflow::RunStepResponse response;
  grpc::ClientContext hasty;
  hasty.set_deadline(std::chrono::system_clock::now() +
                     std::chrono::milliseconds(50));
  CHECK(stub->RunStep(&hasty, waits, &response).error_code() ==
        grpc::StatusCode::DEADLINE_EXCEEDED);
  grpc::ClientContext context;
  auto answer = std::async(std::launch::async, [&] {
    return stub->RunStep(&context, waits, &response).error_code();
  });
  while (served.service->figures().runs == 0) std::this_thread::yield();
  context.TryCancel();
  CHECK(answer.get() == grpc::StatusCode::CANCELLED);
  // The server does not wait for them any more.
  while (served.service->figures().runs > 0) std::this_thread::yield();
}

TEST_CASE("a server that stops cancels what still runs") {
  Served served;
  const auto stub = served.stub();
  const auto waits = Asked::step(open_at(*stub), {}, {"get:0"});
  tensorflow::RunStepResponse response;
  grpc::ClientContext context;
  auto answer = std::async(std::launch::async, [&] {
    return stub->RunStep(&context, waits, &response).ok();
  });
  while (served.service->figures().runs == 0) std::this_thread::yield();
  served.server->stop(std::chrono::milliseconds(10));
  CHECK(!answer.get());
  served.server->stop(std::chrono::milliseconds(10));
}

TEST_CASE("a long error keeps its beginning and its end") {
  CHECK(to_grpc(invalid_argument("short")).error_message() == "short");
  std::string text = "the beginning";
  for (int i = 0; i < 1000; ++i) text += " \u00e4\u00e4";
  const std::string message =
      to_grpc(invalid_argument("{} the end", text)).error_message();
  CHECK(message.size() < kMostMessageBytes + 100);
  CHECK(message.starts_with("the beginning \u00e4"));
  CHECK(message.ends_with(" \u00e4\u00e4 the end"));
  const size_t at = message.find(" bytes left out) ...");
  REQUIRE(at != message.npos);
  const size_t tail = at + std::string(" bytes left out) ...").size();
  CHECK(character_length(std::string_view(message).substr(tail)) > 0);
}

TEST_CASE("messages beyond the limit are refused, and the server lives on") {
  Served served({.max_message = 1 << 20});
  const auto stub = served.stub();
  const std::string session = open_at(*stub);
  auto request = Asked::step(session, {{"x:0", 1}}, {"y:0"});
  auto& tensor = *request.mutable_feed(0)->mutable_tensor();
  tensor.set_tensor_content(std::string(size_t(2) << 20, 'x'));
  tensorflow::RunStepResponse response;
  grpc::ClientContext context, next;
  CHECK(stub->RunStep(&context, request, &response).error_code() ==
        grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(stub->RunStep(&next, Asked::step(session, {}, {"one:0"}), &response)
            .ok());
}

TEST_CASE("a port that is taken, and an address for strangers, are refused") {
  Served served;
  const auto start = [&](GrpcServerOptions options) {
    std::vector<std::unique_ptr<GrpcService>> doors;
    doors.push_back(make_session_door(*served.service));
    return GrpcServer::start(std::move(options), std::move(doors)).status();
  };
  CHECK(start({.port = served.server->port()}).code() == Code::kUnavailable);
  CHECK(start({.host = "0.0.0.0"}).code() == Code::kPermissionDenied);
  CHECK(start({.host = "no.such.host.invalid"}).code() == Code::kUnavailable);
  CHECK(start({.max_message = 0}).code() == Code::kInvalidArgument);
  CHECK(GrpcServer::start({}, {}).status().code() == Code::kInvalidArgument);
  CHECK(start({.tls = {.certificate = "gone.pem"}}).code() ==
        Code::kInvalidArgument);
}

TEST_CASE("with TLS, only clients with a certificate are served") {
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("session_door_{}", ::getpid());
  CertificateFiles files;
  files.folder = folder;
  files.cluster = "test";
  files.lasts = std::chrono::hours(1);
  files.processes = {{{"server", 0}, {"localhost"}}, {{"client", 0}, {}}};
  REQUIRE(write_certificates(files).status().to_string() == "OK");
  const TlsFiles tls = certificates_in(folder);
  Served served({.tls = tls.of("server-0")});
  const auto run = [&](std::shared_ptr<grpc::ChannelCredentials> credentials) {
    tensorflow::ListDevicesResponse response;
    grpc::ClientContext context;
    return served.stub(std::move(credentials))
        ->ListDevices(&context, {}, &response)
        .ok();
  };
  const TlsFiles own = tls.of("client-0");
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = file_text(own.ca);
  CHECK(!run(grpc::SslCredentials(ssl)));
  CHECK(!run(grpc::InsecureChannelCredentials()));
  ssl.pem_cert_chain = file_text(own.certificate);
  ssl.pem_private_key = file_text(own.key);
  CHECK(run(grpc::SslCredentials(ssl)));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tagflow::net
