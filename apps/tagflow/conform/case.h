// Recorded cases: a graph, its feeds, and its results. A case is a folder with
// graph.pb and case.json; parse_case() describes the latter.
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

// The gradients by xs that are added to the graph before its runs, which fetch
// "grad_0:0", "grad_1:0", ...; see apps/tagflow/model/gradient_graph.h.
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
// where "gradients" and "order" may be left out; other keys are ignored.
// Returns InvalidArgument if a part is missing or of the wrong kind, or a
// file is not a plain name, since a case reads its own folder only.
// Thread-safe.
Result<Case> parse_case(std::string_view json);

// The folder if it is a case, or else the cases in it, in order; other folders
// are skipped. Returns PermissionDenied if it cannot be read.
Result<std::vector<std::filesystem::path>> find_cases(
    const std::filesystem::path& folder);

// The case of a folder. Returns errors of parse_case() and read_file().
Result<Case> load_case(const std::filesystem::path& folder);

// "*.json" holds strings, all else is .npy.
Result<Tensor> load_case_tensor(const std::filesystem::path& path);

}  // namespace tagflow::apps
