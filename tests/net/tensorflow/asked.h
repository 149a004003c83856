// A client of a session service, without sockets: each call waits for its
// answer.
#pragma once

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/proto/master.pb.h"
#include "net/tensorflow/session_service.h"

namespace tagflow::net::test {

template <class Message>
Message from_text(const std::string& text) {
  Message message;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

// A float scalar.
inline tensorflow::TensorProto scalar(float value) {
  tensorflow::TensorProto proto;
  proto.set_dtype(tensorflow::DT_FLOAT);
  proto.mutable_tensor_shape();
  proto.add_float_val(value);
  return proto;
}

inline float to_float(const tensorflow::TensorProto& proto) {
  if (proto.float_val_size() > 0) return proto.float_val(0);
  float value = 0;
  REQUIRE(proto.tensor_content().size() == sizeof(value));
  std::copy_n(proto.tensor_content().data(), sizeof(value),
              reinterpret_cast<char*>(&value));
  return value;
}

// y = x + 1, v = a variable of the name "v" with its initializer and a reader.
inline const char kGraph[] = R"(
  node { name: "x" op: "Placeholder"
         attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "one" op: "Const"
         attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "value" value { tensor {
           dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
  node { name: "y" op: "AddV2" input: "x" input: "one"
         attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "z" op: "Mul" input: "y" input: "x2"
         attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "x2" op: "Placeholder"
         attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "v" op: "VarHandleOp"
         attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "shape" value { shape {} } }
         attr { key: "shared_name" value { s: "v" } } }
  node { name: "init" op: "AssignVariableOp" input: "v" input: "x"
         attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "read" op: "ReadVariableOp" input: "v"
         attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "queue" op: "FIFOQueueV2"
         attr { key: "component_types" value { list { type: DT_FLOAT } } } }
  node { name: "get" op: "QueueDequeueV2" input: "queue"
         attr { key: "component_types" value { list { type: DT_FLOAT } } } }
  node { name: "put" op: "QueueEnqueueV2" input: "queue" input: "x"
         attr { key: "Tcomponents" value { list { type: DT_FLOAT } } } }
)";

class Asked {
 public:
  explicit Asked(SessionService::Options options = {}) {
    auto made = SessionService::create(std::move(options));
    REQUIRE(made.status().to_string() == "OK");
    service = *std::move(made);
  }

  template <class Request, class Response>
  using Method = void (SessionService::*)(const Request&, Response&,
                                          const actors::CancelToken&,
                                          SessionService::Done);

  // The answer of a call, some time.
  template <class Request, class Response>
  std::future<Status> begin(Method<Request, Response> method,
                            const Request& request, Response& response,
                            const actors::CancelToken& token = {}) {
    auto answered = std::make_shared<std::promise<Status>>();
    auto answer = answered->get_future();
    (service.get()->*method)(
        request, response, token,
        [answered](Status status) { answered->set_value(std::move(status)); });
    return answer;
  }
  template <class Request, class Response>
  Status ask(Method<Request, Response> method, const Request& request,
             Response& response, const actors::CancelToken& token = {}) {
    return begin(method, request, response, token).get();
  }

  // The handle of a new session.
  std::string open(const std::string& graph = kGraph,
                   const std::string& config = "") {
    tensorflow::CreateSessionRequest request;
    *request.mutable_graph_def() = from_text<tensorflow::GraphDef>(graph);
    *request.mutable_config() = from_text<tensorflow::ConfigProto>(config);
    tensorflow::CreateSessionResponse response;
    REQUIRE(
        ask(&SessionService::create_session, request, response).to_string() ==
        "OK");
    REQUIRE(!response.session_handle().empty());
    return response.session_handle();
  }
  Status close(const std::string& handle) {
    tensorflow::CloseSessionRequest request;
    request.set_session_handle(handle);
    tensorflow::CloseSessionResponse response;
    return ask(&SessionService::close_session, request, response);
  }
  Status extend(const std::string& handle, const std::string& graph,
                int64_t version, int64_t* new_version = nullptr) {
    tensorflow::ExtendSessionRequest request;
    request.set_session_handle(handle);
    *request.mutable_graph_def() = from_text<tensorflow::GraphDef>(graph);
    request.set_current_graph_version(version);
    tensorflow::ExtendSessionResponse response;
    Status status = ask(&SessionService::extend_session, request, response);
    if (new_version != nullptr) *new_version = response.new_graph_version();
    return status;
  }

  using Values = std::vector<std::pair<std::string, float>>;
  static tensorflow::RunStepRequest step(
      const std::string& handle, const Values& feeds,
      const std::vector<std::string>& fetches,
      const std::vector<std::string>& targets = {}) {
    tensorflow::RunStepRequest request;
    request.set_session_handle(handle);
    for (const auto& [name, value] : feeds) {
      request.add_feed()->set_name(name);
      *request.mutable_feed(request.feed_size() - 1)->mutable_tensor() =
          scalar(value);
    }
    for (const std::string& name : fetches) request.add_fetch(name);
    for (const std::string& name : targets) request.add_target(name);
    return request;
  }
  Status run(const tensorflow::RunStepRequest& request,
             tensorflow::RunStepResponse& response,
             const actors::CancelToken& token = {}) {
    return ask(&SessionService::run_step, request, response, token);
  }
  // The first fetch of a run that succeeds.
  float value(const tensorflow::RunStepRequest& request) {
    tensorflow::RunStepResponse response;
    REQUIRE(run(request, response).to_string() == "OK");
    REQUIRE(response.tensor_size() > 0);
    return to_float(response.tensor(0).tensor());
  }
  Status error(const tensorflow::RunStepRequest& request) {
    tensorflow::RunStepResponse response;
    return run(request, response);
  }

  std::unique_ptr<SessionService> service;
};

}  // namespace tagflow::net::test
