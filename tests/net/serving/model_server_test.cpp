#include "net/serving/model_server.h"

#include <doctest/doctest.h>

#include "tests/net/serving/served.h"

namespace tagflow::net::serving {
namespace {

// Far more trips than any test waits for.
const Tensor kEndless = Tensor::scalar<int64_t>(int64_t{1} << 62);

ModelServer::Options with_batching(BatchOptions batching) {
  ModelServer::Options options;
  options.batching = batching;
  return options;
}

TEST_CASE("a signature is run by the names of its inputs and outputs") {
  const auto server = serve("half_plus");
  const auto response =
      predict(*server,
              request_for("half_plus", {{"x", Tensor::vector<float>({2, 4})}}));
  CAPTURE(response.status().to_string());
  REQUIRE(response.ok());
  CHECK(identical(response->outputs.at("y"), Tensor::vector<float>({4, 5})));
  CHECK(response->model.version == 2);
  CHECK(response->model.signature == "serving_default");
}

TEST_CASE("a request names a version, a signature and outputs") {
  const auto server = serve("two_inputs");
  PredictRequest request = request_for(
      "two_inputs", {{"name", Tensor::vector<std::string>({"a"})},
                     {"values", Tensor::of<float>({1, 2}, {1, 2})}});
  request.output_filter = {"loud"};
  const auto response = predict(*server, request);
  CAPTURE(response.status().to_string());
  REQUIRE(response.ok());
  CHECK(response->outputs.size() == 1);
  CHECK(identical(response->outputs.at("loud"),
                  Tensor::vector<std::string>({"a!"})));
}

TEST_CASE("a version that was looked up answers when it has made way, too") {
  const auto server = serve("half_plus");
  PredictRequest request =
      request_for("half_plus", {{"x", Tensor::vector<float>({2})}});
  request.servable = server->models().find(request.model).value();
  REQUIRE(server->models().set_configs({{"count", served("count")}}).ok());
  REQUIRE(server->models().look().ok());
  const auto response = predict(*server, request);
  CAPTURE(response.status().to_string());
  REQUIRE(response.ok());
  CHECK(response->model.version == 2);
  request.servable = nullptr;
  CHECK(predict(*server, request).status().code() == Code::kNotFound);
}

TEST_CASE("a wrong request says what is wrong, and what there is") {
  const auto server = serve("two_inputs");
  const Tensors right{{"name", Tensor::vector<std::string>({"a"})},
                      {"values", Tensor::of<float>({1, 2}, {1, 2})}};
  const auto status_of = [&](const auto& change) {
    PredictRequest request = request_for("two_inputs", right);
    change(request);
    return predict(*server, std::move(request)).status();
  };
  CHECK(status_of([](auto&) {}).ok());
  const Status no_model = status_of([](auto& r) { r.model.name = "x"; });
  CHECK(no_model.code() == Code::kNotFound);
  const Status no_signature =
      status_of([](auto& r) { r.model.signature = "x"; });
  CHECK(no_signature.code() == Code::kFailedPrecondition);
  CHECK(says(no_signature, "\"bytes\", \"classify\", \"serving_default\""));
  const Status no_input =
      status_of([](auto& r) { r.inputs["x"] = Tensor::scalar<float>(1); });
  CHECK(says(no_input, "has no input \"x\"; it has \"name\", \"values\""));
  const Status missing = status_of([](auto& r) { r.inputs.erase("values"); });
  CHECK(says(missing, "input \"values\""));
  CHECK(says(missing, "float[?,2], has no value"));
  const Status type = status_of([](auto& r) {
    r.inputs["values"] = Tensor::of<double>({1, 2}, {1, 2});
  });
  CHECK(says(type, "is double[1,2], but must be float[?,2]"));
  const Status shape = status_of([](auto& r) {
    r.inputs["values"] = Tensor::vector<float>({1, 2});
  });
  CHECK(says(shape, "is float[2], but must be float[?,2]"));
  const Status output = status_of([](auto& r) { r.output_filter = {"x"}; });
  CHECK(says(output, "has no output \"x\"; it has \"loud\", \"scaled\""));
  CHECK(says(status_of([](auto& r) {
               r.output_filter = {"loud", "loud"};
             }),
             "more than once"));
}

TEST_CASE("a run ends by its deadline, or when its client goes") {
  const auto server = serve("count");
  PredictRequest late = request_for("count", {{"n", kEndless}});
  late.deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  CHECK(predict(*server, late).status().code() == Code::kDeadlineExceeded);
  late.deadline = std::chrono::steady_clock::now();
  CHECK(predict(*server, late).status().code() == Code::kDeadlineExceeded);
  PredictRequest left = request_for("count", {{"n", kEndless}});
  left.end = std::make_shared<CallEnd>();
  const auto answer = start(*server, left);
  left.end->cancel();
  CHECK(answer->take().status().code() == Code::kCancelled);
  CHECK(predict(*server, left).status().code() == Code::kCancelled);
}

TEST_CASE("runs beyond the queue are refused at once") {
  ModelServer::Options options;
  options.servable.session.max_active_runs = 1;
  options.servable.session.max_queued_runs = 1;
  const auto server = serve({{"count", served("count")}}, std::move(options));
  std::vector<std::shared_ptr<CallEnd>> ends;
  std::vector<std::shared_ptr<Awaited<PredictResponse>>> answers;
  for (int i = 0; i < 3; ++i) {
    PredictRequest request = request_for("count", {{"n", kEndless}});
    ends.push_back(request.end = std::make_shared<CallEnd>());
    answers.push_back(start(*server, std::move(request)));
  }
  CHECK(answers[2]->take().status().code() == Code::kResourceExhausted);
  CHECK_FALSE(answers[0]->is_there());
  for (const auto& end : ends) end->cancel();
  CHECK(answers[0]->take().status().code() == Code::kCancelled);
  CHECK(answers[1]->take().status().code() == Code::kCancelled);
}

TEST_CASE("batched requests have the results that they have alone") {
  const auto server =
      serve({{"two_inputs", served("two_inputs")}},
            with_batching({.max_batch_size = 4,
                           .batch_timeout = std::chrono::milliseconds(20)}));
  std::vector<std::shared_ptr<Awaited<PredictResponse>>> answers;
  for (int i = 0; i < 8; ++i)
    answers.push_back(start(
        *server,
        request_for("two_inputs",
                    {{"name", Tensor::vector<std::string>({std::to_string(i)})},
                     {"values", Tensor::of<float>({1, 2}, {float(i), 1})}})));
  for (int i = 0; i < 8; ++i) {
    const auto response = answers[size_t(i)]->take();
    CAPTURE(response.status().to_string());
    REQUIRE(response.ok());
    CHECK(identical(response->outputs.at("loud"),
                    Tensor::vector<std::string>({std::to_string(i) + "!"})));
    CHECK(identical(response->outputs.at("scaled"),
                    Tensor::of<float>({1, 2}, {float(10 * i), 10})));
  }
  MetricText text;
  server->write_figures(text);
  CHECK(text.text().find("tagflow_serving_batches_total 2\n") !=
        std::string::npos);
}

TEST_CASE("a bad request is told before the batch, and fails no neighbour") {
  const auto server =
      serve({{"half_plus", served("half_plus")}},
            with_batching(
                {.max_batch_size = 2, .batch_timeout = std::chrono::hours(1)}));
  const auto good = start(
      *server, request_for("half_plus", {{"x", Tensor::vector<float>({2})}}));
  CHECK_FALSE(
      predict(*server,
              request_for("half_plus", {{"x", Tensor::vector<double>({2})}}))
          .ok());
  const auto other = start(
      *server, request_for("half_plus", {{"x", Tensor::vector<float>({4})}}));
  CHECK(identical(good->take().value().outputs.at("y"),
                  Tensor::vector<float>({4})));
  CHECK(identical(other->take().value().outputs.at("y"),
                  Tensor::vector<float>({5})));
}

TEST_CASE("a signature without rows runs alone, with batching, too") {
  const auto server = serve({{"count", served("count")}}, with_batching({}));
  const auto response = predict(
      *server, request_for("count", {{"n", Tensor::scalar<int64_t>(9)}}));
  REQUIRE(response.ok());
  CHECK(response->outputs.at("i").item<int64_t>().value() == 9);
}

TEST_CASE("figures say how requests ended") {
  const auto server = serve("half_plus");
  CHECK(predict(*server,
                request_for("half_plus", {{"x", Tensor::vector<float>({1})}}))
            .ok());
  CHECK_FALSE(predict(*server, request_for("half_plus", {})).ok());
  MetricText text;
  server->write_figures(text);
  for (const char* line :
       {"tagflow_serving_requests_total{model=\"half_plus\",code=\"OK\"} 1\n",
        "tagflow_serving_requests_total{model=\"half_plus\","
        "code=\"InvalidArgument\"} 1\n",
        "tagflow_serving_latency_seconds_count{model=\"half_plus\"} 2\n",
        "tagflow_serving_latency_seconds_bucket{model=\"half_plus\","
        "le=\"+Inf\"} 2\n",
        "tagflow_serving_model_state{model=\"half_plus\",version=\"2\"} "
        "30\n"}) {
    CAPTURE(line);
    CAPTURE(text.text());
    CHECK(text.text().find(line) != std::string::npos);
  }
}

}  // namespace
}  // namespace tagflow::net::serving
