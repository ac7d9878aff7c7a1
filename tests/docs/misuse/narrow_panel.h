#pragma once

#include "docs/misuse/misuse.h"

namespace cria::docs {

struct NarrowPanel : Misuse {
  // [narrow_panel]
  struct Shared {
    SharedTile<float, 64, 48> a;  // rows of 192 bytes
  };
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    p.fetch(s.a[0], a.x, 0, 0, 0);
  }
  // [end]
};

}  // namespace cria::docs

template struct cria::kernels::Binding<cria::docs::NarrowPanel>;
