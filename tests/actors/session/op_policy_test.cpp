// Sessions whose policies limit the ops, the files and the prints of a graph.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <stdexcept>

#include "devices/files/bundle_writer.h"
#include "tests/actors/function_graph.h"
#include "tests/actors/test_op.h"
#include "tests/temp_path.h"

namespace tagflow::actors {
namespace {

namespace fs = std::filesystem;
using graph::FileScope;
using graph::OpPolicy;
using graph::testing::const_def;
using graph::testing::contains;
using graph::testing::def;
using graph::testing::message_of;
using graph::testing::must;

constexpr Code kDenied = Code::kPermissionDenied;

Tensor text(const std::string& value) { return Tensor::scalar(value); }
Tensor texts(const std::vector<std::string>& values) {
  return Tensor::of<std::string>({int64_t(values.size())}, values);
}

// An op that uses files: a graph whose node "op" has it, on a path.
struct FileOp {
  const char* op;
  bool writes;
  std::function<std::vector<NodeDef>(const std::string& path)> nodes;
};

const AttrMap kColumns = {{"key_index", int64_t{-2}},
                          {"value_index", int64_t{-1}}};

std::vector<NodeDef> table_nodes(const std::string& path, const char* version) {
  return {const_def("path", text(path)),
          def("table", std::string("HashTable") + version, {},
              {{"key_dtype", DataType::kString},
               {"value_dtype", DataType::kInt64}}),
          def("op", std::string("InitializeTableFromTextFile") + version,
              {"table", "path"}, kColumns)};
}

const FileOp kFileOps[] = {
    {"ReadFile", false,
     [](const std::string& path) -> std::vector<NodeDef> {
       return {const_def("path", text(path)), def("op", "ReadFile", {"path"})};
     }},
    {"WriteFile", true,
     [](const std::string& path) -> std::vector<NodeDef> {
       return {const_def("path", text(path)), const_def("c", text("forged")),
               def("op", "WriteFile", {"path", "c"})};
     }},
    {"MatchingFiles", false,
     [](const std::string& path) -> std::vector<NodeDef> {
       return {const_def("path", text(path)),
               def("op", "MatchingFiles", {"path"})};
     }},
    {"SaveV2", true,
     [](const std::string& path) -> std::vector<NodeDef> {
       return {const_def("path", text(path)), const_def("names", texts({"v"})),
               const_def("slices", texts({""})),
               const_def("value", Tensor::scalar(2.0f)),
               def("op", "SaveV2", {"path", "names", "slices", "value"},
                   {{"dtypes", std::vector<DataType>{DataType::kFloat}}})};
     }},
    {"RestoreV2", false,
     [](const std::string& path) -> std::vector<NodeDef> {
       return {const_def("path", text(path)), const_def("names", texts({"v"})),
               const_def("slices", texts({""})),
               def("op", "RestoreV2", {"path", "names", "slices"},
                   {{"dtypes", std::vector<DataType>{DataType::kFloat}}})};
     }},
    {"MergeV2Checkpoints", true,
     [](const std::string& path) -> std::vector<NodeDef> {
       return {const_def("paths", texts({path})), const_def("to", text(path)),
               def("op", "MergeV2Checkpoints", {"paths", "to"})};
     }},
    {"InitializeTableFromTextFile", false,
     [](const std::string& path) { return table_nodes(path, ""); }},
    {"InitializeTableFromTextFileV2", false,
     [](const std::string& path) { return table_nodes(path, "V2"); }},
    {"FixedUnigramCandidateSampler", false,
     [](const std::string& path) -> std::vector<NodeDef> {
       return {const_def("classes", Tensor::of<int64_t>({1, 1}, {0})),
               def("op", "FixedUnigramCandidateSampler", {"classes"},
                   {{"vocab_file", path},
                    {"num_true", int64_t{1}},
                    {"num_sampled", int64_t{1}},
                    {"unique", false},
                    {"range_max", int64_t{2}}})};
     }},
    {"PrintV2", true,
     [](const std::string& path) -> std::vector<NodeDef> {
       return {
           const_def("c", text("forged")),
           def("op", "PrintV2", {"c"}, {{"output_stream", "file://" + path}})};
     }},
};

// Whether the op takes the prefix of a checkpoint.
bool takes_prefix(std::string_view op) {
  return op == "SaveV2" || op == "RestoreV2" || op == "MergeV2Checkpoints";
}

// "root" and "secret", with the same files. Links lead from one to the other,
// and "way" to the first.
class Folders {
 public:
  Folders() {
    fs::remove_all(top_);
    for (const fs::path& folder : {root(), secret()}) {
      fs::create_directories(folder);
      std::ofstream(folder / "file") << "1\n2\n";
      const auto writer = must(
          checkpoint::BundleWriter::create((folder / "ck").string(), 1, {}));
      must(writer->add("v", Tensor::scalar(1.0f)));
      must(writer->finish());
      must(writer->publish());
    }
    fs::create_symlink("../secret", root() / "away");
    fs::create_symlink("../secret/file", root() / "file_link");
    for (const char* end : {".index", ".data-00000-of-00001"})
      fs::create_symlink(std::string("../secret/ck") + end,
                         root() / (std::string("ck_link") + end));
    fs::create_symlink("root", top_ / "way");
  }
  ~Folders() { fs::remove_all(top_); }
  Folders(const Folders&) = delete;
  Folders& operator=(const Folders&) = delete;

  fs::path root() const { return top_ / "root"; }
  fs::path secret() const { return top_ / "secret"; }
  fs::path way() const { return top_ / "way"; }
  // What is outside of the root: each name, with its contents.
  std::map<std::string, std::string> outside() const {
    std::map<std::string, std::string> found;
    for (const fs::path& folder : {top_, secret()})
      for (const auto& entry : fs::directory_iterator(folder)) {
        std::ifstream file(entry.path());
        found[entry.path().string()] =
            entry.is_regular_file()
                ? std::string(std::istreambuf_iterator<char>(file), {})
                : "";
      }
    return found;
  }

 private:
  const fs::path top_ = testing::temp_path("op_policy");
};

SessionOptions with(const OpPolicy& policy) {
  SessionOptions options;
  options.policy = policy;
  return options;
}

OpPolicy beneath(const fs::path& root) {
  OpPolicy policy;
  policy.reads = policy.writes = FileScope::beneath(root.string());
  return policy;
}

OpPolicy without_files() {
  OpPolicy policy;
  policy.reads = policy.writes = FileScope::nowhere();
  return policy;
}

Status run_nodes(const std::vector<NodeDef>& nodes, const OpPolicy& policy) {
  const auto session = must(Session::create(with(policy)));
  TAGFLOW_RETURN_IF_ERROR(session->extend(nodes));
  return session->run({}, {}, {"op"}, within_a_minute()).status();
}

}  // namespace

TEST_CASE("an op uses the files of its path, without a policy") {
  for (const FileOp& op : kFileOps) {
    CAPTURE(op.op);
    const Folders folders;
    const std::string name = takes_prefix(op.op) ? "ck" : "file";
    must(run_nodes(op.nodes((folders.secret() / name).string()), {}));
    must(run_nodes(op.nodes((folders.root() / "away" / name).string()), {}));
  }
}

TEST_CASE("an op uses the files beneath a root, in all spellings of a path") {
  for (const FileOp& op : kFileOps) {
    CAPTURE(op.op);
    const Folders folders;
    const std::string name = takes_prefix(op.op) ? "ck" : "file";
    for (const fs::path& root : {folders.root(), folders.way()})
      for (const fs::path& path :
           {fs::path(name), "./x/../" / fs::path(name), folders.root() / name,
            folders.way() / name, folders.way() / "../root" / name}) {
        INFO(root.string(), " ", path.string());
        const auto before = folders.outside();
        must(run_nodes(op.nodes(path.string()), beneath(root)));
        CHECK(folders.outside() == before);
      }
  }
}

TEST_CASE("an op makes files beneath a root, in new folders too") {
  const Folders folders;
  for (const FileOp& op : kFileOps) {
    const std::string_view name = op.op;
    if (!op.writes || name == "MergeV2Checkpoints" || name == "PrintV2")
      continue;
    CAPTURE(op.op);
    must(run_nodes(op.nodes("new/" + std::string(name)),
                   beneath(folders.way())));
    CHECK(fs::exists(folders.root() / "new" /
                     (name == "SaveV2" ? "SaveV2.index" : name)));
  }
}

TEST_CASE(
    "an op with a path that leaves the root is refused and does nothing") {
  for (const FileOp& op : kFileOps) {
    CAPTURE(op.op);
    const Folders folders;
    const std::string name = takes_prefix(op.op) ? "ck" : "file";
    const auto before = folders.outside();
    std::vector<std::string> paths = {
        (folders.secret() / name).string(), "../secret/" + name, "away/" + name,
        "new/../../secret/" + name,
        (folders.way() / "../secret" / name).string()};
    // A checkpoint is written beside such a link, which it replaces.
    if (!takes_prefix(op.op)) paths.emplace_back("file_link");
    if (std::string_view(op.op) == "RestoreV2") paths.emplace_back("ck_link");
    for (const std::string& path : paths) {
      CAPTURE(path);
      const Status status = run_nodes(op.nodes(path), beneath(folders.root()));
      const std::string message = message_of(status, kDenied);
      CHECK(contains(message, "\"op\""));
      CHECK(contains(message, path));
      CHECK(contains(message, folders.root().string()));
      CHECK(folders.outside() == before);
      CHECK(!fs::exists(folders.root() / "new"));
    }
    // Neither does a scope of reads allow to write, nor the other way round.
    OpPolicy half = beneath(folders.root());
    (op.writes ? half.writes : half.reads) = FileScope::nowhere();
    CHECK(run_nodes(op.nodes(name), half).code() == kDenied);
  }
}

TEST_CASE(
    "an op with a path that is none is refused, with a policy or without") {
  for (const FileOp& op : kFileOps) {
    const Folders folders;
    for (const OpPolicy& policy : {OpPolicy(), beneath(folders.root())}) {
      CAPTURE(op.op);
      // No file matches. Without a name, a sampler takes its list of weights,
      // which is empty.
      const bool finds_none = std::string_view(op.op) == "MatchingFiles";
      CHECK(run_nodes(op.nodes(""), policy).ok() == finds_none);
      CHECK(run_nodes(op.nodes(std::string("file\0x", 6)), policy).code() ==
            Code::kInvalidArgument);
    }
  }
}

TEST_CASE("a graph with an op that uses files is refused without files") {
  for (const FileOp& op : kFileOps) {
    CAPTURE(op.op);
    const auto session = must(Session::create(with(without_files())));
    const Status status = session->extend(op.nodes("file"));
    CHECK(contains(
        message_of(status, kDenied),
        fmt::format("node \"op\" has the op {}, which uses files", op.op)));
    CHECK(session->graph().nodes().empty());
    // In a function that nobody calls, or that another function calls.
    FunctionGraph g;
    std::vector<NodeDef> body = op.nodes("file");
    for (NodeDef& node : body)
      for (std::string& input : node.inputs) input += ":output:0";
    g.define(function("inner", {"x: int32"}, {"y: int32"}, std::move(body),
                      {{"y", "x"}}));
    CHECK(contains(
        message_of(session->extend(g.graph), kDenied),
        fmt::format("node \"op\" of function \"inner\" has the op {}", op.op)));
    CHECK(session->graph().library().empty());
  }
}

TEST_CASE("files are found beneath the root only, and named as the pattern") {
  const Folders folders;
  const auto find = [&](const std::string& pattern) {
    const auto session = must(Session::create(with(beneath(folders.root()))));
    must(session->extend(kFileOps[2].nodes(pattern)));
    const Tensor found = must_run(*session, {}, {"op"})[0];
    const auto names = found.flat<std::string>();
    return std::vector<std::string>(names.begin(), names.end());
  };
  using Names = std::vector<std::string>;
  CHECK(find("fi*") == Names{"file"});
  CHECK(find("ck*.index") == Names{"ck.index"});
  CHECK(find("*/file").empty());
  CHECK(find("*/../../secret/file").empty());
  const std::string whole = (folders.way() / "f*").string();
  CHECK(find(whole) == Names{(folders.way() / "file").string()});
}

TEST_CASE("a list of ops is checked before a session has a node of them") {
  OpPolicy policy;
  policy.allowed = {"Const", "Identity"};
  const auto session = must(Session::create(with(policy)));
  must(session->extend(std::vector<NodeDef>{
      const_def("c", Tensor::scalar(1)),
      def("i", "Identity", {"c"}, {{"T", DataType::kInt32}})}));
  CHECK(must_run(*session, {}, {"i"})[0].scalar_value<int32_t>() == 1);
  const Status refused = session->extend(
      std::vector<NodeDef>{def("n", "Neg", {"c"}, {{"T", DataType::kInt32}})});
  CHECK(contains(message_of(refused, kDenied),
                 "node \"n\" has the op Neg, which the list of allowed ops of "
                 "this session lacks"));
  policy.allowed->insert("Nge");
  CHECK(contains(message_of(Session::create(with(policy)).status(),
                            Code::kInvalidArgument),
                 "unknown op \"Nge\""));
}

TEST_CASE("an op of a program is allowed and denied by its name") {
  class Kernel final : public devices::CheapKernel {
   public:
    explicit Kernel(const devices::KernelInfo&) {}
    Status compute(devices::KernelContext& context) const override {
      context.set_output(0, context.input(0));
      return {};
    }
  };
  add_test_op<Kernel>("PolicyTestOp", "int32");
  const std::vector<NodeDef> nodes = {const_def("c", Tensor::scalar(1)),
                                      def("op", "PolicyTestOp", {"c"})};
  OpPolicy policy;
  policy.denied = {"PolicyTestOp"};
  CHECK(run_nodes(nodes, policy).code() == kDenied);
  policy.denied.clear();
  policy.allowed = {"Const", "PolicyTestOp"};
  must(run_nodes(nodes, policy));
}

TEST_CASE("sessions that share a state have policies of their own") {
  const Folders folders;
  const auto free = must(Session::create({}));
  SessionOptions options = with(beneath(folders.root()));
  options.state = free->shared_state();
  const auto bound = must(Session::create(options));
  const auto nodes = kFileOps[0].nodes((folders.secret() / "file").string());
  must(free->extend(nodes));
  must(bound->extend(nodes));
  CHECK(must_run(*free, {}, {"op"})[0].scalar_value<std::string>() == "1\n2\n");
  CHECK(bound->run({}, {"op"}).status().code() == kDenied);
}

TEST_CASE("a session's sink gets its prints, and may fail the run") {
  std::mutex mutex;
  std::vector<std::string> printed;
  SessionOptions options;
  options.print_sink = [&](devices::PrintStream stream, std::string_view line) {
    const std::lock_guard lock(mutex);
    if (line == "bad\n") throw std::runtime_error("the sink is full");
    printed.push_back(
        (stream == devices::PrintStream::kOutput ? "out " : "error ") +
        std::string(line));
  };
  const auto session = must(Session::create(options));
  must(session->extend(std::vector<NodeDef>{
      def("s", "Placeholder", {}, {{"dtype", DataType::kString}}),
      def("op", "PrintV2", {"s"}, {{"output_stream", "stdout"}})}));
  must(session->run({{"s", text("{\"y\": 666}")}}, {}, {"op"}));
  CHECK(printed == std::vector<std::string>{"out {\"y\": 666}\n"});
  const Status failed = session->run({{"s", text("bad")}}, {}, {"op"}).status();
  CHECK(contains(failed.message(), "the sink is full"));
}

}  // namespace tagflow::actors
