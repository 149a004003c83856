#include "net/serving/rest_path.h"

#include <charconv>
#include <optional>
#include <utility>

namespace tagflow::net::serving {
namespace {

constexpr std::string_view kModels = "/v1/models/";

using Verb = RestPath::Verb;
constexpr std::pair<std::string_view, Verb> kVerbs[] = {
    {":predict", Verb::kPredict},
    {":classify", Verb::kClassify},
    {":regress", Verb::kRegress},
    {"/metadata", Verb::kMetadata}};

std::optional<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

}  // namespace

Result<RestPath> parse_rest_path(std::string_view target) {
  const auto refuse = [&] {
    return error(Code::kNotFound,
                 "[rest] there is no {:?}; there are {}NAME, and, behind that, "
                 "/versions/NUMBER or /labels/LABEL, and then /metadata, "
                 ":predict, :classify or :regress",
                 target, kModels);
  };
  std::string_view rest = target.substr(0, target.find('?'));
  if (!rest.starts_with(kModels)) return refuse();
  rest.remove_prefix(kModels.size());
  RestPath path;
  for (const auto& [ending, verb] : kVerbs) {
    if (!rest.ends_with(ending)) continue;
    rest.remove_suffix(ending.size());
    path.verb = verb;
    break;
  }
  const size_t slash = rest.find('/');
  path.model.name = rest.substr(0, slash);
  if (path.model.name.empty()) return refuse();
  if (slash == rest.npos) return path;
  rest.remove_prefix(slash + 1);
  const size_t next = rest.find('/');
  if (next == rest.npos) return refuse();
  const std::string_view kind = rest.substr(0, next);
  const std::string_view value = rest.substr(next + 1);
  if (value.empty() || value.find('/') != value.npos) return refuse();
  if (kind == "labels") {
    path.model.label = value;
    return path;
  }
  path.model.version = number_in(value);
  if (kind == "versions" && path.model.version) return path;
  return refuse();
}

}  // namespace tagflow::net::serving
