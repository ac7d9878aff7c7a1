// pipeline on the CPU: a plain loop that fetches in the GPU's order, Stages - 1 steps ahead.
#pragma once

#include "base/error.h"
#include "tile/cpu/namespace.h"
#include "tile/shape.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

// steps(body) runs all steps that remain, steps(n, body) the next n, steps.one(body) the next:
// body(step, stage). What is handed over is dealt with on the spot.
template <int S, class P, class Fetch, class Assist>
struct Steps {
  P& p;
  Fetch& fetch;
  Assist& assist;
  int n, j = 0, handed = 0;
  CRIA_FN int hand() const { return handed % P::hands; }
  CRIA_FN void hand_over() {
    auto assistant = p.assistant();
    assist(assistant, handed, hand());
    ++handed;
  }
  CRIA_FN void take_back() const {}
  template <class Body>
  CRIA_FN void operator()(Body body) {
    (*this)(n - j, body);
  }
  template <class Body>
  CRIA_FN void operator()(int count, Body body) {
    for (const int end = j + count; j < end;) one(body);
  }
  template <class Body>
  CRIA_FN void one(Body body) {
    const int ahead = j + S - 1;
    if (ahead < n) fetch(ahead, ahead % S);
    body(j, j % S);
    ++j;
  }
};

template <int S, class P, class Fetch, class Consume, class Assist>
CRIA_FN void run_pipeline(P& p, int n, Fetch fetch, Consume consume, int hand_overs,
                          Assist assist) {
  static_assert(S >= 2, "pipeline: at least two stages, one to fill while one is used");
  for (int j = 0; j < S - 1 && j < n; ++j) fetch(j, j);
  Steps<S, P, Fetch, Assist> steps{p, fetch, assist, n};
  consume(p, steps);
  require(steps.j == n, "a pipeline's steps were not all taken, or more than there are");
  require(steps.handed == hand_overs, "a pipeline did not hand over as often as it announced");
}

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
