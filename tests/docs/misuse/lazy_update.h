#pragma once

#include "docs/misuse/misuse.h"

namespace cria::docs {

struct LazyUpdate : Misuse {
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    // [lazy_update]
    auto i = p.arange(shape<1024>);
    auto x = p.load(a.x.data, i);
    x += p.load(a.y.data, i);
    // [end]
  }
};

}  // namespace cria::docs

template struct cria::kernels::Binding<cria::docs::LazyUpdate>;
