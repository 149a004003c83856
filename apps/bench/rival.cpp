#include "apps/bench/rival.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "an unknown processor";
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make() {
  std::string path = (fs::temp_directory_path() / "tagflow-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    return error(Code::kPermissionDenied,
                 "[bench] cannot make a temporary folder \"{}\"", path);
  }
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code code;
  if (!path_.empty()) fs::remove_all(path_, code);
}

Result<Rival> Rival::start(const std::string& python, const std::string& script,
                           const fs::path& manifest) {
  TAGFLOW_ASSIGN(
      ChildProcess process,
      ChildProcess::start({python, "-c", script, manifest.string()}));
  const Result<std::string> line = process.read_line();
  if (!line.ok() || !line->starts_with("ready ")) {
    return error(Code::kFailedPrecondition,
                 "[bench] \"{}\" did not start: can it import tensorflow?",
                 python);
  }
  return Rival(std::move(process), line->substr(6));
}

Result<std::string> Rival::ask(size_t entry) {
  TAGFLOW_RETURN_IF_ERROR(process_.write_line(std::to_string(entry)));
  return process_.read_line();
}

std::string caption(const Rival& rival, int rounds) {
  const std::string text = fmt::format(
      "Medians of {} round{} on {} hardware threads, {}, with TensorFlow {}; "
      "both sides in the same minutes, since a machine may be half as fast at "
      "other times.",
      rounds, rounds == 1 ? "" : "s", sysconf(_SC_NPROCESSORS_ONLN),
      processor_name(), rival.version());
  constexpr size_t kColumns = 80;
  std::istringstream words(text);
  std::string lines;
  size_t column = 0;
  for (std::string word; words >> word;) {
    if (column > 0 && column + 1 + word.size() > kColumns) {
      lines += '\n';
      column = 0;
    } else if (column > 0) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines + '\n';
}

std::string four_digits(double value) {
  return value < 1e4 ? fmt::format("{:.4g}", value)
                     : fmt::format("{:.0f}", value);
}

}  // namespace tagflow::apps
