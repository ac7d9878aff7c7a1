#pragma once

#include "docs/misuse/misuse.h"

namespace cria::docs {

struct SumOfRows : Misuse {
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    // [sum_of_rows]
    auto x = p.load(a.x, shape<8, 128>, 0, 0);
    p.store(a.z.data, p.sum(p.sum(x, axis<1>)));  // p.sum(x) is meant
    // [end]
  }
};

}  // namespace cria::docs

template struct cria::kernels::Binding<cria::docs::SumOfRows>;
