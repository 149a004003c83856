#include "apps/chaos/schedule_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <string_view>

#include "apps/shared/io/file.h"

namespace tagflow::chaos {
namespace {

using Clock = std::chrono::steady_clock;

double in_ms(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

class ScheduleRun {
 public:
  ScheduleRun(const Setting& setting, const std::string& save,
              const std::vector<Fault>& faults)
      : setting_(setting),
        save_(setting.folder / save),
        most_(most_restarts(faults)) {
    for (const Fault& fault : faults) {
      faults_.push_back({.fault = fault});
      faults_.back().measured.row = row_of(fault);
    }
  }
  ~ScheduleRun() {
    if (watch_ >= 0) ::close(watch_);
  }
  ScheduleRun(const ScheduleRun&) = delete;
  ScheduleRun& operator=(const ScheduleRun&) = delete;

  RunReport run() {
    Status status = start();
    while (status.ok() && !is_over_) status = go_on();
    if (status.ok()) status = end();
    if (status.ok() && most_ && report_.restarts > *most_)
      status = error(Code::kInternal,
                     "[chaos] {} drains cost {} restarts; the last one: {:?}",
                     *most_, report_.restarts, said_);
    for (Coming& coming : faults_)
      report_.faults.push_back(std::move(coming.measured));
    report_.seconds = in_ms(Clock::now() - begin_) / 1000;
    report_.status = std::move(status);
    return std::move(report_);
  }

 private:
  struct Coming {
    Fault fault;
    bool is_marked = false;
    std::optional<Clock::time_point> begin, end;
    bool has_ended = false;
    bool is_open = false;  // a drain, whose worker has not left
    Measured measured;
    Clock::time_point marked;

    bool is_kill() const {
      return fault.kind == Kind::kKill || fault.kind == Kind::kKillAhead;
    }
    // Whether no command says that it restarts because of it: a save that fails
    // is a warning, and a new command knows nothing of the old one's end.
    bool costs_no_restart() const {
      return fault.kind == Kind::kFullDisk ||
             (is_kill() && fault.host == kMaster);
    }
    void mark(Clock::time_point now) {
      if (!std::exchange(is_marked, true)) marked = now;
    }
    Clock::time_point due() const { return marked + fault.delay; }
  };

  struct Worker {
    Process process;
    std::string address;    // the same one for all processes of the task
    std::string said;       // its last line
    bool is_ready = false;  // it has said where it listens
    bool is_asked = false;  // the process, to leave
    // A command has asked a process of the task, which may be the next one.
    bool may_be_asked = false;
  };
  // A command that drains a worker.
  struct Asker {
    Process process;
    Coming* fault = nullptr;
    std::string said;
  };

  Process& process_of(uint32_t host) {
    return host == kMaster ? master_ : workers_[host].process;
  }

  // --- Start and end ---------------------------------------------------------

  Status start() {
    std::error_code code;
    std::filesystem::create_directories(save_, code);
    watch_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch_ < 0 ||
        ::inotify_add_watch(watch_, save_.c_str(), IN_CREATE | IN_MOVED_TO) < 0)
      return error(Code::kResourceExhausted, "[chaos] cannot watch {:?}: {}",
                   save_.string(), std::strerror(errno));
    for (uint32_t task = 0; task < kWorkers; ++task) {
      TAGFLOW_RETURN_IF_ERROR(start_worker(task, 0));
      while (!workers_[task].is_ready) TAGFLOW_RETURN_IF_ERROR(go_on());
    }
    std::string text =
        "{\"name\": \"chaos\", \"secret_file\": \"secret\", "
        "\"tasks\": [";
    for (uint32_t task = 0; task < kWorkers; ++task)
      text += fmt::format(
          "{}{{\"job\": \"worker\", \"task\": {}, \"address\": \"{}\"}}",
          task == 0 ? "" : ", ", task, workers_[task].address);
    TAGFLOW_RETURN_IF_ERROR(
        io::write_file(setting_.folder / "c.json", text + "]}\n"));
    return start_master(0);
  }

  // The workers end by themselves, and nothing is left.
  Status end() {
    for (Coming& coming : faults_) end_fault(coming);
    for (const Worker& worker : workers_) worker.process.signal(SIGTERM);
    for (const Worker& worker : workers_)
      while (worker.process.is_running()) TAGFLOW_RETURN_IF_ERROR(go_on());
    while (!askers_.empty()) TAGFLOW_RETURN_IF_ERROR(go_on());
    if (::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD)
      return error(Code::kInternal, "[chaos] a process is left over");
    return {};
  }

  Status start_worker(uint32_t task, int64_t ahead) {
    std::string address = workers_[task].address;
    if (address.empty())
      address = fmt::format("{}:0", setting_.network == nullptr
                                        ? "localhost"
                                        : Switch::address(task));
    ProcessOptions options{
        .command = {setting_.command.string(), "worker", "--task",
                    std::to_string(task), "--listen", address, "--name",
                    "chaos", "--secret-file", "secret", "--workers", "1"},
        .ahead = ahead,
        .folder = setting_.folder};
    if (setting_.network != nullptr) {
      options.network = setting_.network->descriptor(task);
      options.command.emplace_back("--insecure");
    }
    if (setting_.workers_write)
      options.command.insert(options.command.end(),
                             {"--checkpoints", save_.filename().string()});
    TAGFLOW_ASSIGN(workers_[task].process, Process::start(options));
    workers_[task].is_ready = workers_[task].is_asked = false;
    for (Coming& coming : faults_)
      if (coming.fault.host == task && std::exchange(coming.is_open, false))
        coming.end = Clock::now();
    limit_disk(task);
    mark_started(task);
    return {};
  }

  Status start_master(int64_t ahead) {
    ProcessOptions options{.command = {setting_.command.string(),
                                       "run",
                                       "graph.pb",
                                       "--init",
                                       "init",
                                       "--target",
                                       "step",
                                       "--fetch",
                                       "loss",
                                       "--fetch",
                                       "trips",
                                       "--seed",
                                       "7",
                                       "--steps",
                                       std::to_string(setting_.steps),
                                       "--save",
                                       save_.filename().string(),
                                       "--save-every",
                                       "10",
                                       "--cluster",
                                       "c.json",
                                       "--restarts",
                                       "1000"},
                           .ahead = ahead,
                           .folder = setting_.folder};
    if (setting_.network != nullptr)
      options.network = setting_.network->descriptor(kMaster);
    if (setting_.workers_write)
      options.command.insert(options.command.end(), {"--save-on", "workers"});
    TAGFLOW_ASSIGN(master_, Process::start(options));
    ++report_.commands;
    limit_disk(kMaster);
    mark_started(kMaster);
    return {};
  }

  // --- Events ----------------------------------------------------------------

  Status go_on() {
    wait();
    const auto now = Clock::now();
    if (now - begin_ > setting_.bound)
      return error(
          Code::kDeadlineExceeded,
          "[chaos] it hangs after step {} of {}, for {} s; the command "
          "has said {:?}",
          step_, setting_.steps, setting_.bound.count(), said_);
    if (watch_ >= 0) read_watch();
    master_.read_lines([&](const std::string& line) { take_line(line); },
                       [&](const std::string& line) { take_error(line); });
    for (Worker& worker : workers_)
      worker.process.read_lines(
          [&](const std::string& line) {
            constexpr std::string_view kReady = "ready: ";
            if (!line.starts_with(kReady)) return;
            worker.address = line.substr(kReady.size());
            worker.is_ready = true;
          },
          [&](const std::string& line) { worker.said = line; });
    TAGFLOW_RETURN_IF_ERROR(wrong_);
    TAGFLOW_RETURN_IF_ERROR(reap());
    for (Coming& coming : faults_) {
      if (coming.begin && !coming.has_ended && coming.end <= now)
        end_fault(coming);
      // Nobody is harmed, and nothing started, while all of them end.
      if (!is_over_) TAGFLOW_RETURN_IF_ERROR(act(coming, now));
    }
    return {};
  }

  // Until something comes, or a fault is due; ends are looked for now and then.
  void wait() {
    auto until = Clock::now() + std::chrono::milliseconds(10);
    for (const Coming& coming : faults_) {
      if (may_begin(coming)) until = std::min(until, coming.due());
      if (coming.end && !coming.has_ended) until = std::min(until, *coming.end);
    }
    const auto left =
        std::max<Clock::duration>(until - Clock::now(), Clock::duration(0));
    const timespec time{0, std::chrono::nanoseconds(left).count()};
    std::vector<pollfd> ends = {{watch_, POLLIN, 0},
                                {master_.output(), POLLIN, 0},
                                {master_.errors(), POLLIN, 0}};
    for (const Worker& worker : workers_)
      ends.push_back({worker.process.output(), POLLIN, 0});
    ::ppoll(ends.data(), ends.size(), &time, nullptr);
  }

  void read_watch() {
    alignas(inotify_event) std::array<char, 4096> bytes;
    for (ssize_t size; (size = ::read(watch_, bytes.data(), 4096)) > 0;)
      for (ssize_t at = 0; at < size;) {
        const auto* event =
            reinterpret_cast<const inotify_event*>(bytes.data() + at);
        mark((event->mask & IN_CREATE) != 0 ? Phase::kWrite : Phase::kPublish);
        at += ssize_t(sizeof(inotify_event)) + ssize_t(event->len);
      }
  }

  void take_line(const std::string& line) {
    const int64_t step = step_of(line);
    if (step == 0) return;
    step_ = step;
    // A step that is made again has the same results.
    const size_t equals = line.find(" = ");
    const std::string name = line.substr(0, equals);
    const auto known = report_.lines.emplace(name, line).first;
    std::string expected = known->second;
    if (setting_.expected != nullptr)
      if (const auto found = setting_.expected->find(name);
          found != setting_.expected->end())
        expected = found->second;
    if (expected != line || known->second != line)
      wrong_ = error(Code::kDataLoss, "[chaos] {:?} is printed, not {:?}", line,
                     expected);
    const auto now = Clock::now();
    for (Coming& coming : faults_) {
      const bool has_been_noticed =
          coming.measured.detected ||
          (coming.is_kill() && coming.costs_no_restart() && coming.begin);
      if (!has_been_noticed || coming.measured.goes_on || coming.is_open)
        continue;
      coming.measured.goes_on = std::max(0.0, in_ms(now - *coming.end));
    }
    for (const Phase phase : {Phase::kLoop, Phase::kDequeue, Phase::kRecv})
      mark(phase);
    if (step == setting_.steps) mark(Phase::kEnd);
  }

  void take_error(const std::string& line) {
    said_ = line;
    if (line.find("; restart ") == std::string::npos) return;
    ++report_.restarts;
    // It is due to the last fault that can be its reason.
    const auto now = Clock::now();
    constexpr std::chrono::seconds kLatest{3};
    Coming* cause = nullptr;
    for (Coming& coming : faults_)
      if (coming.begin && !coming.measured.detected &&
          now - *coming.end < kLatest && !coming.costs_no_restart() &&
          (cause == nullptr || coming.begin > cause->begin))
        cause = &coming;
    if (cause != nullptr) cause->measured.detected = in_ms(now - *cause->begin);
    mark(Phase::kRestore);
  }

  Status reap() {
    int code = 0;
    for (uint32_t task = 0; task < kWorkers; ++task) {
      Worker& worker = workers_[task];
      // The signal that ends it may come before it waits for one.
      if (!worker.process.has_ended(code) ||
          (is_over_ && (code == 0 || code == 128 + SIGTERM)))
        continue;
      // Whom both a command and a signal ask may end at once.
      const bool has_left =
          (code == 0 && worker.is_asked) ||
          (worker.may_be_asked && (code == 0 || code == 128 + SIGTERM));
      if (!has_left)
        return error(Code::kInternal,
                     "[chaos] task {} has ended with {}; it said {:?}", task,
                     code, worker.said);
      TAGFLOW_RETURN_IF_ERROR(start_worker(task, 0));
    }
    TAGFLOW_RETURN_IF_ERROR(reap_askers());
    if (!master_.has_ended(code)) return {};
    // What it has written last.
    master_.read_lines([&](const std::string& line) { take_line(line); },
                       [&](const std::string& line) { take_error(line); });
    TAGFLOW_RETURN_IF_ERROR(wrong_);
    if (code == 0) {
      is_over_ = true;
      return {};
    }
    // What the documentation lets end it: a lost worker at the start; a full
    // disk; workers that another master has not left yet.
    const bool is_due =
        !faults_.empty() &&
        (code == 4 ||
         (code == 1 && (said_.find("File too large") != std::string::npos ||
                        said_.find("master") != std::string::npos)));
    if (!is_due)
      return error(Code::kInternal,
                   "[chaos] the command has ended with {}; it said {:?}", code,
                   said_);
    return start_master(0);
  }

  Status reap_askers() {
    for (auto asker = askers_.begin(); asker != askers_.end();) {
      const auto hear = [&](const std::string& line) { asker->said = line; };
      asker->process.read_lines(hear, hear);
      int code = 0;
      if (!asker->process.has_ended(code)) {
        ++asker;
        continue;
      }
      asker->process.read_lines(hear, hear);
      // Its worker may be lost, or cut off, or end with the others.
      const bool is_due = code == 0 || (code == 4 && (is_over_ || !most_));
      if (!is_due)
        return error(Code::kInternal,
                     "[chaos] the command that drains has ended with {}; it "
                     "said {:?}",
                     code, asker->said);
      // It may have asked, or not.
      if (code != 0) asker->fault->is_open = false;
      asker = askers_.erase(asker);
    }
    return {};
  }

  // --- Faults ----------------------------------------------------------------

  // Marks those that wait for the phase.
  void mark(Phase phase) {
    for (Coming& coming : faults_)
      if (coming.fault.phase == phase && step_ >= coming.fault.step)
        coming.mark(Clock::now());
  }
  void mark_started(uint32_t host) {
    for (Coming& coming : faults_)
      if (coming.fault.phase == Phase::kRegister ? host == coming.fault.host
          : coming.fault.phase == Phase::kStart  ? host == kMaster
                                                 : false)
        if (step_ >= coming.fault.step) coming.mark(Clock::now());
  }

  // Only a process that is there, and has not been asked, is asked to leave: a
  // second signal would end it at once.
  bool may_begin(const Coming& coming) const {
    if (!coming.is_marked || coming.begin) return false;
    if (!coming.fault.is_drain()) return true;
    const Worker& worker = workers_[coming.fault.host];
    return worker.is_ready && !worker.is_asked;
  }
  Status act(Coming& coming, Clock::time_point now) {
    if (!may_begin(coming) || now < coming.due()) return {};
    coming.begin = now;
    coming.end = now + coming.fault.lasts;
    coming.measured.has_come = true;
    if (coming.fault.is_drain()) return drain(coming);
    return begin_fault(coming.fault);
  }

  Status drain(Coming& coming) {
    const uint32_t task = coming.fault.host;
    coming.is_open = coming.has_ended = true;
    workers_[task].is_asked = true;
    if (coming.fault.kind == Kind::kDrain) {
      workers_[task].process.signal(SIGTERM);
    } else {
      workers_[task].may_be_asked = true;
      ProcessOptions options{
          .command = {setting_.command.string(), "cluster", "drain",
                      fmt::format("worker/{}", task), "--cluster", "c.json"},
          .folder = setting_.folder};
      if (setting_.network != nullptr)
        options.network = setting_.network->descriptor(kMaster);
      Asker& asker = askers_.emplace_back();
      asker.fault = &coming;
      TAGFLOW_ASSIGN(asker.process, Process::start(options));
    }
    mark(Phase::kLeave);
    return {};
  }

  // Kills the process, and starts another one.
  Status replace(uint32_t host, int64_t ahead) {
    process_of(host).kill();
    return host == kMaster ? start_master(ahead) : start_worker(host, ahead);
  }

  Status begin_fault(const Fault& fault) {
    switch (fault.kind) {
      case Kind::kKill:
      case Kind::kKillAhead:
        return replace(fault.host, fault.ahead);
      case Kind::kStop:
        process_of(fault.host).signal(SIGSTOP);
        return {};
      case Kind::kFullDisk:
        limit_disk(fault.host);
        return {};
      default:
        set_lines(fault, line_of(fault.kind));
        return {};
    }
  }

  void end_fault(Coming& coming) {
    if (!coming.begin || std::exchange(coming.has_ended, true)) return;
    const Fault& fault = coming.fault;
    if (fault.kind == Kind::kStop)
      process_of(fault.host).signal(SIGCONT);
    else if (fault.kind == Kind::kFullDisk)
      limit_disk(fault.host);
    else if (!coming.is_kill())
      set_lines(fault, {});
  }

  static Line line_of(Kind kind) {
    if (kind != Kind::kBadLine) return {.is_cut = true};
    return {.lost_per_mille = 30,
            .longest_delay = std::chrono::milliseconds(8)};
  }
  void set_lines(const Fault& fault, const Line& line) {
    setting_.network->set_line(fault.host, fault.other, line);
    if (fault.kind != Kind::kCutOneWay)
      setting_.network->set_line(fault.other, fault.host, line);
  }

  // While its disk is full, the system refuses what the process writes to
  // files; pipes are not concerned.
  void limit_disk(uint32_t host) {
    const Process& process = process_of(host);
    if (!process.is_running()) return;
    const bool is_full =
        std::ranges::any_of(faults_, [&](const Coming& coming) {
          return coming.fault.kind == Kind::kFullDisk &&
                 coming.fault.host == host && coming.begin && !coming.has_ended;
        });
    rlimit limit{};
    ::prlimit(process.pid(), RLIMIT_FSIZE, nullptr, &limit);
    limit.rlim_cur = is_full ? 0 : limit.rlim_max;
    ::prlimit(process.pid(), RLIMIT_FSIZE, &limit, nullptr);
  }

  const Setting& setting_;
  const std::filesystem::path save_;
  const Clock::time_point begin_ = Clock::now();
  RunReport report_;
  const std::optional<int> most_;  // restarts
  std::deque<Coming> faults_;
  std::array<Worker, kWorkers> workers_;
  std::list<Asker> askers_;
  Process master_;
  int watch_ = -1;
  int64_t step_ = 0;  // the last one
  bool is_over_ = false;
  std::string said_;  // the last line of the command's stderr
  Status wrong_;
};

}  // namespace

RunReport run_schedule(const Setting& setting, const std::string& save,
                       const std::vector<Fault>& faults) {
  return ScheduleRun(setting, save, faults).run();
}

}  // namespace tagflow::chaos
