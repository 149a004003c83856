// The services of TensorFlow Serving over its messages, without a transport.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "net/serving/model_server.h"

namespace tensorflow::serving {
class ClassificationRequest;
class ClassificationResponse;
class GetModelMetadataRequest;
class GetModelMetadataResponse;
class GetModelStatusRequest;
class GetModelStatusResponse;
class InferenceResult;
class InferenceTask;
class Input;
class ModelSpec;
class MultiInferenceRequest;
class MultiInferenceResponse;
class PredictRequest;
class PredictResponse;
class RegressionRequest;
class RegressionResponse;
class ReloadConfigRequest;
class ReloadConfigResponse;
class SignatureDefMap;
}  // namespace tensorflow::serving

namespace tagflow::net::serving {

namespace proto = tensorflow::serving;

// How long the client waits, and how it says that it does not any more.
struct CallContext {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::shared_ptr<CallEnd> end;  // may be null
};

// Each method fills `response`, and then calls `done` once, on this thread or
// another one; errors are those of ModelServer::predict(). The response lives
// until then, the request until the method returns. `done` must not block.
// Thread-safe.
class PredictionService {
 public:
  using Done = std::function<void(Status)>;

  // The server outlives it.
  explicit PredictionService(ModelServer& server) : server_(server) {}

  void predict(const proto::PredictRequest& request, const CallContext& context,
               proto::PredictResponse* response, Done done);
  void classify(const proto::ClassificationRequest& request,
                const CallContext& context,
                proto::ClassificationResponse* response, Done done);
  void regress(const proto::RegressionRequest& request,
               const CallContext& context, proto::RegressionResponse* response,
               Done done);
  // Each task by itself; the first error is that of the request, and ends the
  // others.
  void multi_inference(const proto::MultiInferenceRequest& request,
                       const CallContext& context,
                       proto::MultiInferenceResponse* response, Done done);
  // These answer at once.
  Status metadata(const proto::GetModelMetadataRequest& request,
                  proto::GetModelMetadataResponse* response) const;
  Status model_status(const proto::GetModelStatusRequest& request,
                      proto::GetModelStatusResponse* response) const;
  // The models from now on. Blocks until the new ones are loaded, or one has
  // failed, which the response says. PermissionDenied if the server does not
  // allow it.
  Status reload_config(const proto::ReloadConfigRequest& request,
                       proto::ReloadConfigResponse* response);

 private:
  void run_task(const proto::InferenceTask& task, const proto::Input& input,
                const CallContext& context, proto::InferenceResult* result,
                Done done);

  ModelServer& server_;
};

ModelSpec spec_from_proto(const proto::ModelSpec& spec);
void spec_to_proto(const ModelSpec& spec, proto::ModelSpec* to);
// The signatures of a version, as its file describes them.
void signatures_to_proto(const Servable& servable, proto::SignatureDefMap* map);

}  // namespace tagflow::net::serving
