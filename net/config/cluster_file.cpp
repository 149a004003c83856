#include "net/config/cluster_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "graph/fault.h"
#include "graph/status_text.h"
#include "net/config/small_file.h"
#include "net/transfer/identity.h"

namespace tagflow::net {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLargest = size_t{1} << 20;  // bytes
constexpr size_t kLongestHost = 255;          // bytes

template <class... Arguments>
Status wrong(fmt::format_string<Arguments...> format, Arguments&&... values) {
  return invalid_argument(
      "[cluster_file] {}",
      fmt::format(format, std::forward<Arguments>(values)...));
}

// Finds keys that an object has twice, of which the parser would keep one.
class KeyWatch {
 public:
  bool operator()(int /*depth*/, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key && !twice_) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!open_.back().insert(key).second) twice_ = key;
    }
    return true;
  }
  const std::optional<std::string>& twice() const { return twice_; }

 private:
  std::vector<std::set<std::string>> open_;  // the keys of open objects
  std::optional<std::string> twice_;
};

Result<Json> parse_json(std::string_view text) {
  // The parser would end there.
  if (text.find('\0') != text.npos)
    return wrong("it is not JSON: it has a byte 0");
  if (text.empty()) return wrong("it is empty");
  KeyWatch keys;
  try {
    Json json = Json::parse(text, std::ref(keys));
    if (keys.twice())
      return wrong("the key {:?} is there twice", *keys.twice());
    return json;
  } catch (const Json::parse_error& thrown) {
    return wrong("it is not JSON: see byte {}", thrown.byte);
  } catch (const Json::out_of_range&) {
    return wrong("it is not JSON: a number is too large");
  }
}

// Checks that it is an object with these keys.
Status check_keys(const Json& json, std::string_view what,
                  std::initializer_list<std::string_view> keys) {
  if (!json.is_object()) return wrong("{} is not an object", what);
  for (const auto& item : json.items())
    if (std::ranges::find(keys, item.key()) == keys.end())
      return wrong("{} has an unknown key {:?}; its keys are {}", what,
                   item.key(), fmt::join(keys, ", "));
  return {};
}

// The string of a key; `otherwise` if the key is left out.
Result<std::string> text_of(const Json& json, const std::string& what,
                            const char* key,
                            std::optional<std::string> otherwise = {}) {
  const auto found = json.find(key);
  if (found == json.end()) {
    if (otherwise) return *std::move(otherwise);
    return wrong("{} has no \"{}\"", what, key);
  }
  if (!found->is_string())
    return wrong("the \"{}\" of {} is not a string", key, what);
  return found->get<std::string>();
}

Result<Task> parse_task(const Json& json, const std::string& what) {
  Task task;
  TAGFLOW_ASSIGN(task.job, text_of(json, what, "job"));
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  const auto number = json.find("task");
  if (number == json.end()) return wrong("{} has no \"task\"", what);
  if (!number->is_number_unsigned() || number->get<uint64_t>() > kMost)
    return wrong("the \"task\" of {} is not a whole number from 0 to {}", what,
                 kMost);
  task.index = number->get<uint32_t>();
  Status named = check_task(task);
  if (!named.ok()) return wrong("{}: {}", what, named.message());
  return task;
}

Result<ClusterFile::Entry> parse_entry(const Json& json,
                                       const std::string& what) {
  TAGFLOW_RETURN_IF_ERROR(
      check_keys(json, what, {"job", "task", "address", "devices"}));
  ClusterFile::Entry entry;
  TAGFLOW_ASSIGN(entry.task, parse_task(json, what));
  TAGFLOW_ASSIGN(const std::string text, text_of(json, what, "address"));
  Result<Address> address = parse_address(text);
  if (address.ok() && (address->host.empty() || address->port == 0))
    address = invalid_argument("{:?} has no {}", text,
                               address->port == 0 ? "port" : "host");
  if (!address.ok())
    return wrong("the \"address\" of {}: {}", what, address.status().message());
  entry.address = *std::move(address);
  TAGFLOW_ASSIGN(entry.devices, text_of(json, what, "devices", ""));
  return entry;
}

Result<TlsFiles> parse_tls(const Json& json) {
  const std::string what = "\"tls\"";
  TAGFLOW_RETURN_IF_ERROR(check_keys(json, what, {"ca", "cert", "key"}));
  TlsFiles files;
  TAGFLOW_ASSIGN(files.ca, text_of(json, what, "ca"));
  TAGFLOW_ASSIGN(files.certificate, text_of(json, what, "cert"));
  TAGFLOW_ASSIGN(files.key, text_of(json, what, "key"));
  return files;
}

Status check_new(const ClusterFile& file, const ClusterFile::Entry& entry) {
  if (file.find(entry.task) != nullptr)
    return wrong("the task {} is there twice", entry.task.to_string());
  for (const ClusterFile::Entry& other : file.tasks)
    if (other.address.host == entry.address.host &&
        other.address.port == entry.address.port)
      return wrong("{} and {} have one address, {}", other.task.to_string(),
                   entry.task.to_string(), format_address(entry.address));
  return {};
}

}  // namespace

const ClusterFile::Entry* ClusterFile::find(const Task& task) const {
  const auto found = std::ranges::find(tasks, task, &Entry::task);
  return found == tasks.end() ? nullptr : &*found;
}

Result<Address> parse_address(std::string_view text) {
  const bool is_bracketed = text.starts_with('[');
  const size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, std::min(colon, text.size()));
  if (is_bracketed && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (is_bracketed || host.find(':') != host.npos)
    return invalid_argument(
        "{:?} is not an address: write HOST:PORT, or [IPV6]:PORT", text);
  if (colon == text.npos)
    return invalid_argument("{:?} has no port: write HOST:PORT", text);
  const bool is_plain = std::ranges::all_of(host, [](char c) {
    return c > ' ' && c < '\x7f' && c != '[' && c != ']';
  });
  if (!is_plain || host.size() > kLongestHost)
    return invalid_argument("{:?} is not the name of a host",
                            host.substr(0, kLongestHost));
  Address address{std::string(host), 0};
  const std::string_view port = text.substr(colon + 1);
  const char* const end = port.data() + port.size();
  const auto [stop, code] = std::from_chars(port.data(), end, address.port);
  if (code != std::errc() || stop != end)
    return invalid_argument(
        "{:?} has the port {:?}, which is not a number from 0 to 65535", text,
        port);
  return address;
}

std::string format_address(const Address& address) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", address.host, address.port)
                 : fmt::format("{}:{}", address.host, address.port);
}

Result<ClusterFile> parse_cluster_file(std::string_view text) {
  return guarded("cluster_file", [&]() -> Result<ClusterFile> {
    TAGFLOW_ASSIGN(const Json json, parse_json(text));
    TAGFLOW_RETURN_IF_ERROR(
        check_keys(json, "the file", {"name", "secret_file", "tasks", "tls"}));
    ClusterFile file;
    TAGFLOW_ASSIGN(file.name, text_of(json, "the file", "name", file.name));
    TAGFLOW_ASSIGN(file.secret_file,
                   text_of(json, "the file", "secret_file", ""));
    const auto tasks = json.find("tasks");
    if (tasks == json.end() || !tasks->is_array() || tasks->empty())
      return wrong("the file has no list \"tasks\" with a task in it");
    for (size_t i = 0; i < tasks->size(); ++i) {
      TAGFLOW_ASSIGN(auto entry,
                     parse_entry((*tasks)[i], fmt::format("tasks[{}]", i)));
      TAGFLOW_RETURN_IF_ERROR(check_new(file, entry));
      file.tasks.push_back(std::move(entry));
    }
    if (const auto tls = json.find("tls"); tls != json.end()) {
      TAGFLOW_ASSIGN(file.tls, parse_tls(*tls));
    }
    return file;
  });
}

std::string format_cluster_file(const ClusterFile& file) {
  Json json = {{"name", file.name}};
  if (!file.secret_file.empty())
    json["secret_file"] = file.secret_file.string();
  Json& tasks = json["tasks"] = Json::array();
  for (const ClusterFile::Entry& entry : file.tasks) {
    tasks.push_back({{"job", entry.task.job},
                     {"task", entry.task.index},
                     {"address", format_address(entry.address)}});
    if (!entry.devices.empty()) tasks.back()["devices"] = entry.devices;
  }
  if (!file.tls.empty())
    json["tls"] = {{"ca", file.tls.ca.string()},
                   {"cert", file.tls.certificate.string()},
                   {"key", file.tls.key.string()}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ClusterFile> read_cluster_file(const std::filesystem::path& path) {
  const auto text = read_small_file(path, kLargest, Readers::kAnybody);
  if (!text.ok()) return Status(text.status()).with_prefix("[cluster_file] ");
  auto file = parse_cluster_file(*text);
  if (!file.ok()) return name_file(std::move(file).status(), path.string());
  for (std::filesystem::path* each : {&file->secret_file, &file->tls.ca,
                                      &file->tls.certificate, &file->tls.key})
    if (!each->empty()) *each = path.parent_path() / *each;
  return file;
}

}  // namespace tagflow::net
