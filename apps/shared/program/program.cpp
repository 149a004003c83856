#include "apps/shared/program/program.h"

#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>

#include "apps/shared/program/owned_session.h"
#include "apps/shared/program/terminal.h"

namespace tagflow::apps {
namespace {

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
  ExitCode code = run_body(argc, argv, body);
  const ExitCode printed = report(run_time_error(flush_stdout()));
  if (code == ExitCode::kOk) code = printed;
  spdlog::default_logger()->flush();
  if (is_session_left()) std::_Exit(int(code));
  return int(code);
}

}  // namespace tagflow::apps
