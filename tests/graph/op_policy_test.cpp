#include "graph/op_policy.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "graph/function.h"
#include "graph/op_registry.h"
#include "tests/graph/hand_made.h"
#include "tests/graph/hand_made_functions.h"
#include "tests/temp_path.h"

namespace tagflow::graph {
namespace {

namespace fs = std::filesystem;
using testing::const_def;
using testing::contains;
using testing::def;
using testing::message_of;
using testing::must;

constexpr Code kDenied = Code::kPermissionDenied;

OpPolicy without_files() {
  OpPolicy policy;
  policy.reads = policy.writes = FileScope::nowhere();
  return policy;
}

// A graph with the nodes, and a function "f" that nobody calls.
Graph with_function(std::vector<NodeDef> body) {
  Graph graph;
  must(graph.extend({const_def("c", Tensor::scalar("x"))}));
  must(graph.library().add(function("f", {"a: string"}, {"r: string"},
                                    std::move(body), {{"r", "a"}})));
  return graph;
}

}  // namespace

TEST_CASE("a path of an op is beneath the root of its scope, or refused") {
  const fs::path top = tagflow::testing::temp_path("scope");
  fs::create_directories(top / "root/in");
  std::ofstream(top / "secret") << "1";
  fs::create_symlink("../secret", top / "root/link");
  fs::create_symlink("root", top / "other");
  const std::string whole = fs::canonical(top / "root").string();
  for (const char* root : {"root", "other", "root/in/.."}) {
    CAPTURE(root);
    const FileScope scope = FileScope::beneath((top / root).string());
    CHECK(must(scope.resolve("in/new")) == whole + "/in/new");
    CHECK(must(scope.resolve_name("in/new")) == whole + "/in/new");
    CHECK(must(scope.resolve((top / "other/in").string())) == whole + "/in");
    for (const std::string path :
         {"../secret", "link", "in/../../secret", "/etc/passwd", "/"}) {
      const std::string text =
          message_of(scope.resolve(path).status(), kDenied);
      CHECK(contains(
          text, fmt::format("{:?} is not beneath \"{}", path, scope.root())));
    }
    // The link itself is in the folder.
    CHECK(must(scope.resolve_name("link")) == whole + "/link");
    CHECK(scope.resolve_name("../secret").status().code() == kDenied);
    for (const char* none : {"", "in/", "in/.", "in/../.."})
      CHECK(scope.resolve_name(none).status().code() == Code::kInvalidArgument);
  }
  fs::remove_all(top);
}

TEST_CASE("a path of an op has no zero byte, whatever the scope") {
  const std::string path("a\0b", 3);
  for (const FileScope& scope :
       {FileScope::everywhere(), FileScope::nowhere(),
        FileScope::beneath(fs::temp_directory_path().string())}) {
    CHECK(scope.resolve(path).status().code() == Code::kInvalidArgument);
    CHECK(scope.resolve_name(path).status().code() == Code::kInvalidArgument);
  }
  CHECK(must(FileScope::everywhere().resolve("../x")) == "../x");
  CHECK(message_of(FileScope::nowhere().resolve("x").status(), kDenied) ==
        "[policy] \"x\" is refused: this session must not use files in this "
        "way; a root folder for them would allow it");
}

TEST_CASE("a relative root stays the same folder") {
  CHECK(FileScope::beneath("some").root() == fs::absolute("some").string());
}

TEST_CASE("a policy refuses ops by name, and says which list would allow it") {
  Graph graph;
  must(graph.extend({const_def("path", Tensor::scalar("x")),
                     def("node", "ReadFile", {"path"})}));
  CHECK(OpPolicy().check(graph).ok());
  OpPolicy denying;
  denying.denied = {"WriteFile", "ReadFile"};
  CHECK(message_of(denying.check(graph), kDenied) ==
        "[policy] node \"node\" has the op ReadFile, which the list of denied "
        "ops of this session has");
  OpPolicy allowing;
  allowing.allowed = {"Const"};
  CHECK(message_of(allowing.check(graph), kDenied) ==
        "[policy] node \"node\" has the op ReadFile, which the list of allowed "
        "ops of this session lacks");
  allowing.allowed->insert("ReadFile");
  CHECK(allowing.check(graph).ok());
  allowing.denied = {"ReadFile"};
  CHECK(allowing.check(graph).code() == kDenied);
  CHECK(message_of(without_files().check(graph), kDenied) ==
        "[policy] node \"node\" has the op ReadFile, which uses files, and "
        "this session has none: a root folder for files would allow it");
  // With some files, each path is checked when the node runs.
  CHECK(OpPolicy::stranger("/tmp").check(graph).ok());
}

TEST_CASE("a policy holds in functions that nobody calls, too") {
  OpPolicy denying;
  denying.denied = {"ReadFile"};
  const Graph graph = with_function({def("read", "ReadFile", {"a"})});
  CHECK(contains(message_of(denying.check(graph), kDenied),
                 "node \"read\" of function \"f\" has the op ReadFile"));
  CHECK(without_files().check(graph).code() == kDenied);
  // A function is its body, whatever its name.
  Graph calls = with_function({});
  must(calls.extend({def("call", "f", {"c"})}));
  OpPolicy allowing;
  allowing.allowed = {"Const"};
  CHECK(allowing.check(calls).ok());
  // One that only is the gradient of another.
  Graph gradient = with_function({});
  must(gradient.library().add(function("g", {"a: string"}, {"r: string"},
                                       {def("read", "ReadFile", {"a"})},
                                       {{"r", "a"}})));
  must(gradient.library().add_gradient("f", "g"));
  CHECK(contains(message_of(denying.check(gradient), kDenied),
                 "of function \"g\""));
}

TEST_CASE("an attribute decides whether a printer or a sampler uses files") {
  const OpPolicy policy = without_files();
  const auto check = [&](const char* op, AttrMap attrs) {
    return policy
        .check(std::vector<NodeDef>{def("n", op, {}, std::move(attrs))}, {})
        .code();
  };
  CHECK(check("PrintV2", {}) == Code::kOk);
  CHECK(check("PrintV2", {{"output_stream", "stdout"}}) == Code::kOk);
  CHECK(check("PrintV2", {{"output_stream", "file:///tmp/x"}}) == kDenied);
  CHECK(check("PrintV2", {{"output_stream", AttrPlaceholder{"s"}}}) == kDenied);
  constexpr const char* kSampler = "FixedUnigramCandidateSampler";
  CHECK(check(kSampler, {}) == Code::kOk);
  CHECK(check(kSampler, {{"vocab_file", ""}}) == Code::kOk);
  CHECK(check(kSampler, {{"vocab_file", "words"}}) == kDenied);
  CHECK(check(kSampler, {{"vocab_file", AttrPlaceholder{"f"}}}) == kDenied);
}

TEST_CASE(
    "a policy is refused if it names an op or a folder that is not there") {
  OpPolicy policy;
  CHECK(policy.validate().ok());
  policy.denied = {"RaedFile"};
  CHECK(message_of(policy.validate(), Code::kInvalidArgument) ==
        "[policy] [ops] unknown op \"RaedFile\", did you mean \"ReadFile\"?");
  policy.denied = {"ReadFile"};
  policy.allowed = {"Nothing"};
  CHECK(policy.validate().code() == Code::kInvalidArgument);
  policy.allowed.reset();
  policy.writes = FileScope::beneath("/no/such/folder");
  CHECK(contains(message_of(policy.validate(), Code::kInvalidArgument),
                 "\"/no/such/folder\", the root of files, is not a folder"));
  CHECK(without_files().validate().ok());
}

// The names of the ops say it: a new one among them has to be declared.
TEST_CASE("ops with files in their names use files") {
  const std::regex names(
      "(Read|Write|Matching|Whole)File.*|(Save|Restore)(V2|Slices?)?|"
      "Merge.*Checkpoints|.*FromTextFile.*|.*Reader(V2)?|"
      "ReaderRead(UpTo)?(V2)?|"
      "(.*SummaryWriter|CreateSummaryFileWriter|Write.*Summary|ImportEvent)|"
      "_WriteShard|_ReadShards|"
      ".*RecordInput|.*FileSystem.*|(.*Record|TextLine)Dataset(V2)?");
  for (const std::string& op : OpRegistry::global().names()) {
    CAPTURE(op);
    CHECK(OpRegistry::global().uses_files(op, {}) ==
          std::regex_match(op, names));
  }
}

}  // namespace tagflow::graph
