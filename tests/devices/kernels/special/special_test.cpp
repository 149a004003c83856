// Special functions at extreme arguments; ragged_test.cpp has TensorFlow's.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/devices/kernel_fixture.h"

using namespace tagflow;           // NOLINT: tests
using namespace tagflow::devices;  // NOLINT

namespace {

// Igamma, Igammac, and the derivative of the first by x.
struct GammaRow {
  double a, x, lower, upper, density;
};

template <class T>
void check_gamma(const char* op, T a, T x, double expected) {
  CAPTURE(op);
  CAPTURE(a);
  CAPTURE(x);
  const auto result = run_op(op, {Tensor::scalar(a), Tensor::scalar(x)});
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  const double actual = double((*result)[0].template scalar_value<T>());
  CAPTURE(actual);
  const double most = std::is_same_v<T, float> ? 1e-6 : 1e-12;
  CHECK(std::abs(actual - expected) <= most * std::abs(expected));
}

}  // namespace

TEST_CASE("incomplete gamma functions keep their digits at any arguments") {
  // By mpmath 1.3.0 with 60 digits and more.
  const GammaRow rows[] = {
      {1e-300, 1e-300, 1.0, 6.9019831223331219e-298, 1.0},
      {1e-300, 0.5, 1.0, 5.5977359477616083e-301, 1.2130613194252669e-300},
      {1e-300, 5.0, 1.0, 1.1482955912753258e-303, 1.3475893998170935e-303},
      {1e-16, 1e-16, 0.99999999999999637, 3.6264145823003132e-15,
       0.99999999999999627},
      {1e-16, 1.0, 0.99999999999999998, 2.1938393439552029e-17,
       3.6787944117144234e-17},
      {1e-08, 1e-100, 0.99999770318970125, 2.2968102987544641e-6,
       9.9999770318970125e+91},
      {0.001, 0.56, 0.99950668293070561, 0.00049331706929439045,
       0.0010200126919999521},
      {0.3, 1e-20, 1.1142425085473024e-6, 0.99999888575749145,
       33427275256419.072},
      {0.9, 0.99, 0.67193089475847116, 0.32806910524152884,
       0.34806320012245602},
      {0.5, 600.0, 1.0, 6.0995688148084337e-263, 6.1046433522798913e-263},
      {1.0, 1e-12, 9.9999999999949998e-13, 0.999999999999, 0.999999999999},
      {3.0, 0.01, 1.6542165280748769e-7, 0.99999983457834719,
       4.9502491687458405e-5},
      {9.9, 12.0, 0.76723563600372355, 0.23276436399627645,
       0.085305980027736315},
      {10.0, 3.0, 0.0011024881301154797, 0.99889751186988452,
       0.0027005039315604773},
      {100.0, 30.0, 7.3384686328783333e-24, 1.0, 1.7225272672794724e-23},
      {100.0, 180.0, 0.99999999997051705, 2.9482945576482845e-11,
       1.3457599761234467e-11},
      {1000.0, 1000.0, 0.50420524418021551, 0.49579475581978449,
       0.0126146113487215},
      {9999.0, 9900.0, 0.16108712563673598, 0.83891287436326402,
       0.0024602927776030333},
      {10000.0, 10000.0, 0.5013298083399552, 0.4986701916600448,
       0.0039893895589628256},
      {10000.0, 9000.0, 2.073299202433928e-25, 1.0, 2.3240219937992107e-26},
      {100000.0, 100002.0, 0.50294361047845997, 0.49705638952154003,
       0.0012615147486948495},
      {100000.0, 103000.0, 1.0, 2.8706236917814667e-21, 8.4546821798865342e-23},
      {1000000.0, 998000.0, 0.022696114006736803, 0.9773038859932632,
       5.3954871922946829e-5},
      {1e+20, 1.0000000001e+20, 0.84134491951309611, 0.15865508048690389,
       2.4197055105839664e-11},
      {1e+300, 1e+300, 0.5, 0.5, 3.9894228040143267e-151},
  };
  for (const GammaRow& row : rows) {
    check_gamma("Igamma", row.a, row.x, row.lower);
    check_gamma("Igammac", row.a, row.x, row.upper);
    check_gamma("_GammaDensity", row.a, row.x, row.density);
  }
  // As floats, of the functions at the floats' values.
  check_gamma("Igammac", 1e-30f, 0.5f, 5.597735803e-31);
  check_gamma("Igamma", 1e30f, 1e30f, 0.5);
}

TEST_CASE("incomplete gamma functions have TensorFlow's values at borders") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto value = [](const char* op, double a, double x) {
    const auto result = run_op(op, {Tensor::scalar(a), Tensor::scalar(x)});
    REQUIRE(result.ok());
    return (*result)[0].scalar_value<double>();
  };
  CHECK(value("Igamma", 1, 0) == 0);
  CHECK(value("Igammac", 1, 0) == 1);
  CHECK(value("Igamma", 1, kInf) == 1);
  CHECK(value("Igammac", 1, kInf) == 0);
  for (const char* op : {"Igamma", "Igammac", "_GammaDensity"}) {
    CHECK(std::isnan(value(op, 1, -1)));
    CHECK(std::isnan(value(op, 1, std::nan(""))));
  }
  CHECK(std::isnan(value("Igamma", 0, 1)));
}
