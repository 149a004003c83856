#include "net/config/tls_files.h"

#include <sys/stat.h>

#include <array>
#include <optional>
#include <utility>

#include "graph/fault.h"
#include "graph/status_text.h"
#include "net/config/small_file.h"
#include "net/link/tls.h"

namespace tagflow::net {
namespace {

constexpr size_t kLargest = size_t{1} << 20;  // bytes

Result<TlsTexts> read_texts(const TlsFiles& files) {
  TlsTexts texts;
  TAGFLOW_ASSIGN(texts.ca,
                 read_small_file(files.ca, kLargest, Readers::kAnybody));
  TAGFLOW_ASSIGN(texts.certificate, read_small_file(files.certificate, kLargest,
                                                    Readers::kAnybody));
  TAGFLOW_ASSIGN(texts.key,
                 read_small_file(files.key, kLargest, Readers::kOwner));
  return texts;
}

// What tells one state of the files from another.
class Stamp {
 public:
  explicit Stamp(const TlsFiles& files) {
    const std::filesystem::path* const paths[] = {&files.ca, &files.certificate,
                                                  &files.key};
    for (size_t i = 0; i < all_.size(); ++i) {
      struct stat info {};
      if (::stat(paths[i]->c_str(), &info) != 0) continue;
      all_[i] = {info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                 int64_t(info.st_ino), info.st_size};
    }
  }
  bool operator==(const Stamp&) const = default;

 private:
  std::array<std::array<int64_t, 4>, 3> all_{};  // zeros: there is none
};

}  // namespace

std::string process_name(const Task& task) {
  return task.job.empty() ? "master"
                          : fmt::format("{}-{}", task.job, task.index);
}

TlsFiles TlsFiles::of(const std::string& process) const {
  const auto fill = [&process](const std::filesystem::path& path) {
    std::string text = path.string();
    constexpr std::string_view kPattern = kProcessPattern;
    for (size_t at = 0; (at = text.find(kPattern, at)) != text.npos;
         at += process.size())
      text.replace(at, kPattern.size(), process);
    return std::filesystem::path(text);
  };
  return {fill(ca), fill(certificate), fill(key)};
}

Result<std::shared_ptr<Tls>> load_tls(const TlsFiles& files) {
  if (files.empty()) return std::shared_ptr<Tls>();
  return guarded("net|tls", [&]() -> Result<std::shared_ptr<Tls>> {
    if (files.ca.empty() || files.certificate.empty() || files.key.empty())
      return invalid_argument(
          "[net|tls] TLS needs three files: of the authority, of the "
          "certificate and of its key");
    // Before they are read: what changes meanwhile is read again.
    Stamp stamp(files);
    auto texts = read_texts(files);
    if (!texts.ok()) return std::move(texts).status().with_prefix("[net|tls] ");
    auto changes = [files, stamp]() mutable -> std::optional<TlsTexts> {
      const Stamp now(files);
      if (now == stamp) return std::nullopt;
      auto changed = read_texts(files);
      if (!changed.ok()) return std::nullopt;
      stamp = now;
      return *std::move(changed);
    };
    auto made = Tls::make(*texts, std::move(changes));
    if (!made.ok())
      return name_file(std::move(made).status(), files.certificate.string());
    return made;
  });
}

}  // namespace tagflow::net
