// Recorded cases: a graph, what was fed, what came out. A case is a folder
// with graph.pb and case.json; see parse_case() for what is read of the
// latter.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::apps {

// One run of the case's session.
struct CaseRun {
  std::vector<std::string> targets;
  std::vector<std::pair<std::string, std::string>> feeds;  // port, file
  std::vector<std::string> fetches;
  std::vector<std::string> expect;  // a file for each fetch
  // The code that the run must fail with, such as "InvalidArgumentError".
  // Empty: it must succeed.
  std::string error_code;
};

// What is added to the graph before its runs, which fetch "grad_0:0",
// "grad_1:0", ...: the gradients by xs, see apps/common/gradient_graph.h.
struct CaseGradients {
  std::vector<std::string> ys;
  std::vector<std::string> xs;
  int order = 1;
};

struct Case {
  std::string name;
  std::vector<CaseRun> runs;
  std::optional<CaseGradients> gradients;
};

// Reads
//   { "name", "runs": [ { "targets": [node...], "feeds": {port: file},
//                         "fetches": [port...], "expect": [file...]
//                         or "error": {"code"} } ],
//     "gradients": { "ys": [port...], "xs": [port...], "order": 1 } }
// where "gradients" and "order" may be left out, and passes over other keys.
// InvalidArgument where a part is missing or of the wrong kind, or a file is
// not a plain name: a case reads its own folder only. Thread-safe.
Result<Case> parse_case(std::string_view json);

// The folder, where it is a case, or else those in it that are, in order;
// others are passed over. PermissionDenied where it cannot be read.
Result<std::vector<std::filesystem::path>> find_cases(
    const std::filesystem::path& folder);

// The case of a folder. Errors also as read_file.
Result<Case> load_case(const std::filesystem::path& folder);

// "*.json" holds strings, all else is .npy.
Result<Tensor> load_case_tensor(const std::filesystem::path& path);

}  // namespace tagflow::apps
