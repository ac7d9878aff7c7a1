#pragma once

#include "docs/misuse/misuse.h"

namespace cria::docs {

struct ConstStore : Misuse {
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    // [const_store]
    auto i = p.arange(shape<1024>);
    p.store(a.x.data, i, p.load(a.y.data, i));  // x is a Tensor<const float>
    // [end]
  }
};

}  // namespace cria::docs

template struct cria::kernels::Binding<cria::docs::ConstStore>;
