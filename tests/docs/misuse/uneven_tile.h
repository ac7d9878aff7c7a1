#pragma once

#include "docs/misuse/misuse.h"

namespace cria::docs {

struct UnevenTile : Misuse {
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    // [uneven_tile]
    auto i = p.arange(shape<1000>);  // for 128 threads
    p.store(a.z.data, i, p.load(a.x.data, i));
    // [end]
  }
};

}  // namespace cria::docs

template struct cria::kernels::Binding<cria::docs::UnevenTile>;
