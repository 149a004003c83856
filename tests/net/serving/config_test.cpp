// The files of configuration, and the paths of the REST interface.
#include <doctest/doctest.h>

#include <random>

#include "net/serving/batch_options.h"
#include "net/serving/model_config.h"
#include "net/serving/rest_path.h"
#include "tests/net/serving/served.h"

namespace tagflow::net::serving {
namespace {

TEST_CASE("a configuration of models is TensorFlow Serving's") {
  const auto configs = parse_model_configs(R"(
    model_config_list {
      config { name: "a" base_path: "/m/a" model_platform: "tensorflow" }
      config {
        name: "b" base_path: "/m/b"
        model_version_policy { specific { versions: 2 versions: 5 } }
        version_labels { key: "stable" value: 2 }
        logging_config { sampling_config { sampling_rate: 0.5 } }
      }
      config: {
        name: "c", base_path: "/m/c",
        model_version_policy: { latest: { num_versions: 2 } }
      }
      config { name: "d" base_path: "/d" model_version_policy { all {} } }
    })");
  CAPTURE(configs.status().to_string());
  REQUIRE(configs.ok());
  REQUIRE(configs->size() == 4);
  const std::set<int64_t> there{1, 2, 3, 5};
  CHECK((*configs)[0].policy.choose(there) == std::set<int64_t>{5});
  CHECK((*configs)[1].policy.choose(there) == std::set<int64_t>{2, 5});
  CHECK((*configs)[1].labels.at("stable") == 2);
  CHECK((*configs)[2].policy.choose(there) == std::set<int64_t>{3, 5});
  CHECK((*configs)[3].policy.choose(there) == there);
  CHECK((*configs)[2].policy.choose({7}) == std::set<int64_t>{7});
}

TEST_CASE("a wrong configuration of models says what is wrong") {
  const std::pair<const char*, const char*> wrong[] = {
      {"model_config_list {", "line 1"},
      {"", "no model_config_list"},
      {R"(model_config_list { config { name: "a" } })", "has no base_path"},
      {R"(model_config_list { config { name: "a/b" base_path: "/x" } })",
       "no name of a model"},
      {R"(model_config_list { config { name: "a" base_path: "/x" }
          config { name: "a" base_path: "/y" } })",
       "two models have the name \"a\""},
      {R"(model_config_list { config { name: "a" base_path: "/x"
          model_platform: "onnx" } })",
       "of the platform \"onnx\""}};
  for (const auto& [text, why] : wrong) {
    CAPTURE(text);
    const Status status = parse_model_configs(text).status();
    CAPTURE(status.to_string());
    CHECK(says(status, why));
  }
}

TEST_CASE("a damaged configuration is read or refused, and nothing else") {
  const std::string whole = R"(model_config_list { config {
    name: "a" base_path: "/x" model_platform: "tensorflow"
    model_version_policy { specific { versions: 1 versions: 2 } }
    version_labels { key: "stable" value: 1 } } })";
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return size_t(random() % n); };
  int read = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (size_t n = 1 + below(3); n > 0; --n) switch (below(4)) {
        case 0:
          text[below(text.size())] = char(random());
          break;
        case 1:
          text.insert(below(text.size()), text.substr(below(text.size()), 30));
          break;
        case 2:
          text.erase(below(text.size()), 1 + below(9));
          break;
        default:
          text.insert(below(text.size()), std::string(200, '{'));
      }
    const auto configs = parse_model_configs(text);
    configs.ok() ? ++read : ++refused;
    if (configs.ok()) CHECK(check_configs(*configs).ok());
  }
  CHECK(read > 0);
  CHECK(refused > 0);
  // Deeper than protobuf goes.
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "model_config_list { ";
  CHECK_FALSE(parse_model_configs(deep).ok());
}

TEST_CASE("parameters of batching are TensorFlow Serving's") {
  const auto options = parse_batch_options(R"(
      max_batch_size { value: 32 }
      batch_timeout_micros { value: 2000 }
      max_enqueued_batches { value: 100 }
      num_batch_threads { value: 4 }
      allowed_batch_sizes: 8 allowed_batch_sizes: 32)");
  CAPTURE(options.status().to_string());
  REQUIRE(options.ok());
  CHECK(options->max_batch_size == 32);
  CHECK(options->batch_timeout == std::chrono::microseconds(2000));
  CHECK(options->max_enqueued_batches == 100);
  CHECK(options->num_batch_threads == 4);
  CHECK(options->allowed_batch_sizes == std::vector<int64_t>{8, 32});
  for (const char* wrong :
       {"max_batch_size { value: 0 }", "max_batch_size: 3",
        "allowed_batch_sizes: 8", "batch_timeout_micros { value: -1 }",
        "max_batch_size { value: 4 } allowed_batch_sizes: 4 "
        "allowed_batch_sizes: 4"}) {
    CAPTURE(wrong);
    CHECK(parse_batch_options(wrong).status().code() == Code::kInvalidArgument);
  }
  CHECK(
      parse_batch_options("pad_variable_length_inputs: true").status().code() ==
      Code::kUnimplemented);
}

TEST_CASE("a path names a model, its version, and what is wanted") {
  using Verb = RestPath::Verb;
  const auto predict = parse_rest_path("/v1/models/m:predict").value();
  CHECK(predict.verb == Verb::kPredict);
  CHECK(predict.model.name == "m");
  CHECK_FALSE(predict.model.version);
  const auto version =
      parse_rest_path("/v1/models/m/versions/12:classify?x=1").value();
  CHECK(version.verb == Verb::kClassify);
  CHECK(version.model.version == 12);
  const auto label = parse_rest_path("/v1/models/m/labels/new:regress").value();
  CHECK(label.verb == Verb::kRegress);
  CHECK(label.model.label == "new");
  CHECK(parse_rest_path("/v1/models/m").value().verb == Verb::kStatus);
  CHECK(parse_rest_path("/v1/models/m/versions/3/metadata").value().verb ==
        Verb::kMetadata);
  for (const char* wrong :
       {"/", "/v1/models", "/v1/models/", "/v1/models/m/", "/v1/models/m/x",
        "/v1/models/m/versions", "/v1/models/m/versions/x",
        "/v1/models/m/versions/-1", "/v1/models/m/versions/1/2",
        "/v1/models/m/labels/", "/v2/models/m:predict",
        "/v1/models/m/versions/99999999999999999999"}) {
    CAPTURE(wrong);
    CHECK(parse_rest_path(wrong).status().code() == Code::kNotFound);
  }
}

}  // namespace
}  // namespace tagflow::net::serving
