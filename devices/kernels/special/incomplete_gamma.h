// The incomplete gamma functions, and the density that they integrate.
#pragma once

namespace tagflow::devices {

// With P(a, x) = 1 / gamma(a) * integral of t^(a-1) e^-t from 0 to x: P, and
// Q = 1 - P, to about 1e-12 of their own values, however small these are.
// REQUIRES: a > 0, x > 0; both are finite.
double lower_gamma_ratio(double a, double x);
double upper_gamma_ratio(double a, double x);

// x^(a-1) e^-x / gamma(a), the derivative of P by x, to about 1e-12 of its
// value. Where a is 0 or a negative integer, it is 0. NaN if a or x is NaN, or
// x is negative.
double gamma_density(double a, double x);

}  // namespace tagflow::devices
