// Where the program reports its memory accesses. On the CPU nobody listens.
#pragma once

#include <source_location>
#include <utility>

#include "tile/cpu/namespace.h"

namespace cria::tile {
inline namespace CRIA_HOST_TARGET {

using Source = std::source_location;  // the kernel's line that made an access

struct NoProbe {
  template <class... A>
  CRIA_FN void load(const A&...) const {}
  template <class... A>
  CRIA_FN void store(const A&...) const {}
  template <class... A>
  CRIA_FN void load_pairs(const A&...) const {}
  template <class... A>
  CRIA_FN void load_scalar(const A&...) const {}
  template <class... A>
  CRIA_FN void store_scalar(const A&...) const {}
  template <class... A>
  CRIA_FN void gather(const A&...) const {}
  template <class... A>
  CRIA_FN void scatter(const A&...) const {}
  template <class... A>
  CRIA_FN void reduce(const A&...) const {}
  template <class... A>
  CRIA_FN void combine(const A&...) const {}
  template <class... A>
  CRIA_FN void transpose(const A&...) const {}
  template <class... A>
  CRIA_FN void fetch(const A&...) const {}
  template <class... A>
  CRIA_FN void write(const A&...) const {}
  template <class... A>
  CRIA_FN void read(const A&...) const {}
  template <class... A>
  CRIA_FN void save(const A&...) const {}
  template <class... A>
  CRIA_FN void restore(const A&...) const {}
  template <class... A>
  CRIA_FN void dot(const A&...) const {}
  template <class... A>
  CRIA_FN void store_tile(const A&...) const {}
  // A load's node, perhaps wrapped in one that checks what it reads.
  template <class Node, class... A>
  CRIA_FN Node watch(const Node& node, const A&...) const {
    return node;
  }
};

}  // namespace CRIA_HOST_TARGET
}  // namespace cria::tile
