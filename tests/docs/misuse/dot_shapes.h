#pragma once

#include "docs/misuse/misuse.h"

namespace cria::docs {

struct DotShapes : Misuse {
  // [dot_shapes]
  struct Shared {
    SharedTile<float, 64, 32> a, b;
  };
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    auto acc = p.accumulator(shape<64, 64>);
    p.dot(acc, s.a[0], s.b[0]);  // 64 x 32 times 64 x 32: b wants trans()
    p.store(a.z, acc, 0, 0);
  }
  // [end]
};

}  // namespace cria::docs

template struct cria::kernels::Binding<cria::docs::DotShapes>;
