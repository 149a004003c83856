#include "net/serving/rest_api.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/net/link/loopback.h"
#include "tests/net/serving/served.h"

namespace tagflow::net::serving {
namespace {

using nlohmann::json;

struct Reply {
  int status = 0;
  std::string body;
  json parsed() const { return json::parse(body); }
  std::string error() const { return parsed().at("error"); }
};

// A server of the REST interface, and a client on one connection.
struct Rest {
  explicit Rest(std::unique_ptr<ModelServer> models)
      : server(std::move(models)),
        pool(TaskPool::create(2).value()),
        api(*server, *pool, {.most_at_once = 1000}),
        http(
            HttpServer::start(
                {.time = kNever}, {},
                [this](HttpServer::Request request, HttpServer::Answer answer) {
                  api.handle(std::move(request), std::move(answer));
                })
                .value()),
        client(dial(http->port())) {}

  void send(const std::string& method, const std::string& path,
            const std::string& body = "") const {
    write_all(client,
              fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nContent-Length: "
                          "{}\r\n\r\n{}",
                          method, path, body.size(), body));
  }
  Reply receive() const {
    std::string head;
    while (!head.ends_with("\r\n\r\n")) {
      const std::string byte = read_exactly(client, 1);
      REQUIRE(!byte.empty());
      head += byte;
    }
    const std::string field = "Content-Length: ";
    const size_t length =
        std::stoul(head.substr(head.find(field) + field.size()));
    return {std::stoi(head.substr(9)), read_exactly(client, length)};
  }
  Reply post(const std::string& path, const std::string& body) const {
    send("POST", path, body);
    return receive();
  }
  Reply get(const std::string& path) const {
    send("GET", path);
    return receive();
  }

  std::unique_ptr<ModelServer> server;
  std::unique_ptr<TaskPool> pool;
  RestApi api;
  std::unique_ptr<HttpServer> http;
  Socket client;
};

TEST_CASE("predictions are asked for by rows or by columns") {
  const Rest rest(serve("half_plus"));
  const Reply rows =
      rest.post("/v1/models/half_plus:predict", R"({"instances": [2, 4]})");
  CHECK(rows.status == 200);
  CHECK(rows.parsed() == json{{"predictions", {4.0, 5.0}}});
  const Reply whole = rest.post("/v1/models/half_plus/versions/2:predict",
                                R"({"inputs": {"x": [2]}})");
  CHECK(whole.parsed() == json{{"outputs", {4.0}}});
}

TEST_CASE("long bodies and answers are read and written on the pool") {
  const Rest rest(serve("half_plus"));
  std::string body = "{\"instances\": [0";
  for (int i = 1; i < 3000; ++i) body += ", " + std::to_string(i);
  const Reply reply = rest.post("/v1/models/half_plus:predict", body + "]}");
  CHECK(reply.status == 200);
  CHECK(reply.parsed()["predictions"].size() == 3000);
  CHECK(reply.parsed()["predictions"][2999] == 1502.5);
  const Reply wrong = rest.post("/v1/models/half_plus:predict", body + "}");
  CHECK(wrong.status == 400);
}

TEST_CASE("several inputs and outputs have names") {
  const Rest rest(serve("two_inputs"));
  const Reply reply =
      rest.post("/v1/models/two_inputs:predict",
                R"({"instances": [{"name": "a", "values": [1, 2]},
                        {"name": {"b64": "Yg=="}, "values": [3, 4]}]})");
  CHECK(reply.parsed() == json::parse(R"({"predictions": [
            {"loud": "a!", "scaled": [10.0, 20.0]},
            {"loud": "b!", "scaled": [30.0, 40.0]}]})"));
  const Reply bytes =
      rest.post("/v1/models/two_inputs:predict",
                R"({"signature_name": "bytes", "instances": ["a"]})");
  CHECK(bytes.parsed() == json::parse(R"({"predictions": [{"b64": "YSE="}]})"));
}

TEST_CASE("examples become the inputs of a signature") {
  const Rest rest(serve({{"half_plus", served("half_plus")},
                         {"two_inputs", served("two_inputs")}}));
  const Reply values = rest.post(
      "/v1/models/half_plus:regress",
      R"({"signature_name": "regress_x", "examples": [{"x": 2}, {"x": [3.5]}]})");
  CHECK(values.parsed() == json{{"results", {4.0, 4.75}}});
  const Reply classes =
      rest.post("/v1/models/two_inputs:classify",
                R"({"signature_name": "classify", "context": {"name": "a"},
                    "examples": [{"values": [1, 2.5]}]})");
  CHECK(classes.parsed() ==
        json::parse(R"({"results": [[["", 10.0], ["", 25.0]]]})"));
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"signature_name": "regress_x", "examples": []})", "no examples"},
      {R"({"signature_name": "regress_x", "examples": [{"y": 1}]})",
       "has no feature \"x\""},
      {R"({"signature_name": "regress_x", "examples": [{"x": [1, 2]}]})",
       "has 2 values"},
      {R"({"signature_name": "regress_x", "examples": [{"x": "a"}]})",
       "are strings"},
      {R"({"signature_name": "regress_x", "examples": [{"x": [1, "a"]}]})",
       "numbers and strings"}};
  for (const auto& [body, why] : wrong) {
    CAPTURE(body);
    const Reply reply = rest.post("/v1/models/half_plus:regress", body);
    CHECK(reply.status == 400);
    CAPTURE(reply.body);
    CHECK(reply.error().find(why) != std::string::npos);
  }
}

TEST_CASE("the status of a model is TensorFlow Serving's") {
  const Rest rest(serve("half_plus"));
  const json ready = json::parse(R"({"model_version_status": [
      {"version": "2", "state": "AVAILABLE",
       "status": {"error_code": "OK", "error_message": ""}}]})");
  CHECK(rest.get("/v1/models/half_plus").parsed() == ready);
  CHECK(rest.get("/v1/models/half_plus/versions/2").parsed() == ready);
  CHECK(rest.get("/v1/models/half_plus/versions/7").status == 404);
}

TEST_CASE("the metadata of a model have its signatures") {
  const Rest rest(serve("half_plus"));
  const Reply reply = rest.get("/v1/models/half_plus/metadata");
  CHECK(reply.status == 200);
  const json metadata = reply.parsed();
  CHECK(metadata["model_spec"] ==
        json::parse(R"({"name": "half_plus", "signature_name": "",
                        "version": "2"})"));
  const json& signature =
      metadata["metadata"]["signature_def"]["signature_def"]["serving_default"];
  CHECK(signature["method_name"] == "tensorflow/serving/predict");
  CHECK(signature["inputs"]["x"] ==
        json::parse(R"({"name": "x:0", "dtype": "DT_FLOAT", "tensor_shape":
            {"dim": [{"size": "-1", "name": ""}], "unknown_rank": false}})"));
}

TEST_CASE("errors have the code of HTTP that their kind has") {
  const Rest rest(serve("half_plus"));
  CHECK(rest.post("/v1/models/x:predict", R"({"instances": [1]})").status ==
        404);
  CHECK(rest.post("/v1/models/half_plus:predict", "{").status == 400);
  CHECK(rest.post("/v1/models/half_plus:predict", "").status == 400);
  CHECK(rest.post("/v1/models/half_plus:predict", R"({"instances": [[1]]})")
            .status == 400);
  CHECK(rest.get("/v1/models/half_plus:predict").status == 405);
  CHECK(rest.post("/v1/models/half_plus", "").status == 405);
  CHECK(rest.get("/").status == 404);
  CHECK(http_status_of(Code::kResourceExhausted) == 429);
  CHECK(http_status_of(Code::kDeadlineExceeded) == 504);
}

TEST_CASE("a run ends when its client goes") {
  Rest rest(serve("count"));
  rest.send("POST", "/v1/models/count:predict",
            R"({"inputs": 4611686018427387904})");
  while (rest.http->num_running() == 0) std::this_thread::yield();
  rest.client = dial(rest.http->port());
  CHECK(rest.api.wait_until_idle(kNever));
  CHECK(rest.post("/v1/models/count:predict", R"({"inputs": 5})").parsed() ==
        json{{"outputs", 5}});
}

TEST_CASE("a server that ends cancels what runs") {
  Rest rest(serve("count"));
  rest.send("POST", "/v1/models/count:predict",
            R"({"inputs": 4611686018427387904})");
  while (rest.http->num_running() == 0) std::this_thread::yield();
  CHECK(rest.http->drain(std::chrono::milliseconds(1)).code() ==
        Code::kDeadlineExceeded);
  rest.http.reset();
  CHECK(rest.api.wait_until_idle(kNever));
}

}  // namespace
}  // namespace tagflow::net::serving
