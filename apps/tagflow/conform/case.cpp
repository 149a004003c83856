#include "apps/tagflow/conform/case.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "apps/shared/io/file.h"
#include "apps/shared/io/json_tensor.h"
#include "apps/shared/io/npy.h"
#include "apps/tagflow/model/gradient_graph.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The size limit of case.json; real ones have a few kilobytes.
constexpr size_t kMaxCaseBytes = size_t{64} << 20;

Result<std::string> parse_text(const Json& value, std::string_view what) {
  if (!value.is_string()) {
    return invalid_argument("[case] {} is not a string", what);
  }
  return value.get<std::string>();
}

// The list of strings at `key`; empty if there is none.
Result<std::vector<std::string>> parse_list(const Json& run, const char* key) {
  std::vector<std::string> list;
  const auto it = run.find(key);
  if (it == run.end()) return list;
  if (!it->is_array()) {
    return invalid_argument("[case] \"{}\" is not a list", key);
  }
  for (const Json& item : *it) {
    TAGFLOW_ASSIGN(std::string text,
                   parse_text(item, fmt::format("an item of \"{}\"", key)));
    list.push_back(std::move(text));
  }
  return list;
}

Status check_file_name(const std::string& name) {
  const bool leads_elsewhere = name.empty() || name == "." || name == ".." ||
                               name.find('/') != std::string::npos ||
                               name.find('\0') != std::string::npos;
  if (leads_elsewhere) {
    return invalid_argument(
        "[case] \"{}\" is not the name of a file in the "
        "case's folder",
        name);
  }
  return {};
}

Status parse_feeds(const Json& run, CaseRun& out) {
  const auto it = run.find("feeds");
  if (it == run.end()) return {};
  if (!it->is_object()) {
    return invalid_argument("[case] \"feeds\" is not an object");
  }
  for (const auto& [port, file] : it->items()) {
    TAGFLOW_ASSIGN(std::string name, parse_text(file, "a feed's file"));
    TAGFLOW_RETURN_IF_ERROR(check_file_name(name));
    out.feeds.emplace_back(port, std::move(name));
  }
  return {};
}

Status parse_outcome(const Json& run, CaseRun& out) {
  const auto it = run.find("error");
  if (it == run.end()) {
    TAGFLOW_ASSIGN(out.expect, parse_list(run, "expect"));
    for (const std::string& name : out.expect) {
      TAGFLOW_RETURN_IF_ERROR(check_file_name(name));
    }
    if (out.expect.size() != out.fetches.size()) {
      return invalid_argument(
          "[case] \"fetches\" has length {}, but \"expect\" has length {}",
          out.fetches.size(), out.expect.size());
    }
    return {};
  }
  if (!it->is_object() || !it->contains("code")) {
    return invalid_argument("[case] \"error\" has no \"code\"");
  }
  TAGFLOW_ASSIGN(out.error_code, parse_text((*it)["code"], "an error code"));
  if (out.error_code.empty()) {
    return invalid_argument("[case] the error code is empty");
  }
  return {};
}

Result<CaseRun> parse_run(const Json& json) {
  if (!json.is_object()) {
    return invalid_argument("[case] a run is not an object");
  }
  CaseRun run;
  TAGFLOW_ASSIGN(run.targets, parse_list(json, "targets"));
  TAGFLOW_ASSIGN(run.fetches, parse_list(json, "fetches"));
  TAGFLOW_RETURN_IF_ERROR(parse_feeds(json, run));
  TAGFLOW_RETURN_IF_ERROR(parse_outcome(json, run));
  return run;
}

Result<CaseGradients> parse_gradients(const Json& json) {
  if (!json.is_object())
    return invalid_argument("[case] \"gradients\" is not an object");
  CaseGradients gradients;
  TAGFLOW_ASSIGN(gradients.ys, parse_list(json, "ys"));
  TAGFLOW_ASSIGN(gradients.xs, parse_list(json, "xs"));
  if (gradients.ys.empty() || gradients.xs.empty())
    return invalid_argument("[case] \"gradients\" has no \"ys\" or no \"xs\"");
  const auto it = json.find("order");
  if (it == json.end()) return gradients;
  if (!it->is_number_integer() || *it < 1 || *it > kMaxGradientOrder)
    return invalid_argument("[case] \"order\" is not a number from 1 to {}",
                            kMaxGradientOrder);
  gradients.order = it->get<int>();
  return gradients;
}

bool is_case(const fs::path& folder) {
  std::error_code code;
  return fs::exists(folder / "case.json", code) &&
         fs::exists(folder / "graph.pb", code);
}

}  // namespace

Result<Case> parse_case(std::string_view text) {
  const Json root = Json::parse(text, nullptr, false);
  if (!root.is_object()) {
    return invalid_argument("[case] the text is not a JSON object");
  }
  Case result;
  if (!root.contains("name") || !root.contains("runs")) {
    return invalid_argument("[case] there is no \"name\" or no \"runs\"");
  }
  TAGFLOW_ASSIGN(result.name, parse_text(root["name"], "\"name\""));
  if (!root["runs"].is_array()) {
    return invalid_argument("[case] \"runs\" is not a list");
  }
  for (const Json& json : root["runs"]) {
    TAGFLOW_ASSIGN(CaseRun run, parse_run(json));
    result.runs.push_back(std::move(run));
  }
  if (root.contains("gradients")) {
    TAGFLOW_ASSIGN(result.gradients, parse_gradients(root["gradients"]));
  }
  return result;
}

Result<std::vector<fs::path>> find_cases(const fs::path& folder) {
  if (is_case(folder)) return std::vector<fs::path>{folder};
  std::vector<fs::path> cases;
  std::error_code code;
  fs::directory_iterator entry(folder, code);
  for (; !code && entry != fs::directory_iterator(); entry.increment(code))
    if (is_case(entry->path())) cases.push_back(entry->path());
  if (code)
    return error(Code::kPermissionDenied, "[case] cannot read \"{}\": {}",
                 folder.string(), code.message());
  std::ranges::sort(cases);
  return cases;
}

Result<Case> load_case(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "case.json";
  TAGFLOW_ASSIGN(std::string text, io::read_file(path, kMaxCaseBytes));
  Result<Case> result = parse_case(text);
  if (result.ok()) return result;
  return std::move(result).status().with_prefix(
      fmt::format("\"{}\": ", path.string()));
}

Result<Tensor> load_case_tensor(const std::filesystem::path& path) {
  if (path.extension() != ".json") return io::read_npy(path);
  TAGFLOW_ASSIGN(std::string text, io::read_file(path));
  Result<Tensor> tensor = io::parse_string_tensor(text);
  if (tensor.ok()) return tensor;
  return std::move(tensor).status().with_prefix(
      fmt::format("\"{}\": ", path.string()));
}

}  // namespace tagflow::apps
