// tagflow cluster: a cluster of this machine, for a try.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "apps/shared/io/file.h"
#include "apps/shared/io/private_folder.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/end_signals.h"
#include "apps/shared/runs/local_workers.h"
#include "apps/tagflow/cluster_certs.h"
#include "apps/tagflow/cluster_drain.h"
#include "apps/tagflow/cluster_status.h"
#include "apps/tagflow/cluster_trace.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/worker_arguments.h"
#include "graph/counted.h"
#include "net/config/certificate_files.h"
#include "net/config/cluster_file.h"
#include "net/config/secret_file.h"
#include "net/link/socket.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

// A cluster for a try does not run for longer.
constexpr std::chrono::hours kCertificatesLast{24 * 365};

struct StartCommand {
  int count = 1;
  std::string devices;
  std::string file;  // empty: in a new folder for temporary files
  int workers = 0;
  std::vector<std::string> op_libraries;
  std::string file_root;
  std::string checkpoints;
  double drain_time = 0;  // seconds
  bool respawns = false;
  bool tls = false;
};

constexpr char kFile[] = "cluster.json";  // in a new folder

fs::path secret_of(const fs::path& file) { return file.string() + ".secret"; }
// A folder.
fs::path certificates_of(const fs::path& file) {
  return file.string() + ".certs";
}

// The lock of a folder of this user, which ends with its process. -1 if there
// is no such folder, or if another one has it and the mode has LOCK_NB.
int lock_folder(const fs::path& folder, int mode) {
  const int lock =
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat found {};
  if (lock < 0 || (::fstat(lock, &found) == 0 && found.st_uid == geteuid() &&
                   ::flock(lock, mode) == 0))
    return lock;
  ::close(lock);
  return -1;
}

// Whether the path names an open file.
bool is_at(const net::Socket& file, const fs::path& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(file.descriptor(), &opened) == 0 &&
         ::lstat(path.c_str(), &named) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

// Opens the secret of a cluster file, which is made if the flags have O_CREAT,
// and locks it. Only who has the lock writes or removes a secret.
// FailedPrecondition if a cluster that runs has it.
Result<net::Socket> lock_secret(const fs::path& file, int flags) {
  const fs::path secret = secret_of(file);
  for (;;) {
    // Without waiting for the other end of a pipe.
    net::Socket lock(::open(secret.c_str(),
                            flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                            S_IRUSR | S_IWUSR));
    if (lock.descriptor() < 0) return net::secret_error(secret, errno);
    struct stat opened {};
    if (::fstat(lock.descriptor(), &opened) != 0)
      return net::secret_error(secret, errno);
    // Another name of the file may be that of something else.
    if (!S_ISREG(opened.st_mode) || opened.st_uid != geteuid() ||
        (opened.st_mode & (S_IRWXG | S_IRWXO)) != 0 || opened.st_nlink > 1)
      return error(Code::kPermissionDenied,
                   "[cluster] {:?} is there, and is not a regular file with "
                   "one name that only this user may use",
                   secret.string());
    if (::flock(lock.descriptor(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return net::secret_error(secret, errno);
      return error(Code::kFailedPrecondition,
                   "[cluster] {:?} belongs to a cluster that runs",
                   file.string());
    }
    // The cluster that had the lock may have removed the file meanwhile.
    if (is_at(lock, secret)) return lock;
  }
}

// Removes what clusters without --file have left that were killed. A folder of
// something else has no such file; one that runs with --file may be in a folder
// of such a name.
void remove_left() {
  std::error_code end, ignored;
  for (fs::directory_iterator at(fs::temp_directory_path(end), end);
       !end && at != fs::directory_iterator(); at.increment(end)) {
    const fs::path& folder = at->path();
    if (!folder.filename().string().starts_with(io::PrivateFolder::kPrefix))
      continue;
    const int lock = lock_folder(folder, LOCK_EX | LOCK_NB);
    if (lock < 0) continue;
    if (const auto secret = lock_secret(folder / kFile, O_RDONLY);
        secret.ok()) {
      fs::remove(folder / kFile, ignored);
      fs::remove_all(certificates_of(folder / kFile), ignored);
      // Last: without it, the others would not be found again.
      fs::remove(secret_of(folder / kFile), ignored);
      fs::remove(folder, ignored);  // if it is empty
    }
    ::close(lock);
  }
}

// The files of a cluster, which are removed with it.
class ClusterFiles {
 public:
  ClusterFiles() = default;
  ClusterFiles(const ClusterFiles&) = delete;
  ClusterFiles& operator=(const ClusterFiles&) = delete;
  ~ClusterFiles() {
    // Otherwise the paths may be those of another cluster.
    if (is_at(lock_, secret())) {
      std::error_code ignored;
      if (has_file_) fs::remove(file_, ignored);
      for (const fs::path& each : certificates_) fs::remove(each, ignored);
      if (!certificates_.empty()) fs::remove(folder(), ignored);
      // Last: then the next one may begin.
      fs::remove(secret(), ignored);
    }
    if (folder_lock_ >= 0) ::close(folder_lock_);
  }

  // Chooses the paths, and writes the secret.
  Status make(const std::string& file) {
    file_ = file;
    if (file.empty()) {
      remove_left();
      TAGFLOW_ASSIGN(io::PrivateFolder folder, io::PrivateFolder::make());
      folder_.emplace(std::move(folder));
      // Before there is a secret.
      folder_lock_ = lock_folder(folder_->path(), LOCK_EX);
      file_ = folder_->path() / kFile;
    }
    TAGFLOW_RETURN_IF_ERROR(io::check_writable(file_));
    std::error_code ignored;
    if (const fs::file_status found = fs::status(file_, ignored);
        fs::exists(found) && !fs::is_regular_file(found))
      return error(Code::kPermissionDenied,
                   "[cluster] {:?} is there, and is not a regular file",
                   file_.string());
    // The secret of a cluster that was killed is free.
    TAGFLOW_ASSIGN(lock_, lock_secret(file_, O_RDWR | O_CREAT));
    return net::draw_secret(lock_, secret());
  }
  // Certificates of the tasks 0 to N - 1 of the job "worker", and of masters.
  // REQUIRES: make() was called: so those that are there are not in use.
  Status make_certificates(const std::string& cluster, int count) {
    net::CertificateFiles files{.folder = folder(),
                                .cluster = cluster,
                                .lasts = kCertificatesLast,
                                .existing = net::Existing::kReplace};
    for (int i = 0; i < count; ++i)
      files.processes.push_back({{"worker", uint32_t(i)}, {}});
    TAGFLOW_ASSIGN(certificates_, net::write_certificates(files));
    return {};
  }
  Status write(const net::ClusterFile& cluster) {
    TAGFLOW_RETURN_IF_ERROR(
        io::write_file(file_, net::format_cluster_file(cluster)));
    has_file_ = true;
    return {};
  }

  const fs::path& file() const { return file_; }
  fs::path secret() const { return secret_of(file_); }
  // Of the certificates.
  fs::path folder() const { return certificates_of(file_); }

 private:
  std::optional<io::PrivateFolder> folder_;  // none: the user's
  fs::path file_;
  bool has_file_ = false;
  std::vector<fs::path> certificates_;
  net::Socket lock_;  // of the secret, which is removed if it is there
  int folder_lock_ = -1;
};

LocalWorkersOptions options_of(const StartCommand& command,
                               const ClusterFiles& files,
                               const net::ClusterFile& cluster) {
  LocalWorkersOptions options;
  options.count = command.count;
  options.cluster = cluster.name;
  options.secret_file = files.secret();
  if (command.tls) options.tls = net::certificates_in(files.folder());
  options.devices = command.devices;
  options.threads = command.workers;
  options.drain_time = command.drain_time;
  options.respawns = command.respawns;
  for (const std::string& library : command.op_libraries)
    options.arguments.insert(options.arguments.end(),
                             {"--op-library", library});
  if (!command.file_root.empty())
    options.arguments.insert(options.arguments.end(),
                             {"--file-root", command.file_root});
  if (!command.checkpoints.empty())
    options.arguments.insert(options.arguments.end(),
                             {"--checkpoints", command.checkpoints});
  return options;
}

Failure start_cluster(const StartCommand& command) {
  const EndSignals signals;
  ClusterFiles files;
  Status made = files.make(command.file);
  if (!made.ok()) return run_time_error(std::move(made));
  net::ClusterFile cluster;
  cluster.secret_file = files.secret().filename();
  if (command.tls) {
    made = files.make_certificates(cluster.name, command.count);
    if (!made.ok()) return run_time_error(std::move(made));
    cluster.tls = net::certificates_in(files.folder().filename());
  }
  auto workers =
      LocalWorkers::start(options_of(command, files, cluster), &signals);
  // The worker has said why.
  if (!workers.ok())
    return workers.status().code() == Code::kCancelled
               ? Failure()
               : Failure{ExitCode::kRunTimeError, std::move(workers).status()};
  cluster.tasks = (*workers)->tasks();
  Status written = files.write(cluster);
  if (!written.ok()) return run_time_error(std::move(written));
  print_text(fmt::format("ready: {}\n", files.file().string()));
  written = flush_stdout();
  if (!written.ok()) return run_time_error(std::move(written));
  size_t num_lost = 0;
  (*workers)->wait([&num_lost](const std::string& sentence, bool is_followed) {
    if (is_followed) {
      spdlog::warn("[cluster] {}; another one follows it", sentence);
    } else {
      ++num_lost;
      spdlog::error("[cluster] {}", sentence);
    }
  });
  if (num_lost == 0) return {};
  return run_time_error(error(Code::kUnavailable, "[cluster] {} of {} lost",
                              counted(num_lost, "worker"), command.count));
}

}  // namespace

void add_cluster_command(CLI::App& app, ExitCode& exit_code) {
  auto command = std::make_shared<StartCommand>();
  CLI::App* sub = app.add_subcommand(
      "cluster", "start a cluster for a try, or ask one what it does");
  sub->require_subcommand(1);
  CLI::App* start = sub->add_subcommand(
      "start", "start workers on this machine, until a signal ends them");
  constexpr int kMost = 256;
  start->add_option("count", command->count, "how many")
      ->required()
      ->check(CLI::Range(1, kMost))
      ->type_name("N");
  start
      ->add_option("--devices", command->devices,
                   "the devices of each worker; default: one CPU")
      ->type_name("SPEC");
  add_output_option(*start, "--file", command->file,
                    "where to write the cluster file, for --cluster; default: "
                    "in a new folder; its secret is FILE.secret");
  add_workers_option(*start, command->workers)
      ->description("threads of each; 0: its share of the cores");
  start
      ->add_option("--op-library", command->op_libraries,
                   "as that of \"tagflow worker\"")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  start
      ->add_option("--file-root", command->file_root,
                   "as that of \"tagflow worker\"; by default graphs use no "
                   "files")
      ->type_name("DIR");
  add_checkpoints_option(*start, command->checkpoints);
  add_drain_time_option(*start, command->drain_time);
  start->add_flag("--respawn", command->respawns,
                  "start another worker in the place of one that has ended");
  start->add_flag("--tls", command->tls,
                  "connect them by TLS; its certificates are in FILE.certs");
  add_cluster_status_command(*sub, exit_code);
  add_cluster_drain_command(*sub, exit_code);
  add_cluster_trace_command(*sub, exit_code);
  add_cluster_certs_command(*sub, exit_code);
  start->callback(
      [command, &exit_code] { exit_code = report(start_cluster(*command)); });
}

}  // namespace tagflow::apps
