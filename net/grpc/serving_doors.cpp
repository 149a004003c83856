#include "net/grpc/serving_doors.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "net/grpc/unary_call.h"
#include "net/proto/serving/services.grpc.pb.h"
#include "net/serving/prediction_service.h"
#include "net/serving/task_pool.h"

namespace tagflow::net {
namespace {

namespace proto = tensorflow::serving;
using ServerContext = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

// When the call must be over, if it must.
std::optional<std::chrono::steady_clock::time_point> deadline_of(
    const ServerContext& call) {
  // Some clients say "never" by a time of their own.
  constexpr std::chrono::hours kForever{24 * 365};
  const auto now = std::chrono::system_clock::now();
  if (call.deadline() >= now + kForever) return std::nullopt;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::max(call.deadline(), now - kForever) - now);
}

// As UnaryCall::start(), but with begin(context, done).
template <class Begin>
Reactor* start(const ServerContext& call, Begin&& begin) {
  const auto end = std::make_shared<serving::CallEnd>();
  return UnaryCall::start(
      [end] { end->cancel(); },
      [&](const UnaryCall::Done& done) {
        begin(serving::CallContext{deadline_of(call), end}, done);
      });
}

class PredictionDoor final : public GrpcService,
                             public proto::PredictionService::CallbackService {
 public:
  explicit PredictionDoor(serving::ModelServer& server) : service_(server) {}

  Reactor* Predict(ServerContext* context, const proto::PredictRequest* request,
                   proto::PredictResponse* response) override {
    return run(&serving::PredictionService::predict, *context, *request,
               response);
  }
  Reactor* Classify(ServerContext* context,
                    const proto::ClassificationRequest* request,
                    proto::ClassificationResponse* response) override {
    return run(&serving::PredictionService::classify, *context, *request,
               response);
  }
  Reactor* Regress(ServerContext* context,
                   const proto::RegressionRequest* request,
                   proto::RegressionResponse* response) override {
    return run(&serving::PredictionService::regress, *context, *request,
               response);
  }
  Reactor* MultiInference(ServerContext* context,
                          const proto::MultiInferenceRequest* request,
                          proto::MultiInferenceResponse* response) override {
    return run(&serving::PredictionService::multi_inference, *context, *request,
               response);
  }
  Reactor* GetModelMetadata(
      ServerContext* context, const proto::GetModelMetadataRequest* request,
      proto::GetModelMetadataResponse* response) override {
    return start(*context, [&](const auto&, const auto& done) {
      done(service_.metadata(*request, response));
    });
  }

 private:
  template <class Method, class Request, class Response>
  Reactor* run(Method method, const ServerContext& context,
               const Request& request, Response* response) {
    return start(context, [&](const serving::CallContext& given, auto done) {
      (service_.*method)(request, given, response, std::move(done));
    });
  }

  serving::PredictionService service_;
};

class ModelDoor final : public GrpcService,
                        public proto::ModelService::CallbackService {
 public:
  ModelDoor(serving::ModelServer& server, serving::TaskPool& pool)
      : service_(server), pool_(pool) {}

  Reactor* GetModelStatus(ServerContext* context,
                          const proto::GetModelStatusRequest* request,
                          proto::GetModelStatusResponse* response) override {
    return start(*context, [&](const auto&, const auto& done) {
      done(service_.model_status(*request, response));
    });
  }
  Reactor* HandleReloadConfigRequest(
      ServerContext* context, const proto::ReloadConfigRequest* request,
      proto::ReloadConfigResponse* response) override {
    // Both live until the answer.
    return start(
        *context, [&](const serving::CallContext& given, const auto& done) {
          pool_.post([this, request, response, done, end = given.end] {
            done(end->is_cancelled()
                     ? error(Code::kCancelled, "[serving] the client has gone")
                     : service_.reload_config(*request, response));
          });
        });
  }

 private:
  serving::PredictionService service_;
  serving::TaskPool& pool_;
};

}  // namespace

std::vector<std::unique_ptr<GrpcService>> make_serving_doors(
    serving::ModelServer& server, serving::TaskPool& pool) {
  std::vector<std::unique_ptr<GrpcService>> doors;
  doors.push_back(std::make_unique<PredictionDoor>(server));
  doors.push_back(std::make_unique<ModelDoor>(server, pool));
  return doors;
}

}  // namespace tagflow::net
