// Fuzzes what clients of a model server send by gRPC: messages. The tensors of
// examples have as many rows as there are examples.
#include <google/protobuf/stubs/logging.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "net/proto/serving/predict.pb.h"
#include "net/serving/examples.h"
#include "net/serving/prediction_service.h"

namespace {

using namespace tagflow;
using namespace tagflow::net::serving;

// Of a server without models: each request is read, and then refused.
PredictionService& service() {
  static const std::unique_ptr<ModelServer> server = [] {
    google::protobuf::SetLogHandler(nullptr);
    return ModelServer::create({.poll_interval = {}}).value();
  }();
  static PredictionService the_service(*server);
  return the_service;
}

template <class Request, class Response, class Method>
void ask(const std::string& bytes, Method method) {
  Request request;
  if (!request.ParseFromString(bytes)) return;
  Response response;
  int answers = 0;
  (service().*method)(request, {}, &response, [&](const Status& status) {
    if (status.ok()) std::abort();
    ++answers;
  });
  if (answers != 1) std::abort();
}

void check_examples(const std::string& bytes, DataType dtype,
                    PartialShape shape) {
  tensorflow::serving::Input input;
  if (!input.ParseFromString(bytes)) return;
  ServedSignature signature;
  signature.inputs["x"] = {"x:0", dtype, std::move(shape), false};
  const auto inputs = inputs_of_examples(signature, input);
  if (!inputs.ok()) return;
  const Tensor& rows = inputs->at("x");
  if (rows.rank() == 0 || rows.dim(0) != count_examples(input).value())
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  ask<proto::PredictRequest, proto::PredictResponse>(
      bytes, &PredictionService::predict);
  ask<proto::MultiInferenceRequest, proto::MultiInferenceResponse>(
      bytes, &PredictionService::multi_inference);
  check_examples(bytes, DataType::kString, PartialShape({-1}));
  for (const DataType dtype :
       {DataType::kString, DataType::kFloat, DataType::kInt32})
    for (const PartialShape& shape :
         {PartialShape(), PartialShape({-1, 2}), PartialShape({-1, -1, -1})})
      check_examples(bytes, dtype, shape);
  return 0;
}
