#pragma once

#include "docs/misuse/misuse.h"

namespace cria::docs {

struct StrideCompared : Misuse {
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    // [stride_compared]
    auto i = column(p.arange(shape<8>)) * a.x.ld;
    auto j = row(p.arange(shape<128>));
    p.store(a.z.data, i + j, p.load(a.x.data, i + j, i < a.x.rows && j < a.x.cols));
    // [end]
  }
};

}  // namespace cria::docs

template struct cria::kernels::Binding<cria::docs::StrideCompared>;
