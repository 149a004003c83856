// The graph of a stranger, which reads a file and prints: a policy says which
// files it may read, and a sink gets what it prints.
//
//   "path" --> ReadFile "text" --> PrintV2 "print"
//
// The policy is for a folder of the stranger's: files in it may be read, none
// may be written, and what leads out of it is refused.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "actors/session/session.h"
#include "graph/builder/builder.h"

using namespace tagflow;         // NOLINT: an example
using namespace tagflow::graph;  // NOLINT

namespace {

namespace fs = std::filesystem;

Status build(Graph& graph) {
  const Scope s(graph);
  const Output path = ops::placeholder(s.named("path"), DataType::kString,
                                       PartialShape::scalar());
  const Output text = s.named("text").op("ReadFile", {path});
  s.named("print").op("PrintV2", {text}, {{"output_stream", "stdout"}});
  return s.status();
}

// What the graph prints for a path, or the code of the error.
Result<std::string> run(const Graph& graph, const fs::path& folder,
                        const std::string& path) {
  std::string printed;
  actors::SessionOptions options;
  options.policy = OpPolicy::stranger(folder.string());
  options.print_sink = [&](devices::PrintStream, std::string_view text) {
    printed += text;
  };
  TAGFLOW_ASSIGN(auto session, actors::Session::create(options));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
  const Status status =
      session->run({{"path", Tensor::scalar(path)}}, {}, {"print"}).status();
  return status.ok() ? printed : std::string(code_name(status.code())) + "\n";
}

}  // namespace

int main() {
  const fs::path top =
      fs::temp_directory_path() / ("stranger_" + std::to_string(getpid()));
  fs::create_directories(top / "model");
  std::ofstream(top / "model" / "words") << "cat dog";
  std::ofstream(top / "secret") << "42";
  fs::create_symlink("../secret", top / "model" / "link");

  Graph graph;
  Status built = build(graph);
  bool is_right = built.ok();
  if (!is_right) std::fprintf(stderr, "%s\n", built.to_string().c_str());
  for (const char* path : {"words", "../secret", "link", "/etc/passwd"}) {
    const auto text = run(graph, top / "model", path);
    const std::string said = text.ok() ? *text : text.status().to_string();
    std::printf("%s: %s", path, said.c_str());
    is_right = is_right && said == (path == std::string_view("words")
                                        ? "cat dog\n"
                                        : "PermissionDenied\n");
  }
  fs::remove_all(top);
  return is_right ? 0 : 1;
}
