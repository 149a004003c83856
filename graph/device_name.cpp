#include "graph/device_name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <span>
#include <utility>

namespace tagflow::graph {
namespace {

// The length at which messages truncate an invalid name.
constexpr size_t kShownDeviceText = 100;

// Only ASCII letters: names have the same meaning in every locale.
char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }
char upper(char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; }

std::string mapped(std::string_view text, char (*map)(char)) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), map);
  return result;
}

// A letter, then letters, digits and '_'.
bool is_word(std::string_view text) {
  const auto is_letter = [](char c) {
    return lower(c) >= 'a' && lower(c) <= 'z';
  };
  return !text.empty() && is_letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
         });
}

// Types that are keywords: "/gpu:0". Never removed. Thread-safe.
class ShortTypes {
 public:
  static ShortTypes& global() {
    static auto* types = new ShortTypes;
    return *types;
  }
  void add(std::string type) {
    std::unique_lock lock(mutex_);
    types_.insert(std::move(type));
  }
  bool contains(std::string_view type) const {
    std::shared_lock lock(mutex_);
    return types_.contains(type);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::set<std::string, std::less<>> types_ = {"CPU", "GPU", "TPU", "STREAM"};
};

// Parses one name. Errors lack the name.
class NameParser {
 public:
  Status parse(std::string_view text) {
    if (text.starts_with('/')) {
      text.remove_prefix(1);
    } else if (is_local(text)) {
      return take_device(text);
    }
    while (!text.empty()) {
      const size_t slash = text.find('/');
      TAGFLOW_RETURN_IF_ERROR(take_part(text.substr(0, slash)));
      if (slash == std::string_view::npos) break;
      text.remove_prefix(slash + 1);
      if (text.empty()) return invalid_argument("it ends with \"/\"");
    }
    return {};
  }
  DeviceName take() && { return std::move(name_); }

 private:
  enum Part { kJob, kReplica, kTask, kDevice, kParts };
  static constexpr std::string_view kWords[] = {"job", "replica", "task",
                                                "device"};

  // "TYPE" or "TYPE:ID" of any type: a device without its task.
  static bool is_local(std::string_view text) {
    const std::string word = mapped(text.substr(0, text.find(':')), lower);
    return !text.empty() && text.find('/') == std::string_view::npos &&
           std::ranges::find(kWords, word) == std::end(kWords);
  }

  Status take_part(std::string_view text) {
    const size_t colon = text.find(':');
    const std::string word = mapped(text.substr(0, colon), lower);
    const auto found = std::ranges::find(kWords, word);
    if (found == std::end(kWords)) {
      if (!ShortTypes::global().contains(mapped(word, upper)))
        return invalid_argument("{:?} is none of job, replica, task and device",
                                text.substr(0, kShownDeviceText));
      return take_device(text);
    }
    if (colon == std::string_view::npos)
      return invalid_argument("{} has no value", word);
    const std::string_view value = text.substr(colon + 1);
    switch (Part(found - kWords)) {
      case kJob:
        TAGFLOW_RETURN_IF_ERROR(mark(kJob));
        if (value == "*") return {};
        if (!is_word(value))
          return invalid_argument("{:?} is not a name of a job",
                                  value.substr(0, kShownDeviceText));
        name_.job = mapped(value, lower);
        return {};
      case kReplica:
        TAGFLOW_RETURN_IF_ERROR(mark(kReplica));
        return take_number(word, value, name_.replica);
      case kTask:
        TAGFLOW_RETURN_IF_ERROR(mark(kTask));
        return take_number(word, value, name_.task);
      default:
        return take_device(value);
    }
  }

  // "TYPE", "TYPE:ID", each of them may be "*".
  Status take_device(std::string_view text) {
    TAGFLOW_RETURN_IF_ERROR(mark(kDevice));
    const size_t colon = text.find(':');
    const std::string_view type = text.substr(0, colon);
    if (type != "*") {
      if (!is_word(type))
        return invalid_argument("{:?} is not a type of a device",
                                type.substr(0, kShownDeviceText));
      name_.type = mapped(type, upper);
    }
    if (colon == std::string_view::npos) return {};
    return take_number("the device", text.substr(colon + 1), name_.id);
  }

  Status take_number(std::string_view what, std::string_view text,
                     std::optional<int>& number) {
    if (text == "*") return {};
    int value = 0;
    const char* last = text.data() + text.size();
    const auto [end, code] = std::from_chars(text.data(), last, value);
    if (code != std::errc() || end != last || value < 0 || text[0] == '-')
      return invalid_argument("{:?}, of {}, is not a number from 0 to {}",
                              text.substr(0, kShownDeviceText), what,
                              std::numeric_limits<int>::max());
    number = value;
    return {};
  }

  Status mark(Part part) {
    if (std::exchange(has_[part], true))
      return invalid_argument("it has more than one {}", kWords[part]);
    return {};
  }

  DeviceName name_;
  std::array<bool, kParts> has_ = {};
};

template <class T>
bool says_so(const std::optional<T>& own, const std::optional<T>& other) {
  return !own || own == other;
}

// Takes parts from `other`; false if the two contradict each other.
template <class T>
bool merge_part(std::optional<T>& own, const std::optional<T>& other) {
  if (own && other) return *own == *other;
  if (other) own = other;
  return true;
}

template <class T>
void override_part(std::optional<T>& own, const std::optional<T>& inner) {
  if (inner) own = inner;
}

}  // namespace

Result<DeviceName> DeviceName::parse(std::string_view text) {
  NameParser parser;
  Status status = parser.parse(text);
  if (!status.ok())
    return std::move(status).with_prefix(fmt::format(
        "[device] the name {:?}: ", text.substr(0, kShownDeviceText)));
  return std::move(parser).take();
}

DeviceName DeviceName::local(std::string_view type, int id) {
  return {"localhost", 0, 0, mapped(type, upper), id};
}

bool DeviceName::is_full() const {
  return job && replica && task && type && id;
}

bool DeviceName::is_empty() const { return *this == DeviceName(); }

bool DeviceName::matches(const DeviceName& device) const {
  return says_so(job, device.job) && says_so(replica, device.replica) &&
         says_so(task, device.task) && says_so(type, device.type) &&
         says_so(id, device.id);
}

Result<DeviceName> DeviceName::merged(const DeviceName& other) const {
  DeviceName all = *this;
  const auto conflict = [&](std::string_view part) {
    return invalid_argument("[device] \"{}\" and \"{}\" differ in the {}",
                            to_string(), other.to_string(), part);
  };
  if (!merge_part(all.job, other.job)) return conflict("job");
  if (!merge_part(all.replica, other.replica)) return conflict("replica");
  if (!merge_part(all.task, other.task)) return conflict("task");
  if (!merge_part(all.type, other.type)) return conflict("device type");
  if (!merge_part(all.id, other.id)) return conflict("device id");
  return all;
}

DeviceName DeviceName::overridden_by(const DeviceName& inner) const {
  DeviceName all = *this;
  if (all.type && inner.type && *all.type != *inner.type) all.id.reset();
  override_part(all.job, inner.job);
  override_part(all.replica, inner.replica);
  override_part(all.task, inner.task);
  override_part(all.type, inner.type);
  override_part(all.id, inner.id);
  return all;
}

std::string DeviceName::to_string() const {
  std::string text;
  if (job) text += "/job:" + *job;
  if (replica) text += fmt::format("/replica:{}", *replica);
  if (task) text += fmt::format("/task:{}", *task);
  if (type || id)
    text += fmt::format("/device:{}:{}", type.value_or("*"),
                        id ? std::to_string(*id) : "*");
  return text;
}

std::string DeviceName::short_name() const {
  return fmt::format("{}:{}", type.value_or("?"), id.value_or(0));
}

void add_short_device_type(std::string_view type) {
  if (is_word(type)) ShortTypes::global().add(mapped(type, upper));
}

std::string_view short_device_name(std::string_view full) {
  constexpr std::string_view kMark = "/device:";
  const size_t mark = full.find(kMark);
  return mark == full.npos ? full : full.substr(mark + kMark.size());
}

}  // namespace tagflow::graph
