#include "net/config/cluster_file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <string>

#include "tests/net/link/loopback.h"
#include "tests/temp_folder.h"

namespace tagflow::net {
namespace {

constexpr char kTwoTasks[] = R"({
  "name": "mine", "secret_file": "mine.secret",
  "tasks": [
    {"job": "worker", "task": 1, "address": "localhost:4000",
     "devices": "cpu:2"},
    {"job": "ps", "task": 0, "address": "[::1]:4001"}],
  "tls": {"ca": "certs/ca.pem", "cert": "certs/{process}.pem",
          "key": "/keys/{process}.key"}})";

// A file with one task, whose keys are these.
std::string with_task(const std::string& keys) {
  return fmt::format(R"({{"tasks": [{{{}}}]}})", keys);
}

}  // namespace

TEST_CASE("a cluster file says where each task listens, and what it has") {
  const auto file = parse_cluster_file(kTwoTasks);
  REQUIRE(file.ok());
  CHECK(file->name == "mine");
  CHECK(file->secret_file == "mine.secret");
  REQUIRE(file->tasks.size() == 2);
  CHECK(file->tasks[0].task == Task{"worker", 1});
  CHECK(file->tasks[0].address.host == "localhost");
  CHECK(file->tasks[0].address.port == 4000);
  CHECK(file->tasks[0].devices == "cpu:2");
  CHECK(file->tasks[1].address.host == "::1");
  CHECK(file->find({"ps", 0}) == &file->tasks[1]);
  CHECK(file->find({"ps", 1}) == nullptr);
  const TlsFiles files = file->tls.of(process_name({"ps", 0}));
  CHECK(files.ca == "certs/ca.pem");
  CHECK(files.certificate == "certs/ps-0.pem");
  CHECK(files.key == "/keys/ps-0.key");
}

TEST_CASE("a cluster file is read as it was written") {
  const auto file = parse_cluster_file(kTwoTasks);
  REQUIRE(file.ok());
  const std::string text = format_cluster_file(*file);
  const auto again = parse_cluster_file(text);
  REQUIRE(again.ok());
  CHECK(format_cluster_file(*again) == text);
  CHECK(again->tasks.size() == 2);
  CHECK(again->tasks[1].address.port == 4001);
}

TEST_CASE("each mistake in a cluster file is named") {
  const std::string ok = R"("job": "a", "task": 0, "address": "h:1")";
  const std::pair<std::string, const char*> mistakes[] = {
      {"", "it is empty"},
      {std::string("{}\0", 3), "it has a byte 0"},
      {"tasks: []", "it is not JSON: see byte 2"},
      {"[]", "the file is not an object"},
      {"{}", "the file has no list \"tasks\" with a task in it"},
      {R"({"tasks": []})", "no list \"tasks\" with a task in it"},
      {R"({"tasks": {}})", "no list \"tasks\""},
      {R"({"tasks": [7]})", "tasks[0] is not an object"},
      {R"({"task": []})",
       "the file has an unknown key \"task\"; its keys are name, secret_file, "
       "tasks, tls"},
      {R"({"tasks": [{"job": "w", "task": 0, "address": "h:1"}], "tls": []})",
       "\"tls\" is not an object"},
      {R"({"name": 1, "tasks": []})",
       "the \"name\" of the file is not a string"},
      {R"({"name": "a", "name": "b", "tasks": []})",
       "the key \"name\" is there twice"},
      {with_task(R"("task": 0, "address": "h:1")"), "tasks[0] has no \"job\""},
      {with_task(R"("job": "a", "address": "h:1")"),
       "tasks[0] has no \"task\""},
      {with_task(R"("job": "a", "task": 0)"), "tasks[0] has no \"address\""},
      {with_task(ok + R"(, "device": "cpu")"),
       "tasks[0] has an unknown key \"device\""},
      {with_task(ok + R"(, "task": 0)"), "the key \"task\" is there twice"},
      {with_task(ok + R"(, "devices": ["cpu"])"),
       "the \"devices\" of tasks[0] is not a string"},
      {with_task(R"("job": "a/b", "task": 0, "address": "h:1")"),
       "tasks[0]: [net] the job \"a/b\" is not"},
      {with_task(R"("job": "", "task": 0, "address": "h:1")"),
       "the job \"\" is"},
      {with_task(R"("job": "A", "task": 0, "address": "h:1")"), "lower-case"},
      {with_task(fmt::format(R"("job": "{}", "task": 0, "address": "h:1")",
                             std::string(65, 'a'))),
       "up to 63 more"},
      {with_task(R"("job": "a", "task": -1, "address": "h:1")"),
       "the \"task\" of tasks[0] is not a whole number from 0 to 2147483647"},
      {with_task(R"("job": "a", "task": 1.5, "address": "h:1")"),
       "not a whole number"},
      {with_task(R"("job": "a", "task": "0", "address": "h:1")"),
       "not a whole number"},
      {with_task(R"("job": "a", "task": 2147483648, "address": "h:1")"),
       "not a whole number"},
      {with_task(R"("job": "a", "task": 0, "address": 4000)"),
       "the \"address\" of tasks[0] is not a string"},
      {with_task(R"("job": "a", "task": 0, "address": "h")"),
       "the \"address\" of tasks[0]: \"h\" has no port: write HOST:PORT"},
      {with_task(R"("job": "a", "task": 0, "address": "h:0")"),
       "\"h:0\" has no port"},
      {with_task(R"("job": "a", "task": 0, "address": ":1")"),
       "\":1\" has no host"},
      {with_task(R"("job": "a", "task": 0, "address": "h:65536")"),
       "the port \"65536\", which is not a number from 0 to 65535"},
      {fmt::format(R"({{"tasks": [{{{}}}, {{{}}}]}})", ok, ok),
       "the task /job:a/task:0 is there twice"},
      {fmt::format(R"({{"tasks": [{{{}}},
          {{"job": "b", "task": 3, "address": "h:1"}}]}})",
                   ok),
       "/job:a/task:0 and /job:b/task:3 have one address, h:1"},
  };
  for (const auto& mistake : mistakes) {
    const auto& [text, what] = mistake;
    CAPTURE(mistake.first);
    const Status status = parse_cluster_file(text).status();
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(mentions(status, "[cluster_file] "));
    CHECK_MESSAGE(mentions(status, what), status.to_string());
  }
}

TEST_CASE("an address is a host and a port") {
  const std::pair<const char*, Address> addresses[] = {
      {"localhost:0", {"localhost", 0}},
      {":7", {"", 7}},
      {"127.0.0.1:65535", {"127.0.0.1", 65535}},
      {"[::1]:4000", {"::1", 4000}},
      {"a.b-c.d:1", {"a.b-c.d", 1}}};
  for (const auto& each : addresses) {
    const auto& [text, expected] = each;
    CAPTURE(each.first);
    const auto address = parse_address(text);
    REQUIRE(address.ok());
    CHECK(address->host == expected.host);
    CHECK(address->port == expected.port);
    CHECK(format_address(*address) == text);
  }
  for (const char* text : {"", "h", "::1:4", "[::1]", "[::1:4", "[::1]4",
                           "h:", "h:-1", "h:1x", "h:+1", "h :1", "[[::1]]:1"}) {
    CAPTURE(text);
    CHECK(parse_address(text).status().code() == Code::kInvalidArgument);
  }
}

TEST_CASE("errors of a cluster file name it, and its secret is beside it") {
  const testing::TempFolder folder("cluster_file");
  const auto path = folder.path() / "c.json";
  const Status missing = read_cluster_file(path).status();
  CHECK(missing.code() == Code::kNotFound);
  CHECK(mentions(missing, path.string()));
  std::ofstream(path) << "{";
  CHECK(mentions(read_cluster_file(path).status(), path.string()));
  std::ofstream(path) << std::string(2 << 20, ' ');
  CHECK(read_cluster_file(path).status().code() == Code::kResourceExhausted);
  std::ofstream(path) << kTwoTasks;
  const auto file = read_cluster_file(path);
  REQUIRE(file.ok());
  CHECK(file->secret_file == folder.path() / "mine.secret");
  CHECK(file->tls.ca == folder.path() / "certs/ca.pem");
  CHECK(file->tls.key == "/keys/{process}.key");
}

}  // namespace tagflow::net
