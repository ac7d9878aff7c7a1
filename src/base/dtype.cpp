#include "base/dtype.h"

#include <array>
#include <utility>

#include "base/format.h"

namespace cria {

DType parse_dtype(std::string_view name) {
  using Entry = std::pair<std::string_view, DType>;
  static constexpr std::array kNames = {
      Entry{"f32", DType::f32},   Entry{"fp32", DType::f32},  Entry{"float32", DType::f32},
      Entry{"float", DType::f32}, Entry{"bf16", DType::bf16}, Entry{"bfloat16", DType::bf16},
      Entry{"f16", DType::f16},   Entry{"fp16", DType::f16},  Entry{"float16", DType::f16},
      Entry{"half", DType::f16},  Entry{"i32", DType::i32},   Entry{"int32", DType::i32},
  };
  for (const auto& [known, type] : kNames) {
    if (name == known) return type;
  }
  fail_f("unknown type '{}': use f32, bf16, f16 or i32", name);
}

}  // namespace cria
