#pragma once

#include "docs/misuse/misuse.h"

namespace cria::docs {

struct LayoutsDiffer : Misuse {
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    // [layouts_differ]
    auto i = p.arange(shape<1024>);
    auto x = p.load(a.x.data, i);
    auto y = p.load(Runs<1024, 128>{}, a.y.data, i);
    p.store(a.z.data, i, x + y);
    // [end]
  }
};

}  // namespace cria::docs

template struct cria::kernels::Binding<cria::docs::LayoutsDiffer>;
