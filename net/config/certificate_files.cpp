#include "net/config/certificate_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "graph/fault.h"
#include "graph/write_error.h"
#include "net/config/small_file.h"
#include "net/link/certificates.h"
#include "net/link/socket.h"
#include "net/link/tls.h"
#include "net/transfer/identity.h"

namespace tagflow::net {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargest = size_t{1} << 20;  // bytes
constexpr std::chrono::hours kAuthorityLasts{24 * 365 * 20};
constexpr char kAuthority[] = "ca";

fs::path certificate_of(const fs::path& folder, const std::string& process) {
  return folder / (process + ".pem");
}

fs::path key_of(const fs::path& folder, const std::string& process) {
  return folder / (process + ".key");
}

Status cannot_write(const fs::path& path) {
  const int number = errno;
  return error(code_of_write(number, Code::kPermissionDenied),
               "[certs] cannot write \"{}\": {}", path.string(),
               std::strerror(number));
}

// A process that reads the file sees the old one, or all of the new one.
Status write_file(const fs::path& path, const std::string& text, mode_t mode) {
  const fs::path made = path.string() + ".new";
  ::unlink(made.c_str());
  {
    const Socket file(
        ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    // So few bytes are written at once, or not at all.
    if (file.descriptor() < 0 || ::write(file.descriptor(), text.data(),
                                         text.size()) != ssize_t(text.size()))
      return cannot_write(made);
  }
  if (::rename(made.c_str(), path.c_str()) != 0) return cannot_write(path);
  return {};
}

// Writes one after the other.
class Folder {
 public:
  explicit Folder(fs::path path) : path_(std::move(path)) {}

  Status check_free(const std::string& process) const {
    std::error_code ignored;
    for (const fs::path& each :
         {certificate_of(path_, process), key_of(path_, process)})
      if (fs::exists(each, ignored))
        return error(Code::kAlreadyExists,
                     "[certs] \"{}\" is there already; --renew keeps the "
                     "authority, and writes the others anew",
                     each.string());
    return {};
  }
  Status write(const std::string& process, const Certified& certified) {
    // A certificate without its key would be of no use, but the other way
    // round a reader keeps what it has.
    TAGFLOW_RETURN_IF_ERROR(
        add(key_of(path_, process), certified.key, S_IRUSR | S_IWUSR));
    return add(certificate_of(path_, process), certified.certificate,
               S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  }
  Result<Certified> read_authority() const {
    Certified authority;
    auto text = read_small_file(certificate_of(path_, kAuthority), kLargest,
                                Readers::kAnybody);
    if (!text.ok()) return std::move(text).status().with_prefix("[certs] ");
    auto key =
        read_small_file(key_of(path_, kAuthority), kLargest, Readers::kOwner);
    if (!key.ok()) return std::move(key).status().with_prefix("[certs] ");
    return Certified{*std::move(text), *std::move(key)};
  }
  std::vector<fs::path>& written() { return written_; }

 private:
  Status add(fs::path path, const std::string& text, mode_t mode) {
    TAGFLOW_RETURN_IF_ERROR(write_file(path, text, mode));
    written_.push_back(std::move(path));
    return {};
  }

  const fs::path path_;
  std::vector<fs::path> written_;
};

Result<std::vector<fs::path>> write_all(const CertificateFiles& files) {
  std::error_code failed;
  fs::create_directories(files.folder, failed);
  if (failed)
    return error(code_of_write(failed.value(), Code::kPermissionDenied),
                 "[certs] cannot make \"{}\": {}", files.folder.string(),
                 failed.message());
  Folder folder(files.folder);
  for (const CertificateFiles::Process& each : files.processes)
    TAGFLOW_RETURN_IF_ERROR(check_task(each.task));
  if (files.existing == Existing::kRefuse) {
    TAGFLOW_RETURN_IF_ERROR(folder.check_free(kAuthority));
    TAGFLOW_RETURN_IF_ERROR(folder.check_free(process_name({})));
    for (const CertificateFiles::Process& each : files.processes)
      TAGFLOW_RETURN_IF_ERROR(folder.check_free(process_name(each.task)));
  }
  Certified authority;
  if (files.existing == Existing::kRenew) {
    TAGFLOW_ASSIGN(authority, folder.read_authority());
  } else {
    TAGFLOW_ASSIGN(authority,
                   make_authority(fmt::format("tagflow {}", files.cluster),
                                  kAuthorityLasts));
  }
  // All are made before one is written.
  std::vector<std::pair<std::string, Certified>> made;
  const auto make = [&](const std::string& process, const std::string& name,
                        const std::vector<std::string>& hosts) -> Status {
    TAGFLOW_ASSIGN(Certified certified,
                   make_certificate(authority, {.subject = process,
                                                .names = {name},
                                                .hosts = hosts,
                                                .lasts = files.lasts}));
    made.emplace_back(process, std::move(certified));
    return {};
  };
  TAGFLOW_RETURN_IF_ERROR(
      make(process_name({}), certified_name(files.cluster, {}, 0), {}));
  for (const auto& [task, hosts] : files.processes)
    TAGFLOW_RETURN_IF_ERROR(
        make(process_name(task),
             certified_name(files.cluster, task.job, task.index), hosts));
  if (files.existing != Existing::kRenew)
    TAGFLOW_RETURN_IF_ERROR(folder.write(kAuthority, authority));
  for (const auto& [process, certified] : made)
    TAGFLOW_RETURN_IF_ERROR(folder.write(process, certified));
  return std::move(folder.written());
}

}  // namespace

Result<std::vector<fs::path>> write_certificates(
    const CertificateFiles& files) {
  return guarded("certs", [&] { return write_all(files); });
}

TlsFiles certificates_in(const fs::path& folder) {
  return {certificate_of(folder, kAuthority),
          certificate_of(folder, kProcessPattern),
          key_of(folder, kProcessPattern)};
}

}  // namespace tagflow::net
