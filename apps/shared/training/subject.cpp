#include "apps/shared/training/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "apps/shared/io/file.h"
#include "devices/files/crc32c.h"

namespace tagflow::training {
namespace {

namespace fs = std::filesystem;

std::string text_of(const Subject& subject) {
  std::string text;
  for (const auto& [name, value] : subject)
    text += fmt::format("{}: {}\n", name, value);
  return text;
}

// The value of the line of that name, or empty.
std::string_view value_in(std::string_view text, const std::string& name) {
  const std::string begin = name + ": ";
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(begin)) return line.substr(begin.size());
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return {};
}

}  // namespace

fs::path subject_file(const fs::path& folder) { return folder / "subject.txt"; }

Status check_subject(const fs::path& folder, const Subject& subject) {
  std::error_code code;
  if (!fs::exists(subject_file(folder), code)) return {};
  TAGFLOW_ASSIGN(const std::string text, io::read_file(subject_file(folder)));
  for (const auto& [name, value] : subject) {
    const std::string_view known = value_in(text, name);
    if (known != value)
      return error(Code::kFailedPrecondition,
                   "[--save] {:?} is of a training whose {} is {}, not {}; "
                   "--save DIR names another folder, and --fresh begins anew "
                   "in this one",
                   folder.string(), name, known.empty() ? "none" : known,
                   value);
  }
  return {};
}

Status keep_subject(const fs::path& folder, const Subject& subject) {
  std::error_code code;
  if (fs::exists(subject_file(folder), code)) return {};
  return io::write_file(subject_file(folder), text_of(subject));
}

void DataSum::add(std::string_view bytes) {
  sum_ = checkpoint::extend_crc32c(sum_, bytes);
}

std::string DataSum::describe(int64_t count, std::string_view examples) const {
  return fmt::format("{} {}, checksum {:08x}", count, examples, sum_);
}

}  // namespace tagflow::training
