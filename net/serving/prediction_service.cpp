#include "net/serving/prediction_service.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "graph/fault.h"
#include "graph/file/tensor_proto.h"
#include "net/proto/serving/predict.pb.h"
#include "net/serving/examples.h"

namespace tagflow::net::serving {
namespace {

constexpr char kMetadataField[] = "signature_def";
// Of a request: the memory of its tensors.
constexpr int64_t kMostTensorBytes = int64_t{1} << 31;

// Of a MultiInference.
constexpr int kMostTasks = 1000;
constexpr char kClassify[] = "tensorflow/serving/classify";
constexpr char kRegress[] = "tensorflow/serving/regress";

// The tasks of a MultiInference. The first error is that of the request, and
// ends the other tasks. Thread-safe.
class JoinedTasks {
 public:
  JoinedTasks(int tasks, PredictionService::Done done)
      : left_(tasks), done_(std::move(done)) {
    for (int i = 0; i < tasks; ++i)
      ends_.push_back(std::make_shared<CallEnd>());
  }

  const std::shared_ptr<CallEnd>& end(int task) const {
    return ends_[size_t(task)];
  }
  void cancel() {
    for (const auto& end : ends_) end->cancel();
  }
  // A task has ended.
  void on_end(Status status) {
    bool is_first_error = false, is_last = false;
    {
      const std::lock_guard lock(mutex_);
      is_first_error = first_.ok() && !status.ok();
      if (is_first_error) first_ = std::move(status);
      is_last = --left_ == 0;
    }
    if (is_last) return done_(first_);
    if (is_first_error) cancel();
  }

 private:
  std::vector<std::shared_ptr<CallEnd>> ends_;  // of the tasks
  std::mutex mutex_;                            // guards the below
  int left_;
  Status first_;
  const PredictionService::Done done_;
};

PredictRequest base_request(const proto::ModelSpec& spec,
                            const CallContext& context) {
  PredictRequest request;
  request.model = spec_from_proto(spec);
  request.deadline = context.deadline;
  request.end = context.end;
  return request;
}

// Runs a signature on examples; `use` makes the response of its outputs.
template <class Use>
void run_examples(ModelServer& server, const proto::ModelSpec& spec,
                  const proto::Input& input, const CallContext& context,
                  proto::ModelSpec* answered, Use use,
                  PredictionService::Done done) {
  PredictRequest request = base_request(spec, context);
  int64_t examples = 0;
  const Status begun = guarded("serving", [&]() -> Status {
    TAGFLOW_ASSIGN(const auto servable, server.models().find(request.model));
    request.servable = servable;
    TAGFLOW_ASSIGN(const ServedSignature* signature,
                   servable->signature(request.model.signature));
    TAGFLOW_ASSIGN(examples, count_examples(input));
    TAGFLOW_ASSIGN(request.inputs, inputs_of_examples(*signature, input));
    return {};
  });
  if (!begun.ok()) return done(begun);
  server.predict(std::move(request),
                 [answered, examples, use = std::move(use),
                  done = std::move(done)](Result<PredictResponse> response) {
                   done(guarded("serving", [&]() -> Status {
                     TAGFLOW_RETURN_IF_ERROR(response.status());
                     spec_to_proto(response->model, answered);
                     return use(response->outputs, examples);
                   }));
                 });
}

void status_to_proto(const Status& status, proto::StatusProto* to) {
  // Deadlock is a code of ours.
  const bool is_known = status.code() <= Code::kUnauthenticated;
  to->set_error_code(
      tensorflow::error::Code(is_known ? status.code() : Code::kInternal));
  to->set_error_message(std::string(status.message()));
}

void info_to_proto(const TensorSpec& spec, tensorflow::TensorInfo* to) {
  to->set_name(spec.tensor);
  to->set_dtype(tensorflow::DataType(spec.dtype));
  graph::shape_to_proto(spec.shape, to->mutable_tensor_shape());
}

}  // namespace

ModelSpec spec_from_proto(const proto::ModelSpec& spec) {
  ModelSpec model;
  model.name = spec.name();
  model.signature = spec.signature_name();
  if (spec.has_version()) model.version = spec.version().value();
  model.label = spec.version_label();
  return model;
}

void spec_to_proto(const ModelSpec& spec, proto::ModelSpec* to) {
  to->set_name(spec.name);
  if (spec.version) to->mutable_version()->set_value(*spec.version);
  if (!spec.label.empty()) to->set_version_label(spec.label);
  to->set_signature_name(spec.signature);
}

void signatures_to_proto(const Servable& servable,
                         proto::SignatureDefMap* map) {
  for (const auto& [name, signature] : servable.signatures()) {
    auto& to = (*map->mutable_signature_def())[name];
    for (const auto& [input, spec] : signature.inputs)
      info_to_proto(spec, &(*to.mutable_inputs())[input]);
    for (const auto& [output, spec] : signature.outputs)
      info_to_proto(spec, &(*to.mutable_outputs())[output]);
    to.set_method_name(signature.method);
  }
}

void PredictionService::predict(const proto::PredictRequest& request,
                                const CallContext& context,
                                proto::PredictResponse* response, Done done) {
  PredictRequest wanted = base_request(request.model_spec(), context);
  const Status begun = guarded("serving", [&]() -> Status {
    int64_t budget = kMostTensorBytes, repeated = kMostRepeatedBytes;
    for (const auto& [name, value] : request.inputs()) {
      auto tensor = graph::tensor_from_proto(value, &budget, &repeated);
      if (!tensor.ok())
        return std::move(tensor).status().with_prefix(
            fmt::format("[serving] input \"{}\": ", name));
      wanted.inputs.emplace(name, *std::move(tensor));
    }
    wanted.output_filter.assign(request.output_filter().begin(),
                                request.output_filter().end());
    return {};
  });
  if (!begun.ok()) return done(begun);
  server_.predict(std::move(wanted), [response, done = std::move(done)](
                                         Result<PredictResponse> answer) {
    done(guarded("serving", [&]() -> Status {
      TAGFLOW_RETURN_IF_ERROR(answer.status());
      spec_to_proto(answer->model, response->mutable_model_spec());
      for (const auto& [name, value] : answer->outputs)
        TAGFLOW_RETURN_IF_ERROR(graph::tensor_to_proto(
            value, &(*response->mutable_outputs())[name]));
      return {};
    }));
  });
}

void PredictionService::classify(const proto::ClassificationRequest& request,
                                 const CallContext& context,
                                 proto::ClassificationResponse* response,
                                 Done done) {
  run_examples(
      server_, request.model_spec(), request.input(), context,
      response->mutable_model_spec(),
      [response](const Tensors& outputs, int64_t examples) {
        return classes_of(outputs, examples, response->mutable_result());
      },
      std::move(done));
}

void PredictionService::regress(const proto::RegressionRequest& request,
                                const CallContext& context,
                                proto::RegressionResponse* response,
                                Done done) {
  run_examples(
      server_, request.model_spec(), request.input(), context,
      response->mutable_model_spec(),
      [response](const Tensors& outputs, int64_t examples) {
        return values_of(outputs, examples, response->mutable_result());
      },
      std::move(done));
}

void PredictionService::run_task(const proto::InferenceTask& task,
                                 const proto::Input& input,
                                 const CallContext& context,
                                 proto::InferenceResult* result, Done done) {
  if (task.method_name() == kClassify)
    return run_examples(
        server_, task.model_spec(), input, context,
        result->mutable_model_spec(),
        [result](const Tensors& outputs, int64_t examples) {
          return classes_of(outputs, examples,
                            result->mutable_classification_result());
        },
        std::move(done));
  run_examples(
      server_, task.model_spec(), input, context, result->mutable_model_spec(),
      [result](const Tensors& outputs, int64_t examples) {
        return values_of(outputs, examples,
                         result->mutable_regression_result());
      },
      std::move(done));
}

void PredictionService::multi_inference(
    const proto::MultiInferenceRequest& request, const CallContext& context,
    proto::MultiInferenceResponse* response, Done done) {
  if (request.tasks().empty())
    return done(invalid_argument("[serving] the request has no tasks"));
  if (request.tasks_size() > kMostTasks)
    return done(
        invalid_argument("[serving] the request has {} tasks, and may have {}",
                         request.tasks_size(), kMostTasks));
  for (const auto& task : request.tasks())
    if (task.method_name() != kClassify && task.method_name() != kRegress)
      return done(error(Code::kUnimplemented,
                        "[serving] a task has the method \"{}\"; there are "
                        "\"{}\" and \"{}\"",
                        task.method_name(), kClassify, kRegress));
  const int tasks = request.tasks_size();
  const auto joined = std::make_shared<JoinedTasks>(tasks, std::move(done));
  const bool is_there = context.end == nullptr ||
                        context.end->on_cancel([weak = std::weak_ptr(joined)] {
                          if (const auto found = weak.lock()) found->cancel();
                        });
  if (!is_there) joined->cancel();
  for (int i = 0; i < tasks; ++i) response->add_results();
  for (int i = 0; i < tasks; ++i)
    run_task(request.tasks(i), request.input(),
             {context.deadline, joined->end(i)}, response->mutable_results(i),
             [joined](Status status) { joined->on_end(std::move(status)); });
}

Status PredictionService::metadata(
    const proto::GetModelMetadataRequest& request,
    proto::GetModelMetadataResponse* response) const {
  return guarded("serving", [&]() -> Status {
    if (request.metadata_field().empty())
      return invalid_argument("[serving] the request names no metadata_field");
    for (const std::string& field : request.metadata_field())
      if (field != kMetadataField)
        return invalid_argument(
            "[serving] there is no metadata \"{}\"; there is \"{}\"", field,
            kMetadataField);
    TAGFLOW_ASSIGN(
        const auto servable,
        server_.models().find(spec_from_proto(request.model_spec())));
    response->mutable_model_spec()->set_name(servable->model());
    response->mutable_model_spec()->mutable_version()->set_value(
        servable->version());
    proto::SignatureDefMap map;
    signatures_to_proto(*servable, &map);
    (*response->mutable_metadata())[kMetadataField].PackFrom(map);
    return {};
  });
}

Status PredictionService::model_status(
    const proto::GetModelStatusRequest& request,
    proto::GetModelStatusResponse* response) const {
  return guarded("serving", [&]() -> Status {
    TAGFLOW_ASSIGN(
        const auto statuses,
        server_.models().statuses(spec_from_proto(request.model_spec())));
    for (const VersionStatus& version : statuses) {
      auto* const to = response->add_model_version_status();
      to->set_version(version.version);
      to->set_state(proto::ModelVersionStatus::State(version.state));
      status_to_proto(version.status, to->mutable_status());
    }
    return {};
  });
}

Status PredictionService::reload_config(
    const proto::ReloadConfigRequest& request,
    proto::ReloadConfigResponse* response) {
  return guarded("serving", [&]() -> Status {
    if (!server_.allows_reloads())
      return error(Code::kPermissionDenied,
                   "[serving] clients of this server must not replace its "
                   "models (--refuse-reloads)");
    if (!request.config().has_model_config_list())
      return invalid_argument(
          "[serving] the configuration of models has no model_config_list");
    TAGFLOW_ASSIGN(
        const auto configs,
        model_configs_from_proto(request.config().model_config_list()));
    TAGFLOW_RETURN_IF_ERROR(server_.models().set_configs(configs));
    Status loaded = server_.models().look();
    status_to_proto(loaded, response->mutable_status());
    return loaded;
  });
}

}  // namespace tagflow::net::serving
