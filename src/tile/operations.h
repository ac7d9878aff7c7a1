// The elementwise operations of tiles that differ in nothing but their names: each target defines
// them all, in its own way.
#pragma once

// clang-format off
#define CRIA_TILE_OPERATORS(define) \
  define(+) define(-) define(*) define(/) \
  define(<) define(<=) define(>) define(>=) define(==) define(!=) define(&&) define(||)

#define CRIA_TILE_ASSIGNMENTS(define) define(+) define(-) define(*) define(/)

#define CRIA_TILE_FUNCTIONS(define) \
  define(abs) define(exp) define(exp2) define(log) define(log2) define(sqrt) define(rsqrt) \
  define(sin) define(cos) define(tanh) define(sigmoid) define(silu)
// clang-format on
