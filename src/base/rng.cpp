// Built without contraction to FMA (see CMakeLists.txt) and without libm's log: then IEEE
// arithmetic fixes every bit of the result.
//
// What a value goes through has no branch but the one between centre and tails, so that
// fill_normal's loops become vector instructions, which round as scalar ones do.
#include "base/rng.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace cria {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

// SplitMix64's finaliser (Steele, Lea, Flood 2014).
constexpr uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The n-th of a key's 64-bit numbers, from 1.
constexpr uint64_t bits_at(uint64_t key, uint64_t n) { return mix(key + n * kGolden); }

// x < 2^52 as a double: the last bits of 2^52 + x are those of x. AVX2 cannot convert vectors of
// 64-bit integers.
inline double exact_double(uint64_t x) {
  return std::bit_cast<double>(x | 0x4330000000000000u) - 0x1p52;
}

// Half a step in, so that it is never 0 or 1.
inline double probability(uint64_t bits) { return (exact_double(bits >> 12) + 0.5) * 0x1p-52; }

// Natural logarithm of a normal x > 0: x = 2^e * m with m in [sqrt(1/2), sqrt(2)), and
// log m = 2 atanh((m-1)/(m+1)) as a series; |s| <= 0.172, so 11 terms reach double precision.
inline double log_exact_order(double x) {
  const uint64_t u = std::bit_cast<uint64_t>(x);
  const double whole = std::bit_cast<double>((u & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  const bool above = whole > 1.4142135623730951;
  const double m = above ? 0.5 * whole : whole;
  const double exponent = exact_double(u >> 52) - (above ? 1022.0 : 1023.0);
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double sum = 0;
  for (int n = 21; n >= 1; n -= 2) sum = sum * z + 1.0 / n;
  return exponent * 0.6931471805599453 + 2.0 * s * sum;
}

// sum of c[i] x^i
template <int N>
constexpr double polynomial(const double (&c)[N], double x) {
  double sum = c[N - 1];
  for (int i = N - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

// Rational approximations of Wichura's algorithm AS 241 (1988): centre, tail, far tail.
constexpr double kCentreNum[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                 1.9715909503065514427e3, 1.3731693765509461125e4,
                                 4.5921953931549871457e4, 6.7265770927008700853e4,
                                 3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr double kCentreDen[] = {1.0,
                                 4.2313330701600911252e1,
                                 6.8718700749205790830e2,
                                 5.3941960214247511077e3,
                                 2.1213794301586595867e4,
                                 3.9307895800092710610e4,
                                 2.8729085735721942674e4,
                                 5.2264952788528545610e3};
constexpr double kTailNum[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                               5.76949722146069140550e0,  3.64784832476320460504e0,
                               1.27045825245236838258e0,  2.41780725177450611770e-1,
                               2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kTailDen[] = {1.0,
                               2.05319162663775882187e0,
                               1.67638483018380384940e0,
                               6.89767334985100004550e-1,
                               1.48103976427480074590e-1,
                               1.51986665636164571966e-2,
                               5.47593808499534494600e-4,
                               1.05075007164441684324e-9};
constexpr double kFarNum[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                              1.78482653991729133580e0,  2.96560571828504891230e-1,
                              2.65321895265761230930e-2, 1.24266094738807843860e-3,
                              2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double kFarDen[] = {1.0,
                              5.99832206555887937690e-1,
                              1.36929880922735805310e-1,
                              1.48753612908506148525e-2,
                              7.86869131145613259100e-4,
                              1.84631831751005468180e-5,
                              1.42151175831644588870e-7,
                              2.04426310338993978564e-15};

constexpr double kCentre = 0.425;  // from p = 1/2 to either side
constexpr double kFar = 5.0;

// The quantile of a p in the centre, a number of no meaning for others.
inline double centre(double p) {
  const double q = p - 0.5;
  const double r = 0.180625 - q * q;
  return q * polynomial(kCentreNum, r) / polynomial(kCentreDen, r);
}

// What the quantile's size depends on outside the centre.
inline double distance(double p) { return std::sqrt(-log_exact_order(p < 0.5 ? p : 1.0 - p)); }

inline double tail(double r) {
  return polynomial(kTailNum, r - 1.6) / polynomial(kTailDen, r - 1.6);
}

double far_tail(double r) { return polynomial(kFarNum, r - kFar) / polynomial(kFarDen, r - kFar); }

constexpr size_t kBlock = 256;

// Writes the quantiles of those p, at most a block, that lie outside the centre: gathered first.
void replace_tails(std::span<const double> p, double* x) {
  std::array<double, kBlock> outside, r, out;
  std::array<uint32_t, kBlock> place;
  size_t count = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    place[count] = static_cast<uint32_t>(i);
    count += std::abs(p[i] - 0.5) > kCentre;
  }
  for (size_t i = 0; i < count; ++i) outside[i] = p[place[i]];
  for (size_t i = 0; i < count; ++i) r[i] = distance(outside[i]);
  for (size_t i = 0; i < count; ++i) out[i] = tail(r[i]);
  for (size_t i = 0; i < count; ++i)
    if (r[i] > kFar) out[i] = far_tail(r[i]);
  for (size_t i = 0; i < count; ++i) x[place[i]] = outside[i] < 0.5 ? -out[i] : out[i];
}

}  // namespace

double normal_quantile(double p) {
  if (std::abs(p - 0.5) <= kCentre) return centre(p);
  const double r = distance(p);
  const double x = r <= kFar ? tail(r) : far_tail(r);
  return p < 0.5 ? -x : x;
}

Rng::Rng(uint64_t seed, uint64_t stream) : key_(mix(mix(seed + kGolden) + stream * kGolden)) {}

uint64_t Rng::bits() { return bits_at(key_, ++position_); }

uint32_t Rng::below(uint32_t bound) {
  return static_cast<uint32_t>(((bits() >> 32) * bound) >> 32);
}

double Rng::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

double Rng::normal() { return normal_quantile(probability(bits())); }

void Rng::fill_normal(std::span<float> out, float stddev) {
  std::array<double, kBlock> p, x;
  while (!out.empty()) {
    const size_t count = std::min(out.size(), kBlock);
    for (size_t i = 0; i < count; ++i) p[i] = probability(bits_at(key_, position_ + i + 1));
    for (size_t i = 0; i < count; ++i) x[i] = centre(p[i]);
    replace_tails({p.data(), count}, x.data());
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(stddev * x[i]);
    position_ += count;
    out = out.subspan(count);
  }
}

}  // namespace cria
