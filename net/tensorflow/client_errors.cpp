#include "net/tensorflow/client_errors.h"

#include <string>

#include "graph/fault.h"
#include "net/tensorflow/client_words.h"

namespace tagflow::net {
namespace {

std::string_view quoted_after(std::string_view message, size_t at) {
  const size_t end = message.find('"', at);
  return end == message.npos ? std::string_view()
                             : message.substr(at, end - at);
}

constexpr std::string_view kNodeOfClient = "\n\t [[{{node ";

Status in_form(const Status& status) {
  const Code code = status.code() == Code::kDeadlock ? Code::kFailedPrecondition
                                                     : status.code();
  const std::string_view node = node_in(status.message());
  const std::string words = client_words(status);
  const std::string text = words.empty() || status.message().starts_with(words)
                               ? std::string(status.message())
                               : fmt::format("{}: {}", words, status.message());
  if (node.empty()) return error(code, "{}", text);
  return error(code, "{}{}{}}}}}]]", text, kNodeOfClient, node);
}

}  // namespace

std::string_view node_in(std::string_view message) {
  // Where the engine says which node failed, at the end; elsewhere the first
  // that is named.
  constexpr std::string_view kWhere = " (node \"", kNode = "node \"";
  if (const size_t at = message.rfind(kWhere); at != message.npos)
    return quoted_after(message, at + kWhere.size());
  if (const size_t at = message.find(kNode); at != message.npos)
    return quoted_after(message, at + kNode.size());
  return {};
}

Status for_client(const Status& status) {
  if (status.ok() || status.message().find(kNodeOfClient) != std::string::npos)
    return status;  // it has the form already
  return guarded("service", [&] { return in_form(status); });
}

}  // namespace tagflow::net
