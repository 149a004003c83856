// Learning rates against closed forms.
#include "autodiff/train/schedule.h"

#include <numbers>

#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/train/trainer.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

namespace {

// Steps of several kinds, all at once.
const Doubles kSteps{0, 1, 3, 4, 10, 25};

struct Fixture {
  Graph graph;
  Scope s{graph};
  Output step = ops::constant(s, Tensor::vector<int64_t>({0, 1, 3, 4, 10, 25}));
  Output rate = ops::constant(s, 0.5);  // double

  void check(const Output& schedule, double (*wanted)(double)) {
    Doubles all;
    for (const double t : kSteps) all.push_back(wanted(t));
    check_close(doubles_of(evaluate(s, {schedule})[0]), all);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "an exponential decay is smooth, or in stairs") {
  check(schedules::exponential_decay(s, rate, step,
                                     {.decay_steps = 4, .decay_rate = 0.9}),
        [](double t) { return 0.5 * std::pow(0.9, t / 4); });
  check(schedules::exponential_decay(
            s, rate, step,
            {.decay_steps = 4, .decay_rate = 0.9, .staircase = true}),
        [](double t) { return 0.5 * std::pow(0.9, std::floor(t / 4)); });
}

TEST_CASE_FIXTURE(Fixture, "a cosine decay ends, and stays there") {
  check(
      schedules::cosine_decay(s, rate, step, {.decay_steps = 10, .alpha = 0.1}),
      [](double t) {
        const double p = std::min(t / 10, 1.0);
        const double half = (1 + std::cos(std::numbers::pi * p)) / 2;
        return 0.5 * (0.1 + 0.9 * half);
      });
}

TEST_CASE_FIXTURE(Fixture,
                  "learning rate: a boundary is the last step of its rate") {
  check(schedules::piecewise_constant(s, step, {0, 3, 10}, {8, 4, 2, 1},
                                      DataType::kDouble),
        [](double t) {
          return t <= 0 ? 8.0 : (t <= 3 ? 4.0 : (t <= 10 ? 2.0 : 1.0));
        });
  check(schedules::piecewise_constant(s, step, {}, {3}, DataType::kDouble),
        [](double) { return 3.0; });
}

TEST_CASE_FIXTURE(Fixture,
                  "learning rate: a warm-up comes before another schedule") {
  const Output later = schedules::exponential_decay(
      s, rate, step, {.decay_steps = 1, .decay_rate = 0.9});
  check(schedules::warmup(s, later, step, {.steps = 4, .start = 0.25}),
        [](double t) {
          return 0.5 * std::pow(0.9, t) * (0.25 + 0.75 * std::min(t / 4, 1.0));
        });
}

TEST_CASE_FIXTURE(Fixture,
                  "learning rate: a rate that is a number is of float") {
  const Output one = ops::constant(s, int32_t{3});
  for (const Output& schedule :
       {schedules::exponential_decay(s, 1, one, {}),
        schedules::cosine_decay(s, 1.0, one, {}),
        schedules::piecewise_constant(s, one, {1}, {1, 2}),
        schedules::warmup(s, 1, one, {})}) {
    CHECK(schedule.dtype() == DataType::kFloat);
    CHECK(schedule.shape() == PartialShape::scalar());
  }
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
}

TEST_CASE_FIXTURE(Fixture, "a schedule that is none says why") {
  const auto contains = [&](const char* text) {
    return s.status().to_string().find(text) != std::string::npos;
  };
  SUBCASE("no steps") {
    schedules::cosine_decay(s, rate, step, {.decay_steps = 0});
    CHECK(contains("[cosine_decay]"));
    CHECK(contains("is for 1 step or more, not 0"));
  }
  SUBCASE("a rate of decay that is negative") {
    schedules::exponential_decay(s, rate, step, {.decay_rate = -1});
    CHECK(contains("decay_rate -1 is not positive"));
  }
  SUBCASE("too few rates") {
    schedules::piecewise_constant(s, step, {1, 2}, {1, 2});
    CHECK(contains("2 rates for 2 boundaries"));
  }
  SUBCASE("boundaries that do not grow") {
    schedules::piecewise_constant(s, step, {2, 2}, {1, 2, 3});
    CHECK(contains("each boundary above the one before"));
  }
}
