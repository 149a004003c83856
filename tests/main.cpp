// The main() of every test binary: doctest's, with two more rules.
// - A filter that selects no test case is an error. CTest runs each file of
//   tests by a filter, so a file that is renamed cannot pass by running
//   nothing.
// - If all selected cases are skipped, the exit status is 77.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <iostream>
#include <set>
#include <string>

#include "tests/skip.h"

namespace {

unsigned g_selected_cases = 0;
unsigned g_skipped_cases = 0;

// Counts what the filters left over; prints nothing itself.
struct SelectionCounter : doctest::IReporter {
  explicit SelectionCounter(const doctest::ContextOptions& /*options*/) {}

  void test_run_end(const doctest::TestRunStats& stats) override {
    g_selected_cases = stats.numTestCasesPassingFilters;
  }

  void report_query(const doctest::QueryData& /*query*/) override {}
  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData& /*data*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*data*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*s*/) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature& /*name*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*data*/) override {}
  void log_message(const doctest::MessageData& /*data*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}
};

DOCTEST_REGISTER_LISTENER("selection", 1, SelectionCounter);

}  // namespace

namespace tagflow {

void skip_test_case(std::string_view why) {
  static std::set<std::string, std::less<>> told;  // each reason once
  if (told.emplace(why).second) std::cerr << "skipped: " << why << "\n";
  ++g_skipped_cases;
}

}  // namespace tagflow

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int failed = context.run();
  // --help, --list-test-cases and the like ran no test on purpose.
  if (context.shouldExit()) return failed;
  if (failed == 0 && g_selected_cases == 0) {
    std::cerr << "no test case matches the filters\n";
    return 1;
  }
  constexpr int kSkipped = 77;
  if (failed == 0 && g_skipped_cases == g_selected_cases) return kSkipped;
  return failed;
}
