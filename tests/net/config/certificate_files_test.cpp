#include "net/config/certificate_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "net/link/tls.h"
#include "tests/net/link/loopback.h"
#include "tests/temp_folder.h"

namespace tagflow::net {
namespace {

namespace fs = std::filesystem;

CertificateFiles files_in(const fs::path& folder) {
  return {.folder = folder,
          .cluster = "mine",
          .lasts = std::chrono::hours(1),
          .processes = {{{"worker", 0}, {}}, {{"ps", 3}, {"ann.example"}}}};
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

}  // namespace

TEST_CASE("each process of a cluster gets a certificate that has its name") {
  const testing::TempFolder temporary("certificates");
  const fs::path folder = temporary.path() / "certs";
  const auto written = write_certificates(files_in(folder));
  INFO(written.status().to_string());
  REQUIRE(written.ok());
  CHECK(written->size() == 8);
  const TlsFiles files = certificates_in(folder);
  const std::pair<Task, std::string> processes[] = {
      {{"worker", 0}, "tagflow://mine/worker/0"},
      {{"ps", 3}, "tagflow://mine/ps/3"},
      {{}, "tagflow://mine/master"}};
  for (const auto& [task, name] : processes) {
    const TlsFiles own = files.of(process_name(task));
    CHECK(mode_of(own.key) == 0600);
    const auto tls = load_tls(own);
    INFO(tls.status().to_string());
    REQUIRE(tls.ok());
    CHECK((*tls)->check_own(name).ok());
    CHECK(mentions((*tls)->check_own("tagflow://mine/worker/9"),
                   "is for " + name + ", not tagflow://mine/worker/9"));
  }
}

TEST_CASE("certificates that are there stay, unless they are renewed") {
  const testing::TempFolder temporary("renewed_certificates");
  CertificateFiles files = files_in(temporary.path() / "certs");
  files.existing = Existing::kRenew;
  CHECK(write_certificates(files).status().code() == Code::kNotFound);
  files.existing = Existing::kRefuse;
  REQUIRE(write_certificates(files).ok());
  const fs::path authority = files.folder / "ca.pem";
  const fs::path worker = files.folder / "worker-0.pem";
  const std::string first[] = {text_of(authority), text_of(worker)};
  const Status refused = write_certificates(files).status();
  CHECK(refused.code() == Code::kAlreadyExists);
  CHECK(mentions(refused, "ca.pem\" is there already"));
  files.existing = Existing::kRenew;
  REQUIRE(write_certificates(files).ok());
  CHECK(text_of(authority) == first[0]);
  CHECK(text_of(worker) != first[1]);
  CHECK(load_tls(certificates_in(files.folder).of("worker-0")).ok());
  files.existing = Existing::kReplace;
  REQUIRE(write_certificates(files).ok());
  CHECK(text_of(authority) != first[0]);
}

TEST_CASE("files of certificates are read again when they have changed") {
  const testing::TempFolder temporary("changed_certificates");
  CertificateFiles files = files_in(temporary.path() / "certs");
  REQUIRE(write_certificates(files).ok());
  const TlsFiles all = certificates_in(files.folder);
  const auto worker = load_tls(all.of("worker-0"));
  REQUIRE(worker.ok());
  using Side = TlsSession::Side;
  // Whether the worker, which goes on, and a new process trust each other.
  const auto fit = [&] {
    const auto master = load_tls(all.of("master"));
    REQUIRE(master.ok());
    auto [here, there] = connected_sockets();
    REQUIRE(prepare_socket(here).ok());
    REQUIRE(prepare_socket(there).ok());
    const auto a = (*worker)->start(here.descriptor(), Side::kAcceptor);
    const auto b = (*master)->start(there.descriptor(), Side::kConnector, "x");
    REQUIRE(a.ok());
    REQUIRE(b.ok());
    for (;;) {
      const auto at_b = (*b)->shake("b");
      const auto at_a = (*a)->shake("a");
      if (!at_a.ok() || !at_b.ok()) return false;
      if (*at_a == TlsSession::Wants::kNothing &&
          *at_b == TlsSession::Wants::kNothing)
        return true;
    }
  };
  CHECK(fit());
  // With another authority, the old certificate would be of no use.
  files.existing = Existing::kReplace;
  REQUIRE(write_certificates(files).ok());
  CHECK(fit());
  // What is not whole is not taken.
  std::ofstream(files.folder / "worker-0.pem") << "half";
  CHECK(fit());
}

TEST_CASE("files of certificates that are of no use are named") {
  const testing::TempFolder temporary("wrong_certificates");
  const CertificateFiles files = files_in(temporary.path() / "certs");
  REQUIRE(write_certificates(files).ok());
  const TlsFiles good = certificates_in(files.folder).of("worker-0");
  CHECK(*load_tls({}) == nullptr);
  TlsFiles wrong = good;
  wrong.key.clear();
  CHECK(mentions(load_tls(wrong).status(), "TLS needs three files"));
  wrong.key = files.folder / "nobody.key";
  CHECK(load_tls(wrong).status().code() == Code::kNotFound);
  wrong.key = files.folder / "ps-3.key";
  CHECK(mentions(load_tls(wrong).status(), "worker-0.pem: "));
  CHECK(mentions(load_tls(wrong).status(),
                 "the key is not that of the certificate"));
  fs::permissions(good.key, fs::perms::group_read, fs::perm_options::add);
  CHECK(load_tls(good).status().code() == Code::kPermissionDenied);
  CHECK(mentions(load_tls(good).status(), "worker-0.key"));
}

TEST_CASE("certificates are made for tasks and hosts that can be") {
  const testing::TempFolder temporary("impossible_certificates");
  CertificateFiles files = files_in(temporary.path() / "certs");
  files.processes[0].task.job = "A/b";
  CHECK(write_certificates(files).status().code() == Code::kInvalidArgument);
  files.processes[0].task.job = "worker";
  files.processes[1].hosts = {"a,b"};
  CHECK(write_certificates(files).status().code() == Code::kInvalidArgument);
  CHECK_FALSE(fs::exists(files.folder / "ca.pem"));
}

}  // namespace tagflow::net
