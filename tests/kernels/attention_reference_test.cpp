#include "kernels/attention_reference.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace cria::test {
namespace {

TEST(AttentionReference, AgreesWithCentralDifferences) {
  const AttentionProblem p{4, 2, 3, 5, 6, true};
  Rng rng(7);
  const auto random = [&](int64_t n) {
    Values x(n);
    for (double& e : x) e = rng.normal();
    return x;
  };
  Inputs in{random(p.q_size()), random(p.kv_size()), random(p.kv_size()), random(p.q_size())};
  const Gradients g = backward(p, in, forward(p, in).o);
  const auto loss = [&] {
    const Values o = forward(p, in).o;
    return dot(o.data(), in.dout.data(), int(o.size()));
  };
  const auto expect_slopes = [&](Values& x, const Values& gradient, const char* name) {
    for (size_t i = 0; i < x.size(); ++i) {
      const double kept = x[i], h = 1e-5;
      x[i] = kept + h;
      const double up = loss();
      x[i] = kept - h;
      const double down = loss();
      x[i] = kept;
      EXPECT_NEAR((up - down) / (2 * h), gradient[i], 1e-8) << name << "[" << i << "]";
    }
  };
  expect_slopes(in.q, g.dq, "dq");
  expect_slopes(in.k, g.dk, "dk");
  expect_slopes(in.v, g.dv, "dv");
}

}  // namespace
}  // namespace cria::test
