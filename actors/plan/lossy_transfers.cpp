#include "actors/plan/lossy_transfers.h"

#include "graph/counted.h"
#include "graph/node_name.h"

namespace tagflow::actors {
namespace {

constexpr const char* kAll = "*";

// "name" becomes "name:0"; malformed names are not changed.
std::string full_name(const std::string& text) {
  const auto parsed = graph::parse_endpoint(text);
  return parsed.ok() ? fmt::format("{}:{}", parsed->first, parsed->second)
                     : text;
}

std::string list_some(const std::set<std::string>& names) {
  constexpr size_t kShown = 5;
  return first_of(names, kShown, [](const std::string& name) {
    return fmt::format("\"{}\"", name);
  });
}

}  // namespace

LossyTransfers::LossyTransfers(std::span<const std::string> names)
    : names_(names) {}

bool LossyTransfers::is_meant(const graph::Endpoint& source, bool is_fetched) {
  const std::string tensor = source.to_string();
  sent_.insert(tensor);
  bool found = false;
  for (const std::string& name : names_) {
    const bool is_all = name == kAll;
    if (is_all ? is_fetched : full_name(name) != tensor) continue;
    taken_.insert(is_all ? kAll : tensor);
    found = true;
  }
  return found;
}

Result<std::vector<std::string>> LossyTransfers::warnings(
    const graph::Graph& graph) const {
  std::vector<std::string> warnings;
  for (const std::string& name : names_) {
    if (taken_.contains(name == kAll ? name : full_name(name))) continue;
    if (name != kAll)
      TAGFLOW_RETURN_IF_ERROR(
          graph.endpoint(name).status().with_prefix("[lossy] "));
    warnings.push_back(fmt::format(
        "[lossy] \"{}\" matches no transfer: {}", name,
        sent_.empty() ? "no float tensor is sent between devices"
        : name == kAll
            ? fmt::format("all sent tensors are fetched: {}", list_some(sent_))
            : fmt::format("the sent float tensors are {}", list_some(sent_))));
  }
  return warnings;
}

}  // namespace tagflow::actors
