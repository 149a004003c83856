#include "apps/shared/program/program.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <string>

#include "apps/shared/program/owned_session.h"
#include "apps/shared/program/terminal.h"
#include "graph/unfinished_file.h"

namespace tagflow::apps {
namespace {

// --- Signals -----------------------------------------------------------------

// The default action is taken when this returns.
extern "C" void on_ending_signal(int signal) {
  remove_unfinished_files();
  std::raise(signal);
}

void handle_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_DFL) continue;  // as under nohup
    struct sigaction action {};
    action.sa_handler = on_ending_signal;
    action.sa_flags = int(SA_RESTART | SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

// --- exit() ------------------------------------------------------------------

std::atomic<bool> is_running = false;
std::mutex suspect_mutex;  // guards the below
std::string suspect;

// Destructors of static objects run later, or did where they were made later.
void on_exit_of_process() {
  if (!is_running) return;
  std::string what;
  {
    const std::lock_guard lock(suspect_mutex);
    what = suspect;
  }
  report(run_time_error(
      error(Code::kAborted,
            "[program] {} ended the process by exit(), before it was done",
            what.empty() ? "an op, or another part of a library," : what)));
  std::fflush(stdout);
  std::_Exit(int(ExitCode::kRunTimeError));
}

ExitCode run_body(int argc, char** argv, ExitCode (*body)(int, char**)) {
  try {
    return body(argc, argv);
  } catch (const std::bad_alloc&) {
    return report(run_time_error(
        error(Code::kResourceExhausted, "[program] out of memory")));
  } catch (const std::exception& exception) {
    // Our own code does not throw.
    return report(run_time_error(
        error(Code::kInternal, "[program] {}", exception.what())));
  }
}

}  // namespace

int run_program(int argc, char** argv, ExitCode (*body)(int, char**)) {
  claim_standard_streams();
  // A file-size limit is an error of the write, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  set_up_logging();
  handle_signals();
  std::atexit(on_exit_of_process);
  is_running = true;
  ExitCode code = run_body(argc, argv, body);
  is_running = false;
  const ExitCode printed = report(run_time_error(flush_stdout()));
  if (code == ExitCode::kOk) code = printed;
  spdlog::default_logger()->flush();
  if (is_session_left()) std::_Exit(int(code));
  return int(code);
}

EndingSuspect::EndingSuspect(std::string what) {
  const std::lock_guard lock(suspect_mutex);
  suspect = std::move(what);
}

EndingSuspect::~EndingSuspect() {
  const std::lock_guard lock(suspect_mutex);
  suspect.clear();
}

}  // namespace tagflow::apps
