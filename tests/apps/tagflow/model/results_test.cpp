#include "apps/tagflow/model/results.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/shared/io/file.h"
#include "apps/shared/io/npy.h"
#include "tests/temp_path.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

const std::vector<FetchName> kPorts = {fetch_of_port("a/b:1"),
                                       fetch_of_port("text")};
const std::vector<Tensor> kResults = {Tensor::vector<float>({1, 2.5f}),
                                      Tensor::scalar("x")};

TEST_CASE("slashes and colons of a name become underscores in a file's") {
  CHECK(fetch_of_port("while/Exit_1:2").stem == "while_Exit_1_2");
  CHECK(fetch_of_port("while/Exit_1:2").label == "while/Exit_1:2");
  CHECK(fetch_of_port("y").stem == "y_0");
  CHECK(file_stem("a/b:c") == "a_b_c");
  CHECK(file_stem(std::string("a\0b\n\x7f\xc3\xbc", 7)) == "a_b__\xc3\xbc");
}

TEST_CASE("two results for one file are refused before anything is written") {
  const std::vector<FetchName> ports = {fetch_of_port("a/b"),
                                        fetch_of_port("a_b:0")};
  const fs::path folder = testing::temp_path("no_such_results");
  CHECK(prepare_folder(folder, ports).message() ==
        "[--out] \"a/b\" and \"a_b:0\" would both be written to a_b_0; fetch "
        "one at a time");
  CHECK(!fs::exists(folder));
}

TEST_CASE(
    "a name that no file can have is refused before anything is written") {
  const auto folder = testing::temp_path("long");
  const FetchName fits{"fits", std::string(250, 'x')};
  const FetchName is_long{"too_long", std::string(251, 'x')};
  CHECK(prepare_folder(folder, std::vector{fits}).ok());
  std::filesystem::remove(folder);
  CHECK(prepare_folder(folder, std::vector{fits, is_long}).to_string() ==
        "InvalidArgument: [--out] \"too_long\" is too long for a file name, "
        "which "
        "has at most 255 bytes");
  CHECK(!std::filesystem::exists(folder));
}

TEST_CASE("results are lines of text") {
  CHECK(format_results(kPorts, kResults) ==
        "a/b:1 = float[2] [1.0, 2.5]\ntext = string[] \"x\"\n");
}

TEST_CASE("the results of a step are lines of text, or one of JSON") {
  CHECK(format_step(7, kPorts, kResults) ==
        "step 7: a/b:1 = float[2] [1.0, 2.5]\nstep 7: text = string[] "
        "\"x\"\n");
  CHECK(format_step_json(7, kPorts, kResults) ==
        R"({"step": 7, "fetches": {"a/b:1": [1.0, 2.5], "text": "x"}})"
        "\n");
  CHECK(format_step_json(1, {}, {}) == "{\"step\": 1, \"fetches\": {}}\n");
}

TEST_CASE("results are valid JSON, with the statistics") {
  actors::RunStats stats;
  stats.fired = 12;
  const auto json = nlohmann::json::parse(
      format_results_json(kPorts, kResults, stats,
                          std::vector<DeviceMemory>{
                              {"/device:CPU:0", {}},
                              {"/device:STREAM:0", {1, 20, 300, 4, 5, 5, 6}}}));
  CHECK(json["fetches"]["a/b:1"]["dtype"] == "float");
  CHECK(json["fetches"]["a/b:1"]["shape"] == nlohmann::json({2}));
  CHECK(json["fetches"]["a/b:1"]["value"] == nlohmann::json({1.0, 2.5}));
  CHECK(json["fetches"]["text"]["value"] == "x");
  CHECK(json["stats"]["fired"] == 12);
  CHECK(json["devices"][0]["device"] == "/device:CPU:0");
  CHECK(json["devices"][0]["memory"].is_null());
  CHECK(json["devices"][1]["memory"] ==
        nlohmann::json({{"bytes_in_use", 1},
                        {"peak_bytes", 20},
                        {"limit_bytes", 300},
                        {"allocations", 4},
                        {"swapped_out_bytes", 5},
                        {"swapped_in_bytes", 6}}));
}

TEST_CASE("results are files, numbers as .npy and strings as .json") {
  const fs::path folder = testing::temp_path("results") / "deep";
  REQUIRE(prepare_folder(folder, kPorts).ok());
  REQUIRE(write_results(folder, kPorts, kResults).ok());
  const Result<Tensor> numbers = io::read_npy(folder / "a_b_1.npy");
  REQUIRE(numbers.ok());
  CHECK(identical(*numbers, kResults[0]));
  CHECK(io::read_file(folder / "text_0.json").ok());
  fs::remove_all(folder.parent_path());
}

TEST_CASE("handles cannot be written to a file") {
  const std::vector<FetchName> ports = {fetch_of_port("v:0")};
  const std::vector<Tensor> handles = {
      Tensor::make(DataType::kVariant, Shape())};
  const fs::path folder = testing::temp_path("handles");
  REQUIRE(prepare_folder(folder, ports).ok());
  CHECK(!write_results(folder, ports, handles).ok());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tagflow::apps
