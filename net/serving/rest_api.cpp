#include "net/serving/rest_api.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "graph/fault.h"
#include "net/proto/serving/predict.pb.h"
#include "net/serving/json_examples.h"
#include "net/serving/json_predict.h"
#include "net/serving/json_tensor.h"
#include "net/serving/rest_path.h"

namespace tagflow::net::serving {
namespace {

constexpr char kJsonType[] = "application/json";

HttpServer::Page json_page(std::string body) {
  return {200, kJsonType, std::move(body)};
}

HttpServer::Page error_page(const Status& status) {
  std::string body = "{\"error\": ";
  write_json_string(status.message(), body);
  return {http_status_of(status.code()), kJsonType, body + "}\n"};
}

HttpServer::Page page_of(Result<std::string> body) {
  return body.ok() ? json_page(*std::move(body)) : error_page(body.status());
}

Result<std::string> json_of(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status =
      google::protobuf::util::MessageToJsonString(message, &text, options);
  if (status.ok()) return text;
  return error(Code::kInternal, "[rest] {}", status.ToString());
}

Result<std::string> status_body(const PredictionService& service,
                                const ModelSpec& model) {
  proto::GetModelStatusRequest request;
  spec_to_proto(model, request.mutable_model_spec());
  proto::GetModelStatusResponse response;
  TAGFLOW_RETURN_IF_ERROR(service.model_status(request, &response));
  return json_of(response);
}

Result<std::string> metadata_body(const ModelServer& server,
                                  const ModelSpec& model) {
  TAGFLOW_ASSIGN(const auto servable, server.models().find(model));
  proto::ModelSpec spec;
  spec_to_proto({servable->model(), servable->version(), "", ""}, &spec);
  proto::SignatureDefMap map;
  signatures_to_proto(*servable, &map);
  TAGFLOW_ASSIGN(const std::string spec_text, json_of(spec));
  TAGFLOW_ASSIGN(const std::string map_text, json_of(map));
  return fmt::format(
      "{{\n\"model_spec\": {},\n\"metadata\": {{\"signature_def\": {}}}\n}}\n",
      spec_text, map_text);
}

size_t count_elements(const Tensors& tensors) {
  size_t count = 0;
  for (const auto& [name, value] : tensors)
    count += size_t(value.num_elements());
  return count;
}

}  // namespace

unsigned http_status_of(Code code) {
  switch (code) {
    case Code::kOk:
      return 200;
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
      return 400;
    case Code::kUnauthenticated:
      return 401;
    case Code::kPermissionDenied:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
    case Code::kAborted:
      return 409;
    case Code::kResourceExhausted:
      return 429;
    case Code::kCancelled:
      return 499;
    case Code::kUnimplemented:
      return 501;
    case Code::kUnavailable:
      return 503;
    case Code::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

// A POST request on its way.
struct RestApi::Call {
  Call(RestApi& of, RestPath to, std::string text, HttpServer::Answer where)
      : api(of),
        path(std::move(to)),
        body(std::move(text)),
        answer(std::move(where)) {
    const std::lock_guard lock(api.mutex_);
    ++api.calls_;
  }
  ~Call() {
    // Under the lock: the interface may go as soon as there are none.
    const std::lock_guard lock(api.mutex_);
    if (--api.calls_ == 0) api.changed_.notify_all();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // It has read the body, which goes.
  void drop_body() { std::string().swap(body); }

  RestApi& api;
  RestPath path;
  std::string body;
  HttpServer::Answer answer;
  CallContext context;
  bool is_in_rows = false;
  proto::ClassificationResponse classes;
  proto::RegressionResponse values;
};

RestApi::~RestApi() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return calls_ == 0; });
}

bool RestApi::wait_until_idle(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return calls_ == 0; });
}

void RestApi::handle(HttpServer::Request request, HttpServer::Answer answer) {
  auto path = parse_rest_path(request.target);
  if (!path.ok()) return answer(error_page(path.status()));
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  if (is_get != path->is_get() || (!is_get && request.method != "POST")) {
    HttpServer::Page page = error_page(
        invalid_argument("[rest] the method is {}, and must be {}",
                         request.method, path->is_get() ? "GET" : "POST"));
    page.status = 405;
    page.allow = path->is_get() ? "GET, HEAD" : "POST";
    return answer(std::move(page));
  }
  if (path->verb == RestPath::Verb::kStatus)
    return answer(page_of(status_body(service_, path->model)));
  if (path->verb == RestPath::Verb::kMetadata)
    return answer(page_of(metadata_body(server_, path->model)));
  const auto call = std::make_shared<Call>(
      *this, *std::move(path), std::move(request.body), std::move(answer));
  call->context.deadline = std::chrono::steady_clock::now() + options_.time;
  call->context.end = std::make_shared<CallEnd>();
  call->answer.on_gone([end = call->context.end] { end->cancel(); });
  const auto start = [this, call] {
    const Status started = guarded("rest", [&] {
      switch (call->path.verb) {
        case RestPath::Verb::kClassify:
          return classify(call);
        case RestPath::Verb::kRegress:
          return regress(call);
        default:
          return predict(call);
      }
    });
    if (!started.ok()) call->answer(error_page(started));
  };
  if (call->body.size() <= options_.most_at_once) return start();
  pool_.post(start);
}

void RestApi::predict(const std::shared_ptr<Call>& call) {
  std::shared_ptr<const Servable> servable;
  auto body = read_json_predict(
      call->body,
      [&](const std::string& name) -> Result<const ServedSignature*> {
        TAGFLOW_ASSIGN(servable, server_.models().find(call->path.model));
        return servable->signature(name);
      });
  if (!body.ok()) return call->answer(error_page(body.status()));
  call->drop_body();
  call->is_in_rows = body->is_in_rows;
  PredictRequest request;
  request.model = {servable->model(), servable->version(), "", body->signature};
  request.servable = std::move(servable);
  request.inputs = std::move(body->inputs);
  request.deadline = call->context.deadline;
  request.end = call->context.end;
  server_.predict(
      std::move(request), [this, call](Result<PredictResponse> response) {
        if (!response.ok()) return call->answer(error_page(response.status()));
        const bool is_short =
            count_elements(response->outputs) <= options_.most_at_once;
        const auto write = [call, outputs = std::move(response->outputs)] {
          call->answer(page_of(write_json_predict(outputs, call->is_in_rows)));
        };
        if (is_short) return write();
        pool_.post(write);
      });
}

void RestApi::classify(const std::shared_ptr<Call>& call) {
  proto::ClassificationRequest request;
  std::string signature;
  const Status read =
      read_json_examples(call->body, signature, request.mutable_input());
  if (!read.ok()) return call->answer(error_page(read));
  call->drop_body();
  call->path.model.signature = signature;
  spec_to_proto(call->path.model, request.mutable_model_spec());
  service_.classify(
      request, call->context, &call->classes, [call](Status done) {
        if (!done.ok()) return call->answer(error_page(done));
        call->answer(json_page(write_json_classes(call->classes.result())));
      });
}

void RestApi::regress(const std::shared_ptr<Call>& call) {
  proto::RegressionRequest request;
  std::string signature;
  const Status read =
      read_json_examples(call->body, signature, request.mutable_input());
  if (!read.ok()) return call->answer(error_page(read));
  call->drop_body();
  call->path.model.signature = signature;
  spec_to_proto(call->path.model, request.mutable_model_spec());
  service_.regress(request, call->context, &call->values, [call](Status done) {
    if (!done.ok()) return call->answer(error_page(done));
    call->answer(json_page(write_json_values(call->values.result())));
  });
}

}  // namespace tagflow::net::serving
