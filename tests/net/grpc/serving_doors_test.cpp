#include "net/grpc/serving_doors.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <string>
#include <thread>

#include "graph/file/tensor_proto.h"
#include "net/config/certificate_files.h"
#include "net/config/small_file.h"
#include "net/proto/serving/services.grpc.pb.h"
#include "net/serving/prediction_service.h"
#include "net/serving/task_pool.h"
#include "tests/net/serving/served.h"

namespace tagflow::net::serving {
namespace {

namespace proto = tensorflow::serving;

// Models behind a server, and a client of it.
struct Doors {
  explicit Doors(std::vector<ModelConfig> configs,
                 const GrpcServerOptions& options = {},
                 ModelServer::Options wanted = {})
      : models(serve(configs, std::move(wanted))),
        pool(TaskPool::create(1).value()) {
    auto started =
        GrpcServer::start(options, make_serving_doors(*models, *pool));
    REQUIRE(started.status().to_string() == "OK");
    server = *std::move(started);
    const auto channel = connect(grpc::InsecureChannelCredentials());
    predictions = proto::PredictionService::NewStub(channel);
    model_service = proto::ModelService::NewStub(channel);
  }
  std::shared_ptr<grpc::Channel> connect(
      std::shared_ptr<grpc::ChannelCredentials> credentials) const {
    return grpc::CreateChannel("localhost:" + std::to_string(server->port()),
                               std::move(credentials));
  }

  std::unique_ptr<ModelServer> models;
  std::unique_ptr<TaskPool> pool;
  std::unique_ptr<GrpcServer> server;
  std::unique_ptr<proto::PredictionService::Stub> predictions;
  std::unique_ptr<proto::ModelService::Stub> model_service;
};

proto::PredictRequest predict_request(const std::string& model,
                                      const std::string& input,
                                      const Tensor& value) {
  proto::PredictRequest request;
  request.mutable_model_spec()->set_name(model);
  REQUIRE(
      graph::tensor_to_proto(value, &(*request.mutable_inputs())[input]).ok());
  return request;
}

TEST_CASE("a client has a model predict, and is told the version") {
  const Doors doors({{"half", served("half_plus")}});
  grpc::ClientContext context;
  proto::PredictResponse response;
  const auto status = doors.predictions->Predict(
      &context, predict_request("half", "x", Tensor::vector<float>({2, 4})),
      &response);
  CAPTURE(status.error_message());
  REQUIRE(status.ok());
  CHECK(response.model_spec().version().value() == 2);
  CHECK(response.model_spec().signature_name() == "serving_default");
  int64_t budget = 1000;
  CHECK(identical(
      graph::tensor_from_proto(response.outputs().at("y"), &budget).value(),
      Tensor::vector<float>({4, 5})));
}

TEST_CASE("a wrong request has its code, and says what is wrong") {
  const Doors doors({{"half", served("half_plus")}});
  const auto ask = [&](const proto::PredictRequest& request) {
    grpc::ClientContext context;
    proto::PredictResponse response;
    return doors.predictions->Predict(&context, request, &response);
  };
  CHECK(ask({}).error_code() == grpc::StatusCode::NOT_FOUND);
  const auto type =
      ask(predict_request("half", "x", Tensor::vector<double>({1})));
  CHECK(type.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(type.error_message().find("but must be float[?]") != std::string::npos);
  // A few bytes that ask for a terabyte.
  proto::PredictRequest huge;
  huge.mutable_model_spec()->set_name("half");
  auto& tensor = (*huge.mutable_inputs())["x"];
  tensor.set_dtype(tensorflow::DT_FLOAT);
  tensor.mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 38);
  tensor.add_float_val(1);
  CHECK(ask(huge).error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  tensor.mutable_tensor_shape()->mutable_dim(0)->set_size(-5);
  CHECK(ask(huge).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_CASE("a long message is cut, so that clients take it") {
  const Doors doors({{"half", served("half_plus")}});
  proto::PredictRequest request;
  std::string name;
  while (name.size() < 100'000) name += "\xc3\xa9";
  request.mutable_model_spec()->set_name(name);
  grpc::ClientContext context;
  proto::PredictResponse response;
  const auto status = doors.predictions->Predict(&context, request, &response);
  CHECK(status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(status.error_message().find("\xc3\xa9") != std::string::npos);
}

TEST_CASE("a deadline that is centuries away is none") {
  const Doors doors({{"half", served("half_plus")}});
  grpc::ClientContext context;
  context.set_deadline(
      gpr_time_add(gpr_now(GPR_CLOCK_REALTIME),
                   gpr_time_from_hours(int64_t{24} * 365 * 290, GPR_TIMESPAN)));
  proto::PredictResponse response;
  CHECK(doors.predictions
            ->Predict(&context,
                      predict_request("half", "x", Tensor::vector<float>({2})),
                      &response)
            .ok());
}

TEST_CASE("examples are classified and valued, several ways at once") {
  const Doors doors(
      {{"two", served("two_inputs")}, {"half", served("half_plus")}});
  proto::MultiInferenceRequest request;
  auto& example =
      *request.mutable_input()->mutable_example_list()->add_examples();
  auto& features = *example.mutable_features()->mutable_feature();
  features["name"].mutable_bytes_list()->add_value("a");
  features["values"].mutable_float_list()->add_value(1);
  features["values"].mutable_float_list()->add_value(2);
  features["x"].mutable_int64_list()->add_value(2);
  auto* const classify = request.add_tasks();
  classify->mutable_model_spec()->set_name("two");
  classify->mutable_model_spec()->set_signature_name("classify");
  classify->set_method_name("tensorflow/serving/classify");
  auto* const regress = request.add_tasks();
  regress->mutable_model_spec()->set_name("half");
  regress->mutable_model_spec()->set_signature_name("regress_x");
  regress->set_method_name("tensorflow/serving/regress");
  grpc::ClientContext context;
  proto::MultiInferenceResponse response;
  const auto status =
      doors.predictions->MultiInference(&context, request, &response);
  CAPTURE(status.error_message());
  REQUIRE(status.ok());
  const auto& classes = response.results(0).classification_result();
  REQUIRE(classes.classifications_size() == 1);
  CHECK(classes.classifications(0).classes(1).score() == 20);
  CHECK(response.results(1).regression_result().regressions(0).value() == 4);
  request.mutable_tasks(1)->set_method_name("x");
  grpc::ClientContext again;
  CHECK(doors.predictions->MultiInference(&again, request, &response)
            .error_code() == grpc::StatusCode::UNIMPLEMENTED);
}

// Tasks on the same examples whose batches wait for others.
struct WaitingTasks {
  std::unique_ptr<ModelServer> server = [] {
    ModelServer::Options options;
    options.batching = BatchOptions{.batch_timeout = std::chrono::hours(1)};
    return serve({{"half", served("half_plus")}}, std::move(options));
  }();
  PredictionService service{*server};
  proto::MultiInferenceRequest request;
  proto::MultiInferenceResponse response;
  std::shared_ptr<CallEnd> end = std::make_shared<CallEnd>();

  WaitingTasks() {
    auto& example =
        *request.mutable_input()->mutable_example_list()->add_examples();
    (*example.mutable_features()->mutable_feature())["x"]
        .mutable_float_list()
        ->add_value(2);
    add("half");
    add("half");
  }
  void add(const std::string& model) {
    auto* const task = request.add_tasks();
    task->mutable_model_spec()->set_name(model);
    task->mutable_model_spec()->set_signature_name("regress_x");
    task->set_method_name("tensorflow/serving/regress");
  }
  std::shared_ptr<Awaited<int>> start() {
    auto answer = std::make_shared<Awaited<int>>();
    service.multi_inference(
        request, {{}, end}, &response,
        [answer](const Status& status) { answer->put(int(status.code())); });
    return answer;
  }
};

TEST_CASE("the tasks of a client that goes end") {
  WaitingTasks tasks;
  const auto answer = tasks.start();
  CHECK_FALSE(answer->is_there());
  tasks.end->cancel();
  CHECK(answer->take().value() == int(Code::kCancelled));
  // It has gone before, too.
  CHECK(tasks.start()->take().value() == int(Code::kCancelled));
}

TEST_CASE("an error of one task ends the others") {
  WaitingTasks tasks;
  tasks.add("nothing");
  CHECK(tasks.start()->take().value() == int(Code::kNotFound));
}

TEST_CASE("a request has no end of tasks") {
  WaitingTasks tasks;
  for (int i = 0; i < 1000; ++i) tasks.add("nothing");
  CHECK(tasks.start()->take().value() == int(Code::kInvalidArgument));
}

TEST_CASE("metadata and status say which signatures and versions there are") {
  const Doors doors({{"half", served("half_plus")}});
  proto::GetModelMetadataRequest ask;
  ask.mutable_model_spec()->set_name("half");
  ask.add_metadata_field("signature_def");
  proto::GetModelMetadataResponse metadata;
  grpc::ClientContext context;
  REQUIRE(doors.predictions->GetModelMetadata(&context, ask, &metadata).ok());
  proto::SignatureDefMap map;
  REQUIRE(metadata.metadata().at("signature_def").UnpackTo(&map));
  CHECK(map.signature_def().at("serving_default").inputs().at("x").name() ==
        "x:0");
  proto::GetModelStatusRequest status;
  status.mutable_model_spec()->set_name("half");
  proto::GetModelStatusResponse statuses;
  grpc::ClientContext other;
  REQUIRE(doors.model_service->GetModelStatus(&other, status, &statuses).ok());
  REQUIRE(statuses.model_version_status_size() == 1);
  CHECK(statuses.model_version_status(0).state() ==
        proto::ModelVersionStatus::AVAILABLE);
}

TEST_CASE("a client replaces the models") {
  const Doors doors({{"half", served("half_plus")}});
  proto::ReloadConfigRequest request;
  auto* const config =
      request.mutable_config()->mutable_model_config_list()->add_config();
  config->set_name("count");
  config->set_base_path(served("count"));
  proto::ReloadConfigResponse response;
  grpc::ClientContext context;
  REQUIRE(doors.model_service
              ->HandleReloadConfigRequest(&context, request, &response)
              .ok());
  CHECK(response.status().error_code() == 0);
  CHECK(doors.models->models().names() == std::vector<std::string>{"count"});
  config->set_base_path("/nowhere");
  config->set_name("other");
  grpc::ClientContext again;
  CHECK(
      doors.model_service->HandleReloadConfigRequest(&again, request, &response)
          .error_code() == grpc::StatusCode::NOT_FOUND);
}

proto::ReloadConfigRequest reload_request(const std::string& model) {
  proto::ReloadConfigRequest request;
  auto* const config =
      request.mutable_config()->mutable_model_config_list()->add_config();
  config->set_name(model);
  config->set_base_path(served(model));
  return request;
}

TEST_CASE("a server may refuse to replace its models") {
  const Doors doors({{"half", served("half_plus")}}, {},
                    {.allows_reloads = false});
  grpc::ClientContext context;
  proto::ReloadConfigResponse response;
  const auto status = doors.model_service->HandleReloadConfigRequest(
      &context, reload_request("count"), &response);
  CHECK(status.error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(status.error_message().find("--refuse-reloads") != std::string::npos);
  CHECK(doors.models->models().find({.name = "half"}).ok());
  CHECK_FALSE(doors.models->models().find({.name = "count"}).ok());
}

TEST_CASE("a reload that never ends is answered when the store stops") {
  const Doors doors({{"half", served("half_plus")}});
  ModelStore& store = doors.models->models();
  auto reload = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    proto::ReloadConfigResponse response;
    return doors.model_service->HandleReloadConfigRequest(
        &context, reload_request("never_loaded"), &response);
  });
  const auto is_loading = [&] {
    const auto found = store.statuses({.name = "never_loaded"});
    return found.ok() && !found->empty() &&
           found->front().state == VersionStatus::State::kLoading;
  };
  while (!is_loading()) std::this_thread::yield();
  // A client that gives up a reload behind it is not told of its end.
  grpc::ClientContext impatient;
  impatient.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(5));
  proto::ReloadConfigResponse response;
  CHECK(doors.model_service
            ->HandleReloadConfigRequest(&impatient, reload_request("count"),
                                        &response)
            .error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  store.stop();
  CHECK(reload.get().error_code() == grpc::StatusCode::CANCELLED);
  CHECK_FALSE(store.find({.name = "count"}).ok());
}

TEST_CASE("a run ends by the deadline of its call, or when the client goes") {
  const Doors doors({{"count", served("count")}});
  const auto request =
      predict_request("count", "n", Tensor::scalar<int64_t>(int64_t{1} << 62));
  grpc::ClientContext late;
  late.set_deadline(std::chrono::system_clock::now() +
                    std::chrono::milliseconds(30));
  proto::PredictResponse response;
  CHECK(doors.predictions->Predict(&late, request, &response).error_code() ==
        grpc::StatusCode::DEADLINE_EXCEEDED);
  grpc::ClientContext left;
  std::thread client([&] {
    proto::PredictResponse none;
    CHECK(doors.predictions->Predict(&left, request, &none).error_code() ==
          grpc::StatusCode::CANCELLED);
  });
  const auto count_running = [&] {
    MetricText text;
    doors.models->write_figures(text);
    return text.text().find("tagflow_serving_running{model=\"count\"} 1\n") !=
           std::string::npos;
  };
  while (!count_running()) std::this_thread::yield();
  left.TryCancel();
  client.join();
  while (count_running()) std::this_thread::yield();
}

// The certificates of a server and a client, of an authority of their own.
struct Authority {
  explicit Authority(const std::string& name)
      : folder(std::filesystem::temp_directory_path() /
               fmt::format("serving_doors_{}_{}", name, ::getpid())) {
    CertificateFiles files;
    files.folder = folder;
    files.cluster = name;
    files.lasts = std::chrono::hours(1);
    files.processes = {{{"server", 0}, {"localhost"}}, {{"client", 0}, {}}};
    REQUIRE(write_certificates(files).status().to_string() == "OK");
  }
  ~Authority() { std::filesystem::remove_all(folder); }
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  TlsFiles files_of(const std::string& process) const {
    return certificates_in(folder).of(process);
  }

  const std::filesystem::path folder;
};

std::string text_of(const std::string& path) {
  return read_small_file(path, 1 << 20, Readers::kAnybody).value();
}

// Whether a model answers a client that trusts these authorities, and shows
// these certificates if they are not empty.
bool is_served(const Doors& doors, const std::string& trusted,
               const TlsFiles& own) {
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = text_of(trusted);
  if (!own.empty()) {
    ssl.pem_cert_chain = text_of(own.certificate);
    ssl.pem_private_key = text_of(own.key);
  }
  const auto stub = proto::PredictionService::NewStub(
      doors.connect(grpc::SslCredentials(ssl)));
  grpc::ClientContext context;
  proto::PredictResponse response;
  return stub
      ->Predict(&context,
                predict_request("half", "x", Tensor::vector<float>({2})),
                &response)
      .ok();
}

bool is_served_plainly(const Doors& doors) {
  grpc::ClientContext context;
  proto::PredictResponse response;
  return doors.predictions
      ->Predict(&context,
                predict_request("half", "x", Tensor::vector<float>({2})),
                &response)
      .ok();
}

TEST_CASE("with TLS, models answer clients with a certificate they trust") {
  const Authority ours("ours"), other("other");
  const TlsFiles server = ours.files_of("server-0");
  const TlsFiles client = ours.files_of("client-0");
  const Doors doors({{"half", served("half_plus")}}, {.tls = server});
  CHECK(is_served(doors, client.ca, client));
  CHECK_FALSE(is_served(doors, client.ca, {}));
  CHECK_FALSE(is_served(doors, client.ca, other.files_of("client-0")));
  // A server that the client does not trust.
  CHECK_FALSE(is_served(doors, other.files_of("client-0").ca, client));
  CHECK_FALSE(is_served_plainly(doors));
}

TEST_CASE("with TLS, clients may be asked for no certificate") {
  const Authority ours("asks_for_none");
  TlsFiles server = ours.files_of("server-0");
  const std::string ca = std::exchange(server.ca, "");
  const Doors doors({{"half", served("half_plus")}},
                    {.tls = server, .asks_for_certificates = false});
  CHECK(is_served(doors, ca, {}));
  CHECK_FALSE(is_served_plainly(doors));
}

}  // namespace
}  // namespace tagflow::net::serving
